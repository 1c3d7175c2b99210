//! A bank answers as its filters do after any program of operations, and survives damaged bytes.
#![no_main]

#[path = "../../tests/common/mod.rs"]
mod common;

libfuzzer_sys::fuzz_target!(|input: common::bank_programs::Input| common::bank_programs::check(input));
