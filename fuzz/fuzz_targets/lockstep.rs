//! Every kernel of this CPU agrees with the reference.
#![no_main]

#[path = "../../tests/common/mod.rs"]
mod common;

use common::lockstep::{Input, check};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: Input| check(input));
