//! Arbitrary bytes are an error or a filter, as compact and as standalone bytes.
#![no_main]

#[path = "../../tests/common/mod.rs"]
mod common;

use common::decode::{Input, check};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: Input| check(input));
