//! Each way to use a filter in a function or loop of its own, so that its instructions can be found.

use bloomline::{BloomFilter, OwnedView};

#[unsafe(no_mangle)]
pub fn contains_hash(filter: &BloomFilter, hash: u64) -> bool {
    filter.contains_hash(hash)
}

#[unsafe(no_mangle)]
pub fn insert_hash(filter: &mut BloomFilter, hash: u64) -> bool {
    filter.insert_hash(hash)
}

#[unsafe(no_mangle)]
pub fn contains_batch(filter: &BloomFilter, hashes: &[u64], found: &mut [bool]) {
    filter.contains_batch(hashes, found);
}

#[unsafe(no_mangle)]
pub fn contains_bitmap(filter: &BloomFilter, hashes: &[u64], found: &mut [u8]) {
    filter.contains_bitmap(hashes, found);
}

#[unsafe(no_mangle)]
pub fn insert_batch(filter: &mut BloomFilter, hashes: &[u64]) {
    filter.insert_batch(hashes);
}

#[unsafe(no_mangle)]
pub fn count(filter: &BloomFilter, hashes: &[u64]) -> usize {
    hashes.iter().filter(|&&hash| filter.contains_hash(hash)).count()
}

#[unsafe(no_mangle)]
pub fn insert_each(filter: &mut BloomFilter, hashes: &[u64]) {
    for &hash in hashes {
        filter.insert_hash(hash);
    }
}

#[unsafe(no_mangle)]
pub fn hash_key(filter: &BloomFilter, key: &[u8]) -> u64 {
    filter.hash_key(key)
}

/// What a closure captures, which the compiler knows less about than arguments.
pub struct Captured<'a, F> {
    filter: &'a F,
    hashes: &'a [u64],
}

#[unsafe(no_mangle)]
pub fn for_loop(captured: &Captured<'_, BloomFilter>) -> usize {
    let mut found = 0;
    for &hash in captured.hashes {
        found += usize::from(captured.filter.contains_hash(hash));
    }
    found
}

#[unsafe(no_mangle)]
pub fn for_loop_in_view(captured: &Captured<'_, OwnedView<Vec<u8>>>) -> usize {
    let mut found = 0;
    for &hash in captured.hashes {
        found += usize::from(captured.filter.contains_hash(hash));
    }
    found
}
