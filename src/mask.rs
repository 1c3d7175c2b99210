//! The definition of which block a hash falls in, and which bits it has there.
//!
//! Plain scalar code, to read beside `docs/format.md`. Kernels must agree with it bit for bit. They share no code with
//! [`mask`], so that no bug can be in both, except the kernel `reference`, which is this definition.

use core::num::NonZero;

use crate::error::Error;

/// Multiplier of the first word, 2^64 ÷ the golden ratio, made odd.
const FIRST: u64 = 0x9E37_79B9_7F4A_7C15;
/// Multiplier of the second word.
const SECOND: u64 = 0xD6E8_FEB8_6659_FD93;

/// Probes per key, 1 to 16. Checked here, and nowhere else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ProbeCount(NonZero<u8>);

impl ProbeCount {
    pub(crate) fn new(k: u32) -> Result<Self, Error> {
        match NonZero::new(k as u8) {
            Some(count) if k <= 16 => Ok(Self(count)),
            _ => Err(Error::probes(k, 16)),
        }
    }

    /// From the four lowest bits, which are k − 1.
    #[inline]
    pub(crate) fn from_four_bits(bits: u8) -> Self {
        Self(NonZero::<u8>::MIN.saturating_add(bits % 16))
    }

    #[inline]
    pub(crate) fn get(self) -> u32 {
        u32::from(self.0.get())
    }
}

/// A number below n, which is the high word of hash × n. Works for any n above 0, and needs no modulo.
#[inline]
pub(crate) fn below(n: u64, hash: u64) -> u64 {
    ((u128::from(hash) * u128::from(n)) >> 64) as u64
}

#[inline]
pub(crate) fn block_index(hash: u64, n_blocks: usize) -> usize {
    // WebAssembly has no 128-bit product, and a call for it would slow down batches.
    #[cfg(target_arch = "wasm32")]
    {
        let n_blocks = n_blocks as u64;
        (((hash >> 32) * n_blocks + (((hash & 0xFFFF_FFFF) * n_blocks) >> 32)) >> 32) as usize
    }
    #[cfg(not(target_arch = "wasm32"))]
    {
        below(n_blocks as u64, hash) as usize
    }
}

/// The bits of a hash in its block, as eight lanes.
///
/// The k lanes from the rotation on, wrapping around, get one bit each, placed by the first word. If k is above 8, the
/// probes after the eighth go round a second time, placed by the second word.
#[inline]
pub(crate) fn mask(hash: u64, k: ProbeCount) -> [u64; 8] {
    let first = hash.wrapping_mul(FIRST);
    let second = (first ^ (first >> 32)).wrapping_mul(SECOND);
    let rotation = (first >> 61) as usize;
    let mut lanes = [0; 8];
    for probe in 0..k.get() as usize {
        let word = if probe < 8 { first } else { second };
        let lane = (rotation + probe) % 8;
        lanes[lane] |= 1 << ((word >> (13 + 6 * lane)) & 63);
    }
    lanes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The whole filter would need 4 GiB to 256 TiB, but 1024 neighbouring blocks behave as it does.
    #[test]
    #[cfg_attr(miri, ignore = "hours under miri")]
    fn the_rate_holds_in_a_window_of_a_filter_of_any_size() {
        const WINDOW: u64 = 1024;
        let k = ProbeCount::new(6).unwrap();
        let model = crate::sizing::fpr(10.0, 6).unwrap();
        for log2_blocks in [26, 34, 42] {
            let n_blocks = 1_u64 << log2_blocks;
            let first_block = n_blocks / 3;
            let hash_of = |i: u64| {
                // A uniform hash among the hashes that fall in the window.
                let span = WINDOW << (64 - log2_blocks);
                (first_block << (64 - log2_blocks)) + (crate::hash::mix(i) % span)
            };
            let (mut positives, mut probes) = (0_u64, 0_u64);
            for round in 0..8_u64 {
                let mut window = alloc::vec![[0_u64; 8]; WINDOW as usize];
                let keys = WINDOW * 512 / 10;
                for i in 0..keys {
                    let hash = hash_of((round << 40) + i);
                    let block = &mut window[(below(n_blocks, hash) - first_block) as usize];
                    for (lane, bits) in block.iter_mut().zip(mask(hash, k)) {
                        *lane |= bits;
                    }
                }
                for i in 0..1_000_000 {
                    let hash = hash_of((round << 40) + (1 << 30) + i);
                    let block = &window[(below(n_blocks, hash) - first_block) as usize];
                    let is_found = block.iter().zip(mask(hash, k)).all(|(lane, bits)| bits & !lane == 0);
                    positives += u64::from(is_found);
                    probes += 1;
                }
            }
            let ratio = positives as f64 / probes as f64 / model;
            assert!((0.95..=1.05).contains(&ratio), "2^{log2_blocks} blocks: {ratio:.4} of the model's FPR");
        }
    }
}
