//! The hash agrees with a second implementation of wyhash final version 3.

mod common;

use bloomline::{hash_key, mix};
use common::hash_oracle::oracle;

#[test]
fn keys_of_every_length_and_alignment_have_the_hash_of_the_oracle() {
    let bytes: Vec<u8> = (0..400 + 64).map(|i| mix(i) as u8).collect();
    for length in 0..=400 {
        for seed in [0, 1, 0xa076_1d64_78bd_642f, u64::MAX, mix(length as u64)] {
            let expected = oracle(&bytes[..length], seed);
            for start in 0..64 {
                let mut shifted = [0; 400 + 64];
                let key = &mut shifted[start..start + length];
                key.copy_from_slice(&bytes[..length]);
                assert_eq!(hash_key(&*key, seed), expected, "{length} bytes, {start} on, seed {seed:#x}");
            }
        }
    }
}

/// If the length were cut to 16 bits, keys of 64 KiB would have a different hash.
#[test]
#[cfg_attr(miri, ignore = "minutes under miri")]
fn long_keys_have_the_hash_of_the_oracle() {
    let bytes: Vec<u8> = (0..1 << 20).map(|i| mix(i) as u8).collect();
    for length in [(1 << 16) - 1, 1 << 16, (1 << 16) + 1, 1 << 20] {
        for seed in [0, 1] {
            let key = &bytes[..length];
            assert_eq!(hash_key(key, seed), oracle(key, seed), "{length} bytes, seed {seed}");
        }
    }
}
