//! Every kernel of this CPU agrees with the reference.
#![no_main]

#[path = "../../tests/common/mod.rs"]
mod common;

libfuzzer_sys::fuzz_target!(|input: common::kernel_comparison::Input| common::kernel_comparison::check(
    input
));
