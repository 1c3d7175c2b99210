//! No program of operations on filters loses a key.
#![no_main]

#[path = "../../tests/common/mod.rs"]
mod common;

use common::model::{Input, check};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: Input| check(input));
