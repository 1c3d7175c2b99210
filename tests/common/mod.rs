//! Each fuzzed property is written once, under the name of its fuzz target. cargo-fuzz runs it in `fuzz/`, and
//! `tests/corpus.rs` runs it over the saved corpus and bytes from proptest.
#![allow(dead_code, reason = "each driver uses only the properties that it runs")]

use bloomline::{BloomFilter, Sizing};

/// The number of cases of a property. Under miri only a few, because each runs for seconds.
pub const fn cases(many: u32) -> u32 {
    if cfg!(miri) { 3 } else { many }
}

/// A number of modules from a byte of fuzzed input, mostly 1 to 3.
pub fn n_modules(byte: u8) -> usize {
    [1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 4, 9, 16][usize::from(byte / 16)]
}

/// An empty filter of `n_modules` modules of `module_blocks` blocks each.
pub fn of_modules(n_modules: usize, module_blocks: usize, k: u32) -> BloomFilter {
    let sizing = Sizing::new(n_modules * module_blocks, k).and_then(|sizing| sizing.with_modules(n_modules));
    BloomFilter::with_sizing(sizing.expect("in range")).expect("enough memory")
}

/// Asserts that a builder rounds up `needed` lanes to `lanes` as it should. A short filter has less than one lane more,
/// and a filter of whole blocks less than one block more.
pub fn assert_lanes(lanes: usize, needed: f64) {
    let needed = needed.max(1.0);
    let slack = if lanes < 64 { 1.0 } else { 8.0 };
    assert!(lanes < 64 || lanes.is_multiple_of(8), "no filter has {lanes} lanes");
    assert!((needed..needed + slack).contains(&(lanes as f64)), "{lanes} lanes, {needed} needed");
}

pub mod allocations;
pub mod bank;
pub mod counting;
pub mod decode;
pub mod errors;
pub mod format;
pub mod frontier;
pub mod hash;
pub mod lockstep;
pub mod model;
pub mod scalable;
pub mod shrinking;
pub mod sizing;
pub mod standard;
pub mod variants;
