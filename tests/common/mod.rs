//! What several tests use, and each fuzzed property. A property is a file with a function `check`, which cargo-fuzz runs
//! in `fuzz/`, and `tests/corpus.rs` over the saved corpus and bytes from proptest.
#![allow(dead_code, reason = "each driver uses only the properties that it runs")]

use bloomline::{BloomFilter, Error, Kernel, Sizing, mix};

/// The number of cases of a property. Under miri only a few, because each runs for seconds.
pub const fn cases(many: u32) -> u32 {
    if cfg!(miri) { 3 } else { many }
}

/// A number of modules from a byte of fuzzed input, mostly 1 to 3.
pub fn n_modules(byte: u8) -> usize {
    [1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 4, 9, 16][usize::from(byte / 16)]
}

/// An empty filter of `n_modules` modules of `module_blocks` blocks each.
pub fn of_modules(n_modules: usize, module_blocks: usize, k: u32) -> BloomFilter {
    let sizing = Sizing::new(n_modules * module_blocks, k).and_then(|sizing| sizing.with_modules(n_modules));
    BloomFilter::with_sizing(sizing.expect("in range")).expect("enough memory")
}

/// Asserts that bytes that are cut at a place, or changed there, are refused. Returns the changed bytes.
pub fn damaged<F>(
    mut bytes: Vec<u8>,
    at: usize,
    change: u8,
    read: impl Fn(&[u8]) -> Result<F, Error>,
) -> Vec<u8> {
    let at = at % bytes.len();
    assert!(read(&bytes[..at]).is_err(), "cut at {at}");
    assert!(at == 0 || read(&bytes[at..]).is_err(), "from {at} on");
    bytes[at] ^= change;
    assert_eq!(read(&bytes).is_err(), change != 0, "changed at {at}");
    bytes
}

/// `mix` of consecutive numbers.
pub fn hashes(first: u16, count: u64) -> Vec<u64> {
    (0..count).map(|i| mix(u64::from(first) + i)).collect()
}

/// One of this CPU's kernels.
pub fn kernel(number: u8) -> Kernel {
    let kernels: Vec<_> = Kernel::available().collect();
    kernels[usize::from(number) % kernels.len()]
}

/// What `write` makes of a bitmap for this many answers, in which all bits are set.
pub fn bitmap_of(answers: usize, write: impl FnOnce(&mut [u8])) -> Vec<u8> {
    let mut bitmap = vec![0xff; answers.div_ceil(8)];
    write(&mut bitmap);
    bitmap
}

/// A bit for each answer, the first in the lowest bit of the first byte.
pub fn packed(answers: &[bool]) -> Vec<u8> {
    let byte = |answers: &[bool]| answers.iter().enumerate().map(|(i, &answer)| u8::from(answer) << i).sum();
    answers.chunks(8).map(byte).collect()
}

pub mod allocations;
pub mod bank_programs;
pub mod counting_programs;
pub mod decode;
pub mod error_texts;
pub mod format;
pub mod frontier_programs;
pub mod hash_oracle;
pub mod kernel_comparison;
pub mod model;
pub mod scalable_programs;
pub mod shrinking;
pub mod sizing_guarantees;
pub mod standard_programs;
pub mod variants;
