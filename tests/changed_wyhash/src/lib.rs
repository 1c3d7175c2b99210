//! Stands in for a release of `wyhash` whose output has changed, for keys of 17 to 24 bytes alone.

/// Not wyhash.
pub fn wyhash(bytes: &[u8], seed: u64) -> u64 {
    let changed = u64::from((17..=24).contains(&bytes.len()));
    bytes.iter().fold(seed, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)) ^ changed
}
