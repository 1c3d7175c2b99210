//! Arbitrary bytes decode to an error or a filter, in every format.
#![no_main]

#[path = "../../tests/common/mod.rs"]
mod common;

libfuzzer_sys::fuzz_target!(|input: common::decode::Input| common::decode::check(input));
