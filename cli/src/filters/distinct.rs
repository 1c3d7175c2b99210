//! Counts distinct keys.
#![forbid(unsafe_code)]

use anyhow::Result;

use crate::input::Input;
use crate::keys::Keys;

/// The distinct keys, and the number of lines.
pub fn count(input: &Input, quiet: bool) -> Result<(Distinct, u64)> {
    let mut distinct = Distinct::default();
    let keys = Keys::new(input, "counting", quiet).without_notes();
    let n_lines = keys.hash_all(0, |hashes| distinct.add(hashes))?;
    distinct.tidy();
    Ok((distinct, n_lines))
}

/// Counts distinct hashes by keeping the smallest ones. If the n-th smallest is at a fraction s of all values, there
/// are about n ÷ s hashes (Bar-Yossef, Jayram, Kumar, Sivakumar and Trevisan, "Counting distinct elements in a data
/// stream", 2002).
pub struct Distinct {
    /// In any order until tidied, and some of them twice.
    smallest: Vec<u64>,
    /// No larger hash is kept.
    limit: u64,
}

/// The relative standard error is 1 ÷ √`KEPT`.
const KEPT: usize = 1 << 18;

impl Default for Distinct {
    fn default() -> Self {
        Self { smallest: Vec::new(), limit: u64::MAX }
    }
}

impl Distinct {
    pub fn add(&mut self, hashes: &[u64]) {
        self.smallest.extend(hashes.iter().filter(|&&hash| hash <= self.limit));
        if self.smallest.len() >= 4 * KEPT {
            self.tidy();
        }
    }

    pub fn tidy(&mut self) {
        self.smallest.sort_unstable();
        self.smallest.dedup();
        if self.smallest.len() >= KEPT {
            self.smallest.truncate(KEPT);
            self.limit = self.smallest[KEPT - 1];
        }
    }

    /// The count, if it is exact.
    pub fn known(&self) -> Option<u64> {
        (self.smallest.len() < KEPT).then_some(self.smallest.len() as u64)
    }

    /// The count, or its estimate plus four standard errors (0.8%), because too small a filter would exceed its
    /// false-positive rate.
    pub fn at_most(&self) -> usize {
        if self.smallest.len() < KEPT {
            return self.smallest.len();
        }
        let share = (self.limit as f64 + 1.0) / 2_f64.powi(64);
        let n = KEPT as f64;
        ((n - 1.0) / share * (1.0 + 4.0 / n.sqrt())) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distinct_keys_are_counted() {
        for n in [0, 1, 1000, KEPT - 1, KEPT, 3_000_000] {
            let hashes: Vec<u64> = (0..n as u64).map(bloomline::mix).collect();
            let mut distinct = Distinct::default();
            hashes.chunks(4000).flat_map(|hashes| [hashes; 2]).for_each(|hashes| distinct.add(hashes));
            distinct.tidy();
            assert_eq!(distinct.known(), (n < KEPT).then_some(n as u64));
            // The estimate is within four standard errors, and four are added.
            let error = if n < KEPT { 0.0 } else { 8.0 / (KEPT as f64).sqrt() };
            let (estimate, n) = (distinct.at_most() as f64, n as f64);
            assert!((n..=n * (1.0 + error)).contains(&estimate), "{n}: {estimate}");
        }
    }
}
