//! Stands in for a release of `wyhash` whose output has changed.

/// Not wyhash but FNV-1a.
pub fn wyhash(bytes: &[u8], seed: u64) -> u64 {
    bytes.iter().fold(seed, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}
