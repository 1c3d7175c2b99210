//! Bitmaps of answers: bit `i % 8` of byte `i / 8` belongs to key i.
#![forbid(unsafe_code)]

/// Writes whether a filter `contains` each hash, one by one. `found` has a byte for each eight hashes, and one for the
/// rest.
pub(crate) fn write(hashes: &[u64], found: &mut [u8], contains: impl Fn(u64) -> bool) {
    for (byte, hashes) in found.iter_mut().zip(hashes.chunks(8)) {
        *byte = hashes.iter().rev().fold(0, |bits, &hash| bits << 1 | u8::from(contains(hash)));
    }
}
