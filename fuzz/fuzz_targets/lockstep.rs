//! Every kernel of this CPU agrees with the reference.
#![no_main]

#[path = "../../tests/common/properties.rs"]
mod properties;

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
struct Lockstep {
    k: u8,
    n_blocks: u16,
    inserted: Vec<u64>,
    asked: Vec<u64>,
}

fuzz_target!(|input: Lockstep| {
    let k = u32::from(input.k % 16) + 1;
    let n_blocks = usize::from(input.n_blocks % 300) + 1;
    properties::kernels_agree(&input.inserted, &input.asked, k, n_blocks);
});
