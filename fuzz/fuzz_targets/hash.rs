//! Any key has the hash that the `wyhash` crate computes.
#![no_main]

#[path = "../../tests/common/mod.rs"]
mod common;

use common::hash::{Input, check};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: Input| check(input));
