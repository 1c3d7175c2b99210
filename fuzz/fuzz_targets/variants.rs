//! Counting, scalable and standard filters and frontiers keep their guarantees under any program of operations.
#![no_main]

#[path = "../../tests/common/mod.rs"]
mod common;

use common::variants::{Input, check};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: Input| check(input));
