//! Any numbers give an error or a size that keeps its guarantees.
#![no_main]

#[path = "../../tests/common/mod.rs"]
mod common;

use common::sizing::{Input, check};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: Input| check(input));
