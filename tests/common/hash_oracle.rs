//! The hash is that of the `wyhash` crate, which shares no code with ours.

use arbitrary::Arbitrary;
use bloomline::{BloomFilter, hash_key};

#[derive(Arbitrary, Debug)]
pub struct Input<'a> {
    pub seed: u64,
    pub key: &'a [u8],
}

pub fn check(input: Input<'_>) {
    let Input { seed, key } = input;
    let expected = oracle(key, seed);
    // An allocation of exactly these bytes, so that the address sanitizer detects a read past their end.
    let key: Box<[u8]> = key.into();
    assert_eq!(hash_key(&key, seed), expected, "{} bytes, seed {seed:#x}", key.len());
    let mut filter = BloomFilter::with_blocks(1000, 8).expect("a small filter").with_seed(seed).unwrap();
    filter.insert(&key);
    assert!(filter.contains(&key) && filter.contains_hash(expected));
}

/// Section 1 of the format, by the `wyhash` crate.
pub fn oracle(key: &[u8], seed: u64) -> u64 {
    const SECRET: [u64; 4] =
        [0xa076_1d64_78bd_642f, 0xe703_7ed1_a0b4_28db, 0x8ebc_6af0_9c88_c6e3, 0x5899_65cc_7537_4cc3];
    let mixed = wyhash::final3::wyhash(&seed.to_le_bytes(), 0x9E37_79B9_7F4A_7C15, SECRET);
    wyhash::final3::wyhash(key, mixed, SECRET)
}
