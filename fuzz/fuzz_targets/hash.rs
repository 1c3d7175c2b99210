//! Any key has the hash that the `wyhash` crate computes.
#![no_main]

#[path = "../../tests/common/mod.rs"]
mod common;

libfuzzer_sys::fuzz_target!(|input: common::hash_oracle::Input| common::hash_oracle::check(input));
