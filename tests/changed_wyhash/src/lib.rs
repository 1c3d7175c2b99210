//! Stands in for a release of `wyhash` whose output has changed.

/// FNV-1a instead of wyhash.
pub fn wyhash(bytes: &[u8], seed: u64) -> u64 {
    bytes.iter().fold(seed, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}
