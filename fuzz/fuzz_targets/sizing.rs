//! Any numbers give an error or a size that keeps its guarantees.
#![no_main]

#[path = "../../tests/common/mod.rs"]
mod common;

libfuzzer_sys::fuzz_target!(|input: common::sizing_guarantees::Input| common::sizing_guarantees::check(
    input
));
