//! Answers for many keys, and bitmaps of them, in which bit `i % 8` of byte `i / 8` belongs to key i.

/// Writes what `is` returns for each item. `found` has ⌈items / 8⌉ bytes.
pub(crate) fn write<T: Copy>(items: &[T], found: &mut [u8], is: impl Fn(T) -> bool) {
    for (byte, items) in found.iter_mut().zip(items.chunks(8)) {
        *byte = items.iter().rev().fold(0, |bits, &item| bits << 1 | u8::from(is(item)));
    }
}

/// Calls `work` with the index of each answer that is `true`, which are mostly few.
#[inline(always)]
pub(crate) fn each_found(answers: [bool; 8], mut work: impl FnMut(usize)) {
    let mut left = u64::from_le_bytes(answers.map(u8::from));
    while left != 0 {
        work((left.trailing_zeros() / 8) as usize);
        left &= left - 1;
    }
}

/// Writes whether a filter contains each hash, by batches of 512 lookups. Panics if `found` does not have ⌈hashes / 8⌉
/// bytes.
pub(crate) fn write_batches(hashes: &[u64], found: &mut [u8], contains_batch: impl Fn(&[u64], &mut [bool])) {
    assert_eq!(hashes.len().div_ceil(8), found.len(), "a byte per eight hashes");
    let mut answers = [false; 512];
    for (hashes, found) in hashes.chunks(answers.len()).zip(found.chunks_mut(answers.len() / 8)) {
        let answers = &mut answers[..hashes.len()];
        contains_batch(hashes, answers);
        write(answers, found, |answer| answer);
    }
}
