//! Programs of operations on counting, scalable and standard filters and on sieves keep what each promises.
#![no_main]

#[path = "../../tests/common/mod.rs"]
mod common;

use common::family::{Input, check};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: Input| check(input));
