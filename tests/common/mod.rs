//! Each fuzzed property is written once, under the name of its fuzz target. cargo-fuzz runs it in `fuzz/`; the saved
//! corpus and proptest run it in `tests/`.
#![allow(dead_code, reason = "each driver uses only the properties that it runs")]

/// The number of cases of a property. Under miri only a few, because each takes seconds.
pub const fn cases(many: u32) -> u32 {
    if cfg!(miri) { 3 } else { many }
}

/// Asserts that a builder makes a filter of `lanes` lanes for `needed` lanes: less than one lane more in a short
/// filter, less than one block more in a filter of whole blocks.
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
pub mod frontier;
pub mod hash;
pub mod lockstep;
pub mod model;
pub mod modular;
pub mod scalable;
pub mod shrinking;
pub mod sizing;
pub mod standard;
pub mod variants;
