//! Bitmaps: bit `i % 8` of byte `i / 8` belongs to key i.
#![forbid(unsafe_code)]

use core::iter;

/// The indices of the bits that are set, in ascending order: of bytes that
/// [`contains_bitmap`](crate::BloomFilter::contains_bitmap) wrote, the keys that are possibly present.
///
/// Takes time for the bytes and for the bits that are set, and allocates nothing.
pub fn set_indices(bitmap: &[u8]) -> impl Iterator<Item = usize> + '_ {
    let (words, rest) = bitmap.as_chunks();
    let last = rest.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte));
    set_indices_of_words(words.iter().map(|&word| u64::from_le_bytes(word)).chain(iter::once(last)))
}

/// [`set_indices`] of words, where bit `i % 64` of word `i / 64` has index i.
pub(crate) fn set_indices_of_words(words: impl Iterator<Item = u64>) -> impl Iterator<Item = usize> {
    words.zip((0..).step_by(64)).flat_map(|(word, first)| {
        let mut bits = word;
        iter::from_fn(move || {
            let index = first + bits.trailing_zeros() as usize;
            (bits != 0).then(|| {
                bits &= bits - 1;
                index
            })
        })
    })
}

/// Writes whether a filter `contains` each hash, one by one. `found` has a byte for each eight hashes, and one for the
/// rest.
pub(crate) fn write(hashes: &[u64], found: &mut [u8], contains: impl Fn(u64) -> bool) {
    for (byte, hashes) in found.iter_mut().zip(hashes.chunks(8)) {
        *byte = hashes.iter().rev().fold(0, |bits, &hash| bits << 1 | u8::from(contains(hash)));
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    #[test]
    fn indices_of_any_bytes() {
        for len in 0..20_u8 {
            let bytes: Vec<u8> = (0..len).map(|i| i.wrapping_mul(0x9d) ^ 0x80).collect();
            let expected = (0..8 * bytes.len()).filter(|i| bytes[i / 8] >> (i % 8) & 1 == 1);
            assert!(super::set_indices(&bytes).eq(expected), "{bytes:x?}");
        }
    }
}
