//! The series of filters that a growing filter adds, with the capacity, the rate and the size of each.

use crate::error::Error;
use crate::limits::SCALABLE_MIN_FPR;
use crate::mask::ProbeCount;
use crate::math::{power, square_root};
use crate::sizing::{self, Sizing};

/// The capacity and the false-positive rate of each filter.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct Series {
    /// Keys of the first filter, at least 1.
    pub(super) initial_capacity: u64,
    pub(super) fpr: f64,
    pub(super) growth: u8,
    pub(super) tightening: f64,
    /// Probes in each module. The same for all filters, so that a lookup computes one mask.
    pub(super) k: ProbeCount,
    /// Modules of each filter, 1 or 2.
    pub(super) n_modules: usize,
    /// The lowest rate that a filter of this k reaches.
    lowest: f64,
}

/// With this growth and tightening, the filters need the least memory, averaged over 10 to 10,000 times the initial
/// capacity, of growths of 2 to 4, tightenings of 0.5 to 0.9, and rates that fall with the square of the index. A
/// growth of 1.5 needs less, but ten filters instead of seven at 100 times the initial capacity.
pub(super) const GROWTH: u8 = 2;
pub(super) const TIGHTENING: f64 = 0.85;
/// The most modules that the format has room for in a growing filter.
pub(super) const MOST_IN_SERIES: usize = 2;
/// More filters than a process can have, because the last would hold 2^63 keys.
pub(super) const MOST_FILTERS: f64 = 64.0;

impl Series {
    /// A series with these parameters, of which `growth` and `tightening` are in range.
    pub(super) fn new(initial_capacity: u64, fpr: f64, growth: u8, tightening: f64) -> Result<Self, Error> {
        sizing::checked_fpr(fpr, SCALABLE_MIN_FPR, 0.0)?;
        // The textbook's k, −log2 of the false-positive rate, for the fifth filter, divided among its modules. From one
        // filter to twenty, the bits are within 2% of what each filter's own best k would need.
        let fifth = (0..4).fold(fpr * (1.0 - tightening), |rate, _| rate * tightening);
        let k = (1..30).take_while(|&k| fifth * f64::from(2 << k) <= 1.0).count() + 1;
        let n_modules = sizing::modules_of(fpr).min(MOST_IN_SERIES);
        let k = if n_modules == 2 { k / 2 } else { k.min(16) };
        let (initial_capacity, k) = (initial_capacity.max(1), ProbeCount::from_four_bits(k as u8 - 1));
        let series = Self { initial_capacity, fpr, growth, tightening, k, n_modules, lowest: 0.0 };
        Ok(series.with_shape(k, n_modules))
    }

    pub(super) fn with_shape(self, k: ProbeCount, n_modules: usize) -> Self {
        let series = Self { k, n_modules, ..self };
        Self { lowest: series.of_modules(sizing::lowest_fpr(k)), ..series }
    }

    /// The rate of a filter whose modules have this rate.
    pub(super) fn of_modules(&self, fpr: f64) -> f64 {
        power(fpr, self.n_modules as u32)
    }

    /// Keys of the filter with this index.
    pub(super) fn capacity(&self, index: usize) -> u64 {
        (0..index).fold(self.initial_capacity, |capacity, _| capacity.saturating_mul(self.growth.into()))
    }

    /// False-positive rate of the filter with this index. The rates of 64 filters add up to at most `fpr`, as a
    /// geometric series, plus the lowest rate that k reaches for each filter.
    pub(super) fn fpr(&self, index: usize) -> f64 {
        // The difference is below 0 if bytes from a different writer have a k that cannot reach the rate.
        let shared = (self.fpr - MOST_FILTERS * self.lowest).max(0.0) * (1.0 - self.tightening);
        self.lowest + (0..index).fold(shared, |share, _| share * self.tightening)
    }

    /// Blocks of each module of the filter with this index.
    pub(super) fn module_blocks(&self, index: usize) -> Result<usize, Error> {
        let of_filter = self.fpr(index);
        let of_module = if self.n_modules == 2 { square_root(of_filter) } else { of_filter };
        let bits_per_key = sizing::bits_per_key_of(of_module, self.k);
        Sizing::of_modules(1, self.capacity(index), bits_per_key).map(Sizing::n_blocks)
    }

    /// The sum of the rates of the filters from this index on, up to 64 filters.
    pub(super) fn rate_from(&self, index: usize) -> f64 {
        (index..MOST_FILTERS as usize).map(|index| self.fpr(index)).sum()
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::hash::mix;
    use crate::mask::mask;

    const KEYS: u64 = 1_000_000_000;
    const WINDOWS: u64 = 4_000;

    /// The blocks of a filter that a window's worth of hashes, from `first` on, fall in.
    struct Window {
        n_blocks: u64,
        first_block: u64,
        blocks: Vec<[u64; 8]>,
    }

    impl Window {
        fn block_of(&mut self, hash: u64) -> &mut [u64; 8] {
            let index = (u128::from(hash) * u128::from(self.n_blocks)) >> 64;
            &mut self.blocks[(index as u64 - self.first_block) as usize]
        }
    }

    /// The whole filter would need 2.6 GB. A hash falls in the same part of each of its filters, so a window of all of
    /// them shows what lookups there see.
    #[test]
    #[cfg(target_pointer_width = "64")]
    #[cfg_attr(miri, ignore = "hours under miri")]
    fn the_rate_holds_in_a_window_of_a_billion_keys() {
        let series = Series::new(KEYS / 63, 0.01, GROWTH, TIGHTENING).unwrap();
        let sizes: Vec<u64> = (0..6).map(|index| series.module_blocks(index).unwrap() as u64).collect();
        let none: f64 = (0..6)
            .map(|index| {
                let bits_per_key = sizes[index] as f64 * 512.0 / series.capacity(index) as f64;
                1.0 - sizing::fpr(bits_per_key, series.k.get()).unwrap()
            })
            .product();
        let model = 1.0 - none;
        assert!(model < series.fpr && (0..6).map(|index| series.capacity(index)).sum::<u64>() > KEYS - 63);

        let span = u64::MAX / WINDOWS;
        let (mut positives, mut lookups) = (0_u64, 0_u64);
        for round in 0..8 {
            let first = mix(round) % (u64::MAX - span);
            let mut windows: Vec<Window> = sizes
                .iter()
                .map(|&n_blocks| {
                    let block = |hash: u64| ((u128::from(hash) * u128::from(n_blocks)) >> 64) as u64;
                    let first_block = block(first);
                    let count = block(first + span) - first_block + 1;
                    Window { n_blocks, first_block, blocks: alloc::vec![[0; 8]; count as usize] }
                })
                .collect();
            let mut number = round << 40;
            let mut next = || {
                number += 1;
                mix(number) % span
            };
            for (index, window) in windows.iter_mut().enumerate() {
                for _ in 0..series.capacity(index) / WINDOWS {
                    let hash = first + next();
                    for (lane, bits) in window.block_of(hash).iter_mut().zip(mask(hash, series.k)) {
                        *lane |= bits;
                    }
                }
            }
            // The blocks at the window's ends lack the keys beyond them.
            let margin = u64::MAX / sizes[0];
            for _ in 0..120_000 {
                let hash = first + margin + next() % (span - 2 * margin);
                let bits = mask(hash, series.k);
                let is_in = |window: &mut Window| {
                    window.block_of(hash).iter().zip(bits).all(|(lane, bits)| lane & bits == bits)
                };
                positives += u64::from(windows.iter_mut().any(is_in));
                lookups += 1;
            }
        }
        let ratio = positives as f64 / lookups as f64 / model;
        #[cfg(feature = "std")]
        std::println!(
            "{KEYS} keys in 6 filters: {ratio:.4} of the model, {:.3} of the requested rate",
            model / series.fpr
        );
        assert!((0.95..=1.05).contains(&ratio), "{ratio:.4} of the model's rate");
    }
}
