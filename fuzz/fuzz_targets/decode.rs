//! Arbitrary bytes decode to an error or a filter, in every format.
#![no_main]

#[path = "../../tests/common/mod.rs"]
mod common;

use common::decode::{Input, check};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: Input| check(input));
