//! Bitmaps of answers, in which bit `i % 8` of byte `i / 8` belongs to key i.

/// Writes what `is` returns for each item. `found` has ⌈items / 8⌉ bytes.
pub(crate) fn write<T: Copy>(items: &[T], found: &mut [u8], is: impl Fn(T) -> bool) {
    for (byte, items) in found.iter_mut().zip(items.chunks(8)) {
        *byte = items.iter().rev().fold(0, |bits, &item| bits << 1 | u8::from(is(item)));
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
