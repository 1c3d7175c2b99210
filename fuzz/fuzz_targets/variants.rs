//! Counting, scalable and standard filters and frontiers keep their guarantees under any program of operations.
#![no_main]

#[path = "../../tests/common/mod.rs"]
mod common;

libfuzzer_sys::fuzz_target!(|input: common::variants::Input| common::variants::check(input));
