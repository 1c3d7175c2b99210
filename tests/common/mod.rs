//! Each property once, by the name of its fuzz target: driven by cargo-fuzz in `fuzz/`, by the saved corpus and by
//! proptest in `tests/`.
#![allow(dead_code, reason = "each driver takes the properties that it drives")]

/// Cases of a property: a few where miri takes seconds for each.
pub const fn cases(many: u32) -> u32 {
    if cfg!(miri) { 3 } else { many }
}

/// A filter of `lanes` lanes is one that a builder makes where `needed` are needed: a fraction of a lane more, or less
/// than a block where there are whole blocks.
pub fn assert_lanes(lanes: usize, needed: f64) {
    let needed = needed.max(1.0);
    let slack = if lanes < 64 { 1.0 } else { 8.0 };
    assert!(lanes < 64 || lanes.is_multiple_of(8), "{lanes} lanes are no filter");
    assert!((needed..needed + slack).contains(&(lanes as f64)), "{lanes} lanes for {needed}");
}

pub mod allocations;
pub mod counting;
pub mod decode;
pub mod frontier;
pub mod lockstep;
pub mod model;
pub mod scalable;
pub mod sizing;
pub mod standard;
pub mod variants;
