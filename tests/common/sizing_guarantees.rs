//! Any numbers give an error or a size that keeps its guarantees.

use arbitrary::Arbitrary;
use bloomline::sizing::{self, MAX_BITS_PER_KEY};
use bloomline::{BloomFilter, BloomView, Error, FilterBuilder, Sizing, mix};

use super::error_texts::{self, lowest, probes, shows};

#[derive(Arbitrary, Debug)]
pub struct Input {
    keys: u64,
    more_keys: u64,
    bits_per_key: Number,
    more_bits_per_key: Number,
    fpr: Number,
    /// Modulo 20 k, and divided by 20 the most modules, which are left to the rule if it is 0.
    k: u8,
    n_blocks: u64,
}

/// A random float is rarely in a useful range, so half of the numbers are scaled into one.
#[derive(Arbitrary, Clone, Copy, Debug)]
enum Number {
    Raw(f64),
    /// The square root of a fraction of the allowed maximum. Squaring favours small numbers, where results differ more.
    Share(u16),
}

impl Number {
    fn up_to(self, most: f64) -> f64 {
        match self {
            Self::Raw(value) => value,
            Self::Share(root) => (f64::from(root) / f64::from(u16::MAX)).powi(2) * most,
        }
    }
}

/// The error that the thresholds of [`sizing::best_k`], rounded to three decimals, may cause.
const TOLERANCE: f64 = 1e-4;
/// The rounding error that the cancellation of thousands of terms leaves in a false-positive rate.
const ROUNDING: f64 = 5e-12;

/// The most that the address space can hold.
const MOST_BLOCKS: usize = (isize::MAX as usize - 120) / 64;

pub fn check(input: Input) {
    let bits_per_key = input.bits_per_key.up_to(MAX_BITS_PER_KEY);
    let more_bits_per_key = input.more_bits_per_key.up_to(MAX_BITS_PER_KEY);
    let most_modules = Some(usize::from(input.k / 20)).filter(|&most| most != 0);
    sizes_hold_the_requested_bits(input.keys, bits_per_key, most_modules);
    sizes_grow(input.keys, input.more_keys, bits_per_key, more_bits_per_key);
    fprs_fall(bits_per_key, more_bits_per_key, u32::from(input.k % 20));
    the_best_k_is_best(bits_per_key);
    fprs_are_kept(input.keys, input.fpr.up_to(1.0), most_modules);
    filters_have_their_size(input.n_blocks as usize, u32::from(input.k % 20));
    builders_size_as_sizing_does(input.keys % 2_000, input.fpr.up_to(1.0), most_modules);
}

pub fn for_fpr(keys: u64, fpr: f64, most_modules: Option<usize>) -> Result<Sizing, Error> {
    match most_modules {
        None => Sizing::for_fpr(keys, fpr),
        Some(most_modules) => Sizing::for_fpr_within(keys, fpr, most_modules),
    }
}

pub fn for_bits_per_key(keys: u64, bits: f64, most_modules: Option<usize>) -> Result<Sizing, Error> {
    match most_modules {
        None => Sizing::for_bits_per_key(keys, bits),
        Some(most_modules) => Sizing::for_bits_per_key_within(keys, bits, most_modules),
    }
}

/// The false-positive rate of `n_modules` modules that share the bits, for many keys.
pub fn rate(bits_per_key: f64, n_modules: usize) -> f64 {
    let of_each = bits_per_key / n_modules as f64;
    sizing::fpr(of_each, sizing::best_k(of_each).expect("in range")).expect("in range").powi(n_modules as i32)
}

fn is_bits_per_key(value: f64) -> bool {
    value > 0.0 && value <= MAX_BITS_PER_KEY
}

fn sizes_hold_the_requested_bits(keys: u64, bits_per_key: f64, most_modules: Option<usize>) {
    match for_bits_per_key(keys, bits_per_key, most_modules) {
        Err(error) if is_bits_per_key(bits_per_key) => {
            let text = error.to_string();
            assert!(text.starts_with(&format!("{keys} keys of ")) && shows(&text, "keys of ", bits_per_key));
            assert!(keys as f64 * bits_per_key / 512.0 > 0.999 * MOST_BLOCKS as f64);
        }
        Err(error) => assert!(shows(&error.to_string(), "at most 64, not ", bits_per_key), "{error}"),
        Ok(sizing) => {
            assert!(is_bits_per_key(bits_per_key));
            let n_modules = sizing.n_modules();
            let of_each = bits_per_key / n_modules as f64;
            let blocks = keys as f64 * of_each / 512.0;
            let n_blocks = (sizing.n_blocks() / n_modules) as f64;
            assert!(n_blocks >= blocks && n_blocks <= (blocks + 1.0).max(1.0), "{sizing:?}");
            let given = n_blocks * 512.0 / keys.max(1) as f64;
            assert_eq!(sizing.k(), sizing::best_k(given.min(MAX_BITS_PER_KEY)).expect("above 0"));
            assert!(given >= MAX_BITS_PER_KEY || given >= of_each * (1.0 - 1e-12));
            assert!(n_modules <= most_modules.unwrap_or(3).min(4));
            if n_modules > 1 {
                let one = Sizing::for_bits_per_key_within(keys, bits_per_key, 1).expect("a smaller one");
                assert!(
                    sizing.n_blocks() as f64 <= 1.01_f64.powi(n_modules as i32 - 1) * one.n_blocks() as f64
                );
                assert!(
                    sizing.expected_fpr(keys) <= one.expected_fpr(keys) * (1.0 + TOLERANCE) + ROUNDING,
                    "{sizing:?}, {one:?}"
                );
            }
        }
    }
}

fn sizes_grow(keys: u64, more_keys: u64, bits_per_key: f64, more_bits_per_key: f64) {
    let n_blocks =
        |keys, bits_per_key| Sizing::for_bits_per_key(keys, bits_per_key).map(|sizing| sizing.n_blocks());
    if let (Ok(few), Ok(many)) = (n_blocks(keys, bits_per_key), n_blocks(more_keys, bits_per_key)) {
        assert!((few <= many) || keys > more_keys);
        assert!((few >= many) || keys < more_keys);
    }
    if let (Ok(few), Ok(many)) = (n_blocks(keys, bits_per_key), n_blocks(keys, more_bits_per_key)) {
        assert!((few <= many) || bits_per_key > more_bits_per_key);
        assert!((few >= many) || bits_per_key < more_bits_per_key);
    }
}

fn fprs_fall(bits_per_key: f64, more_bits_per_key: f64, k: u32) {
    let rate = sizing::fpr(bits_per_key, k);
    let is_valid = is_bits_per_key(bits_per_key) && (1..=16).contains(&k);
    assert_eq!(rate.is_ok(), is_valid, "{bits_per_key} bits per key, k {k}");
    let Ok(rate) = rate else { return };
    assert!((0.0..=1.0).contains(&rate), "{rate}");
    if let Ok(other) = sizing::fpr(more_bits_per_key, k) {
        let (low, high) = if bits_per_key < more_bits_per_key { (other, rate) } else { (rate, other) };
        assert!(low <= high * (1.0 + 1e-6) + ROUNDING, "k {k}: more bits raise the FPR from {high} to {low}");
    }
}

pub fn the_best_k_is_best(bits_per_key: f64) {
    let Ok(best) = sizing::best_k(bits_per_key) else {
        assert!(!is_bits_per_key(bits_per_key));
        return;
    };
    let rate = |k| sizing::fpr(bits_per_key, k).expect("valid");
    assert!((1..=16).contains(&best));
    // The FPR has one minimum over k.
    for k in [best - 1, best + 1].into_iter().filter(|k| (1..=16).contains(k)) {
        // A ninth probe, which makes lookups slower, must save 1% of the bits.
        let more = (1.01 * bits_per_key).min(MAX_BITS_PER_KEY);
        let least = if (best, k) == (8, 9) { sizing::fpr(more, best).expect("valid") } else { rate(best) };
        assert!(least <= rate(k) * (1.0 + TOLERANCE) + ROUNDING, "{k} probes beat {best}");
    }
}

/// The lowest rates of one to four modules.
pub const LOWEST: [f64; 4] = [1.263e-8, 3.05e-11, 2.142e-12, sizing::MIN_FPR];

/// The rate is kept, by the fewest blocks, and each module but the first saves what it must.
pub fn fprs_are_kept(keys: u64, fpr: f64, most_modules: Option<usize>) {
    // The probability that an absent key has the hash of a present one counts, unless one module is enough.
    let counts = most_modules.map_or(fpr <= 4.966e-4, |most| most > 1);
    let same_hash = if counts { keys as f64 / 2_f64.powi(64) } else { 0.0 };
    let most = most_modules.unwrap_or(4).min(4);
    let least = LOWEST[most - 1] + same_hash;
    match for_fpr(keys, fpr, most_modules) {
        Err(error) if !(fpr > 0.0 && fpr < 1.0) => {
            assert!(shows(&error.to_string(), "both excluded, not ", fpr), "{error}");
        }
        Err(error) if fpr < least => {
            let text = error.to_string();
            // The error's text has six digits, so it names a little more.
            let (named, most) = (lowest(&text), least * (1.0 + 1.1e-5));
            assert!((least.min(1.0)..=most).contains(&named) && named <= 1.0, "{text}, not {least}");
            assert!(shows(&text, "rate of ", fpr), "{text}");
        }
        Err(error) => {
            assert!(error.to_string().starts_with(&format!("{keys} keys of ")), "{error}");
            assert!(keys > MOST_BLOCKS as u64);
        }
        Ok(sizing) => {
            let n_modules = sizing.n_modules();
            let rate = sizing.expected_fpr(keys) + same_hash;
            assert!(rate <= fpr * (1.0 + TOLERANCE) + ROUNDING, "{rate}, requested {fpr}: {sizing:?}");
            let of_module = sizing.n_blocks() / n_modules;
            let foldable = sizing.rounded_to_fold();
            assert_eq!((foldable.n_modules(), foldable.k()), (n_modules, sizing.k()));
            let foldable = foldable.n_blocks() / n_modules;
            assert!(
                foldable.is_multiple_of(2) && foldable - of_module <= (of_module / 100).max(1),
                "{sizing:?}"
            );
            if of_module > 1_000 {
                let smaller = Sizing::new(n_modules * (of_module - of_module / 100), sizing.k());
                let smaller = smaller.and_then(|smaller| smaller.with_modules(n_modules)).expect("smaller");
                assert!(
                    smaller.expected_fpr(keys) + same_hash > fpr,
                    "1 % fewer blocks would do: {sizing:?}"
                );
            }
            assert!(n_modules <= most);
            let left: f64 = if most_modules.is_some() { 0.99 } else { 0.93 };
            if n_modules > 1
                && same_hash < 1e-6 * fpr
                && let Ok(one) = Sizing::for_fpr_within(keys, fpr, 1)
            {
                let most = left.powi(n_modules as i32 - 1) * one.n_blocks() as f64;
                assert!(sizing.n_blocks() as f64 <= most * (1.0 + 1e-9), "{sizing:?}, {one:?}");
            }
        }
    }
}

fn filters_have_their_size(n_blocks: usize, k: u32) {
    // Skips sizes that might not fit into memory. Sizes beyond the address space are an error before any allocation.
    if (100_000..=MOST_BLOCKS).contains(&n_blocks) {
        return;
    }
    match BloomFilter::with_blocks(n_blocks, k) {
        Err(error) if !(1..=16).contains(&k) => assert_eq!(error.to_string(), probes(k, 16)),
        Err(error) => assert_eq!(error.to_string(), error_texts::n_blocks(n_blocks, MOST_BLOCKS as u64)),
        Ok(filter) => assert_eq!((filter.n_blocks(), filter.k()), (n_blocks, k)),
    }
}

/// So a builder keeps the rate.
fn builders_size_as_sizing_does(keys: u64, fpr: f64, most_modules: Option<usize>) {
    // Below, a builder leaves it to its caller to add the probability that two keys have the same hash.
    if fpr < 1e-9 {
        return;
    }
    let builder = FilterBuilder::with_fpr(fpr).and_then(|builder| match most_modules {
        None => Ok(builder),
        Some(most_modules) => builder.with_most_modules(most_modules),
    });
    let sizing = for_fpr(keys, fpr, most_modules);
    assert_eq!(builder.is_ok(), sizing.is_ok(), "{fpr}");
    let (Ok(mut builder), Ok(sizing)) = (builder, sizing) else { return };
    (0..keys).for_each(|i| builder.insert_hash(mix(i)));
    let mut compact = Vec::new();
    builder.clone().finish_compact(&mut compact).unwrap();
    assert_eq!(builder.compact_len(), compact.len(), "{keys} keys, {fpr}");
    assert_eq!(builder.finish().unwrap().sizing(), sizing, "{keys} keys, {fpr}");
    let view = BloomView::from_compact(&compact).expect("our own bytes");
    let is_short = view.byte_len() < 64 * 8 && view.n_modules() == 1;
    assert!(view.sizing() == sizing || is_short, "{keys} keys, {fpr}: {view:?}, {sizing:?}");
}
