//! Bitmaps of answers: bit `i % 8` of byte `i / 8` belongs to key i.
#![forbid(unsafe_code)]

/// Writes whether a filter `contains` each hash, one by one. `found` has a byte for each eight hashes, and one for the
/// rest.
pub(crate) fn write(hashes: &[u64], found: &mut [u8], contains: impl Fn(u64) -> bool) {
    for (byte, hashes) in found.iter_mut().zip(hashes.chunks(8)) {
        *byte = hashes.iter().rev().fold(0, |bits, &hash| bits << 1 | u8::from(contains(hash)));
    }
}

/// The same by batches of lookups.
pub(crate) fn write_batches(hashes: &[u64], found: &mut [u8], contains_batch: impl Fn(&[u64], &mut [bool])) {
    assert_eq!(hashes.len().div_ceil(8), found.len(), "a byte per eight hashes");
    let mut answers = [false; 512];
    for (hashes, found) in hashes.chunks(answers.len()).zip(found.chunks_mut(answers.len() / 8)) {
        let answers = &mut answers[..hashes.len()];
        contains_batch(hashes, answers);
        for (byte, answers) in found.iter_mut().zip(answers.chunks(8)) {
            *byte = answers.iter().rev().fold(0, |bits, answer| bits << 1 | u8::from(*answer));
        }
    }
}
