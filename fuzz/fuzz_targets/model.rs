//! No program of operations on filters loses a key.
#![no_main]

#[path = "../../tests/common/mod.rs"]
mod common;

libfuzzer_sys::fuzz_target!(|input: common::model::Input| common::model::check(input));
