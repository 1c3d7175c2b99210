//! A bank answers as its filters do after any program of operations, and survives damaged bytes.
#![no_main]

#[path = "../../tests/common/mod.rs"]
mod common;

use common::bank::{Input, check};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: Input| check(input));
