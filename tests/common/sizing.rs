//! Any numbers give an error or a size that keeps its guarantees.

use arbitrary::Arbitrary;
use bloomline::sizing::{self, MAX_BITS_PER_KEY, MIN_FPR};
use bloomline::{BloomFilter, BuildError, FilterBuilder, Sizing, mix};

#[derive(Arbitrary, Debug)]
pub struct Input {
    keys: u64,
    more_keys: u64,
    bits_per_key: Number,
    more_bits_per_key: Number,
    fpr: Number,
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
    let (keys, more_keys) = (input.keys as usize, input.more_keys as usize);
    sizes_hold_the_requested_bits(keys, bits_per_key);
    sizes_grow(keys, more_keys, bits_per_key, more_bits_per_key);
    fprs_fall(bits_per_key, more_bits_per_key, u32::from(input.k % 20));
    the_best_k_is_best(bits_per_key);
    fprs_are_kept(keys, input.fpr.up_to(1.0));
    filters_have_their_size(input.n_blocks as usize, u32::from(input.k % 20));
    builders_keep_their_size(keys % 300, bits_per_key);
}

fn is_bits_per_key(value: f64) -> bool {
    value > 0.0 && value <= MAX_BITS_PER_KEY
}

fn sizes_hold_the_requested_bits(keys: usize, bits_per_key: f64) {
    match Sizing::for_bits_per_key(keys, bits_per_key) {
        Err(BuildError::BitsPerKey { value, .. }) => {
            assert!(!is_bits_per_key(bits_per_key) && value.to_bits() == bits_per_key.to_bits());
        }
        Err(BuildError::Keys { expected_keys, bits_per_key: bits, .. }) => {
            assert!((expected_keys, bits) == (keys, bits_per_key));
            assert!(keys as f64 * bits_per_key / 512.0 > 0.999 * MOST_BLOCKS as f64);
        }
        Err(error) => panic!("{error}"),
        Ok(sizing) => {
            assert!(is_bits_per_key(bits_per_key));
            let blocks = keys as f64 * bits_per_key / 512.0;
            let n_blocks = sizing.n_blocks() as f64;
            assert!(n_blocks >= blocks && n_blocks <= (blocks + 1.0).max(1.0), "{sizing:?}");
            let given = n_blocks * 512.0 / keys.max(1) as f64;
            assert_eq!(sizing.k(), sizing::best_k(given.min(MAX_BITS_PER_KEY)).expect("above 0"));
            assert!(given >= MAX_BITS_PER_KEY || given >= bits_per_key * (1.0 - 1e-12));
        }
    }
}

fn sizes_grow(keys: usize, more_keys: usize, bits_per_key: f64, more_bits_per_key: f64) {
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

fn the_best_k_is_best(bits_per_key: f64) {
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

fn fprs_are_kept(keys: usize, fpr: f64) {
    match Sizing::for_fpr(keys, fpr) {
        Err(BuildError::Fpr { value, .. }) => {
            assert!(!(MIN_FPR..1.0).contains(&fpr) && value.to_bits() == fpr.to_bits());
        }
        Err(BuildError::Keys { expected_keys, .. }) => assert!(expected_keys == keys && keys > MOST_BLOCKS),
        Err(error) => panic!("{error}"),
        Ok(sizing) => {
            let rate = sizing.fpr(keys as u64);
            assert!(rate <= fpr * (1.0 + TOLERANCE) + ROUNDING, "{rate}, requested {fpr}");
            let foldable = sizing.foldable();
            let more = foldable.n_blocks() - sizing.n_blocks();
            assert!(
                foldable.n_blocks().is_multiple_of(2) && more <= (sizing.n_blocks() / 100).max(1),
                "{sizing:?}"
            );
            if sizing.n_blocks() > 1_000 {
                let smaller =
                    Sizing::new(sizing.n_blocks() - sizing.n_blocks() / 100, sizing.k()).expect("smaller");
                assert!(smaller.fpr(keys as u64) > fpr, "1 % fewer blocks would do");
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
        Err(BuildError::Probes { k: found, .. }) => assert!(found == k && !(1..=16).contains(&k)),
        Err(BuildError::Blocks { n_blocks: found, most, .. }) => {
            assert!(found == n_blocks as u64 && most == MOST_BLOCKS as u64);
        }
        Err(error) => panic!("{error}"),
        Ok(filter) => assert_eq!((filter.n_blocks(), filter.k()), (n_blocks, k)),
    }
}

fn builders_keep_their_size(keys: usize, bits_per_key: f64) {
    let Ok(mut builder) = FilterBuilder::with_bits_per_key(bits_per_key) else {
        assert!(!is_bits_per_key(bits_per_key));
        return;
    };
    for i in 0..keys as u64 {
        builder.insert_hash(mix(i));
    }
    let mut compact = Vec::new();
    builder.finish_compact(&mut compact).unwrap();
    super::assert_lanes((compact.len() - 1) / 8, keys as f64 * bits_per_key / 64.0);
}
