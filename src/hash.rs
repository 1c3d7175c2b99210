//! From key bytes to the 64-bit hash that determines everything else.
#![forbid(unsafe_code)]

use crate::error::HashChanged;

/// Identifies the hash below in standalone bytes: wyhash version 1 with the mixed seed.
pub(crate) const HASH_ID: u8 = 1;

/// What [`check_output`] computes as long as the hash is the one that stored filters were made with. Standalone bytes
/// contain it.
pub(crate) const CHECK_VALUE: u64 = 0xe140_d1c4_cbbb_69dd;
const CHECK_TEXT: &[u8; 64] = b"The hash of every prefix of this text, each seeded by the last..";

/// A filter's seed, mixed so that no seed is weak: unmixed, wyhash returns 0 for every key of up to eight bytes under
/// the seed 0xa0761d6478bd642f.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seed {
    given: u64,
    mixed: u64,
}

impl Seed {
    /// Seed 0, mixed in advance: opening a filter in an SSTable's bytes then hashes nothing, and a lookup only its key.
    pub(crate) const DEFAULT: Self = Self { given: 0, mixed: 0xf17c_7ce9_b98c_9801 };

    #[inline]
    pub(crate) fn new(seed: u64) -> Self {
        if seed == 0 { Self::DEFAULT } else { Self::mixed(seed) }
    }

    fn mixed(seed: u64) -> Self {
        Self { given: seed, mixed: wyhash::wyhash(&seed.to_le_bytes(), 0x9E37_79B9_7F4A_7C15) }
    }

    pub(crate) fn get(self) -> u64 {
        self.given
    }

    #[inline]
    pub(crate) fn hash(self, key: &[u8]) -> u64 {
        wyhash::wyhash(key, self.mixed)
    }
}

/// Hashes `key` as a filter with this `seed` does: 64 well-mixed bits, the same on every CPU.
///
/// To probe many filters with one key, hash it once, then use the `*_hash` methods. The default seed of every filter is
/// 0. Takes about 4 ns for keys of up to 64 bytes. Does not resist attackers who choose the keys, even if the seed is
/// secret: some keys have the same hash under every seed.
///
/// # Examples
///
/// ```
/// let tables = [bloomline::BloomFilter::with_blocks(1, 6)?, bloomline::BloomFilter::with_blocks(9, 6)?];
/// let hash = bloomline::hash_key("user4291", 0);
/// assert!(!tables.iter().any(|filter| filter.contains_hash(hash)));
/// # Ok::<(), bloomline::SizingError>(())
/// ```
#[inline]
pub fn hash_key(key: impl AsRef<[u8]>, seed: u64) -> u64 {
    Seed::new(seed).hash(key.as_ref())
}

/// Mixes a weak 64-bit hash, or an integer key, for use with the `*_hash` methods.
///
/// These methods need 64 well-mixed bits, and the high bits pick the block: plain integers, identity hashes or
/// zero-extended 32-bit hashes would put every key into one block. Different inputs give different outputs. One step of
/// SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014); takes about 1 ns.
///
/// # Examples
///
/// ```
/// let mut rows = bloomline::BloomFilter::with_fpr(1_000, 0.01)?;
/// rows.insert_hash(bloomline::mix(42));
/// assert!(rows.contains_hash(bloomline::mix(42)));
/// # Ok::<(), bloomline::SizingError>(())
/// ```
#[inline]
#[must_use]
pub fn mix(weak: u64) -> u64 {
    let word = weak.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    word ^ (word >> 31)
}

/// Fails if the output of the `wyhash` crate is not the one that stored filters were made with.
///
/// The hash takes different steps for different key lengths, so the check covers every length up to two rounds. Takes
/// about 0.3 µs.
pub(crate) fn check_output() -> Result<(), HashChanged> {
    let found = (0..=CHECK_TEXT.len())
        .fold(Seed::mixed(0).mixed, |hash, length| wyhash::wyhash(&CHECK_TEXT[..length], hash));
    if found == CHECK_VALUE { Ok(()) } else { Err(HashChanged { found, expected: CHECK_VALUE }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As SECURITY.md says: a zero factor removes the seed from the product. This is part of the format, so it cannot
    /// be fixed within version 1.
    #[test]
    fn some_keys_have_one_hash_under_every_seed() {
        let swapped = 0xe703_7ed1_a0b4_28db_u64.rotate_left(32).to_le_bytes();
        assert!((0..100).map(mix).all(|seed| hash_key(swapped, seed) == 0));
    }
}
