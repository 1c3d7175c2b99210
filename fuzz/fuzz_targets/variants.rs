//! Programs of operations on counting, scalable and standard filters and on frontiers keep what each promises.
#![no_main]

#[path = "../../tests/common/mod.rs"]
mod common;

use common::variants::{Input, check};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: Input| check(input));
