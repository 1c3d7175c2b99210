//! Each property once, by the name of its fuzz target: driven by cargo-fuzz in `fuzz/`, by the saved corpus and by
//! proptest in `tests/`.
#![allow(dead_code, reason = "each driver takes the properties that it drives")]

/// Cases of a property: a few where miri takes seconds for each.
pub const fn cases(many: u32) -> u32 {
    if cfg!(miri) { 3 } else { many }
}

pub mod allocations;
pub mod decode;
pub mod lockstep;
pub mod model;
pub mod sizing;
