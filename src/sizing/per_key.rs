//! The number of modules of a filter, and the bits per key that a rate needs in as many.

use super::checks::{checked_bits_per_key, checked_fpr};
use super::model::{best_k, fpr};
use super::search::least_bits_per_key;
use super::standard::TWO_TO_64;
use crate::error::Error;
use crate::limits::{MAX_BITS_PER_KEY, MIN_FPR, ONE_MODULE_MIN_FPR};
use crate::math::power;
use crate::modules::MOST_MODULES;

/// The most modules of a size that is computed. A fifth module would save less than 2% of the bits at any rate, and less
/// than 1% down to 10⁻⁷.
const MOST_COMPUTED: usize = 4;

/// The lowest false-positive rates of one to four modules, which are the rates at [`MAX_BITS_PER_KEY`].
const LOWEST: [f64; MOST_COMPUTED] = [ONE_MODULE_MIN_FPR, 3.05e-11, 2.142e-12, MIN_FPR];

/// The rates from which down two, three and four modules save at least 7% of the bits, and the bits per key that such a
/// rate needs in one module less. At lower savings, an absent key would cost up to 1.2 times as much as in one module
/// less, and a present key always costs one more cache line. Four modules never save that much, but reach lower rates.
const RULE: [(f64, f64); MOST_COMPUTED - 1] =
    [(4.966e-4, 17.454_28), (1.8e-8, 42.421), (LOWEST[2], MAX_BITS_PER_KEY + 1.0)];

/// The share of the bits that one more module may need at most: by the rule, and if a caller allows more modules.
const LEFT: f64 = 0.93;
const LEFT_WITHIN: f64 = 0.99;

/// The share for requests of bits per key, because rounding to whole blocks of each module adds some.
const ROUNDED: f64 = 1.01;

/// What was requested of a size.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Request {
    Fpr(f64),
    BitsPerKey(f64),
}

impl Request {
    /// What a filter of `keys` distinct keys needs for each, by the rule, or with at most `most_modules` modules.
    ///
    /// `keys` ÷ 2^64 is the probability that an absent key has the same hash as one of them. At rates that only several
    /// modules reach, it counts.
    pub(crate) fn per_key(self, keys: u64, most_modules: Option<usize>) -> Result<PerKey, Error> {
        let most = most_modules.map_or(Ok(MOST_COMPUTED), checked_modules)?.min(MOST_COMPUTED);
        match self {
            Self::Fpr(fpr) => {
                // Rates of one module are so high that it adds nothing, unless the filter exceeds the address space.
                let is_one = most_modules.map_or(modules_of(fpr), |_| most) == 1;
                let same_hash = if is_one { 0.0 } else { keys as f64 / TWO_TO_64 };
                checked_fpr(fpr, LOWEST[most - 1], same_hash)?;
                // Rounding must not push it below the lowest.
                let left = (fpr - same_hash).max(LOWEST[most - 1]);
                let n_modules = if most_modules.is_some() { most } else { modules_of(left) };
                let of_one = if same_hash < 1e-6 * fpr { fpr } else { left };
                let mut bits = [f64::INFINITY; MOST_COMPUTED];
                for (of_n, n) in bits.iter_mut().zip(1..=n_modules) {
                    let of_bits = if n == 1 { of_one } else { left };
                    if of_bits >= LOWEST[n - 1] {
                        *of_n = least_bits_per_key(of_bits, |bits| rate(bits, n));
                    }
                }
                let left = if most_modules.is_some() { LEFT_WITHIN } else { LEFT };
                Ok(PerKey { bits, most_modules: n_modules, left })
            }
            Self::BitsPerKey(bits) => {
                checked_bits_per_key(bits)?;
                let by_rule = 1 + RULE.iter().filter(|&&(_, from)| bits >= from).count();
                let n_modules = most_modules.map_or(by_rule, |_| best_within(bits, most));
                Ok(PerKey { bits: [bits; MOST_COMPUTED], most_modules: n_modules, left: ROUNDED })
            }
        }
    }
}

/// The number of modules that the rule chooses for a rate.
pub(crate) fn modules_of(fpr: f64) -> usize {
    1 + RULE.iter().filter(|&&(from, _)| fpr <= from).count()
}

/// The bits per key of one module or more.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PerKey {
    /// Of all modules together. Infinite if the rate is out of reach.
    bits: [f64; MOST_COMPUTED],
    /// The number for many keys. Few keys get fewer, because each module has at least one block.
    most_modules: usize,
    left: f64,
}

impl PerKey {
    /// The bits per key of a filter of many keys.
    pub(crate) fn of_many(&self) -> f64 {
        let millionths = |bits| (bits * 1e6) as usize;
        self.best(|_, bits| Ok(bits), millionths).unwrap_or(f64::INFINITY)
    }

    /// The best size among one for each number of modules, which `size` makes, given their number and bits per key.
    /// `units` returns how large it is.
    pub(crate) fn best<T: Copy>(
        &self,
        size: impl Fn(usize, f64) -> Result<T, Error>,
        units: impl Fn(T) -> usize,
    ) -> Result<T, Error> {
        let sizes = (1..=self.most_modules).filter(|n| self.bits[n - 1].is_finite());
        let mut sizes = sizes.map(|n| (n, size(n, self.bits[n - 1])));
        let first = sizes.next().expect("a rate in reach");
        let (_, best) = sizes.fold(first, |(fewer, best), (n, more)| match (best, more) {
            (Ok(of_fewer), Ok(of_more)) => {
                let most = power(self.left, (n - fewer) as u32) * units(of_fewer) as f64;
                if units(of_more) as f64 <= most { (n, more) } else { (fewer, best) }
            }
            // One module can exceed the address space where several do not.
            (Ok(_), Err(_)) => (fewer, best),
            (Err(_), _) => (n, more),
        });
        best
    }
}

/// The number of modules, at most `most`, of which each further one makes room for at least 1% more keys at the same
/// false-positive rate.
fn best_within(bits_per_key: f64, most: usize) -> usize {
    (2..=most).fold(1, |best, n| {
        let left = power(LEFT_WITHIN, (n - best) as u32);
        if rate(left * bits_per_key, n) <= rate(bits_per_key, best) { n } else { best }
    })
}

pub(super) fn checked_modules(n_modules: usize) -> Result<usize, Error> {
    let is_valid = (1..=MOST_MODULES).contains(&n_modules);
    let text = "the number of modules must be 1 to {}, not {}";
    is_valid.then_some(n_modules).ok_or(Error::argument(text, [MOST_MODULES, n_modules].map(|n| n as u64)))
}

/// The false-positive rate of `n_modules` modules that share the bits.
fn rate(bits_per_key: f64, n_modules: usize) -> f64 {
    let of_module = bits_per_key / n_modules as f64;
    let rate = best_k(of_module).and_then(|k| fpr(of_module, k));
    power(rate.unwrap_or(0.0), n_modules as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_keys_than_hashes_do_not_put_a_rate_of_one_module_out_of_reach() {
        assert!(Request::Fpr(0.01).per_key(u64::MAX, None).is_ok());
        assert!(Request::Fpr(0.0001).per_key(u64::MAX, None).is_err());
    }

    #[test]
    fn a_rate_that_equal_hashes_push_below_the_lowest_of_three_modules_has_four() {
        let per_key = Request::Fpr(LOWEST[2] + 1e-15).per_key(1_000_000, None).unwrap();
        assert!(per_key.most_modules == 4 && per_key.of_many().is_finite());
    }

    #[test]
    fn a_further_module_saves_seven_percent_from_each_rate_of_the_rule_down() {
        for (n, (from, bits)) in (2..).zip(RULE) {
            let [fewer, more] = [n - 1, n].map(|n| least_bits_per_key(from, |bits| rate(bits, n)));
            if n == 4 {
                assert_eq!(from, LOWEST[2]);
                continue;
            }
            assert!(
                (0.929..=LEFT).contains(&(more / fewer)) && (fewer / bits - 1.0).abs() < 1e-5,
                "{n}: {fewer}"
            );
            let [fewer, more] = [n - 1, n].map(|n| least_bits_per_key(1.01 * from, |bits| rate(bits, n)));
            assert!(more / fewer > LEFT, "{n}: {}", more / fewer);
        }
    }
}
