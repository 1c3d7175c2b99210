//! What the Python package is measured against: the same keys, hashed and inserted or looked up in batches by the
//! Rust crate, on one thread.
//!
//! Usage: `bloomline-python-baseline KEYS`. Then one job a line on standard input, with the file of the filter that it
//! starts from: `int64 update PATH`, `int64 contains PATH` or `text contains PATH`. The answer is one line:
//! nanoseconds, and the filter's fill ratio after `update` or the number of keys found by `contains`.
//! `compare.py` writes the files, and compares the answers with its own.
#![forbid(unsafe_code)]

use std::error::Error;
use std::io::{BufRead, Write, stdin};
use std::time::Instant;

use bloomline::{BloomFilter, hash_key, mix};

/// Hashes that are made before the filter is touched: the fastest of 256 to all, for both sizes of filter.
const BATCH: usize = 16_384;

/// A column of text as Arrow lays it out: key `i` is `data[offsets[i]..offsets[i + 1]]`.
struct Text {
    offsets: Vec<i32>,
    data: Vec<u8>,
}

impl Text {
    fn get(&self, i: usize) -> &[u8] {
        &self.data[self.offsets[i] as usize..self.offsets[i + 1] as usize]
    }
}

fn update(filter: &mut BloomFilter, n_keys: usize, hash: impl Fn(usize) -> u64) {
    let mut hashes = [0; BATCH];
    for start in (0..n_keys).step_by(BATCH) {
        let hashes = &mut hashes[..BATCH.min(n_keys - start)];
        hashes.iter_mut().enumerate().for_each(|(i, slot)| *slot = hash(start + i));
        filter.insert_batch(hashes);
    }
}

fn contains(filter: &BloomFilter, n_keys: usize, hash: impl Fn(usize) -> u64) -> Vec<bool> {
    let mut found = vec![false; n_keys];
    let mut hashes = [0; BATCH];
    for (batch, found) in found.chunks_mut(BATCH).enumerate() {
        let hashes = &mut hashes[..found.len()];
        hashes.iter_mut().enumerate().for_each(|(i, slot)| *slot = hash(batch * BATCH + i));
        filter.contains_batch(hashes, found);
    }
    found
}

fn run(job: &str, ints: &[i64], text: &Text) -> Result<String, Box<dyn Error>> {
    let &[keys, job, path] = &job.splitn(3, ' ').collect::<Vec<_>>()[..] else {
        return Err(format!("a job is KEYS JOB PATH, not {job:?}").into());
    };
    let mut filter = BloomFilter::from_standalone(&std::fs::read(path)?)?;
    let int_hash = |i: usize| hash_key(ints[i], 0);
    let text_hash = |i: usize| hash_key(text.get(i), 0);
    let mut found = Vec::new();
    let started = Instant::now();
    match (keys, job) {
        ("int64", "contains") => found = contains(&filter, ints.len(), int_hash),
        ("text", "contains") => found = contains(&filter, ints.len(), text_hash),
        ("int64", "update") => update(&mut filter, ints.len(), int_hash),
        _ => return Err(format!("unknown job {keys} {job}").into()),
    }
    let nanoseconds = started.elapsed().as_nanos();
    Ok(match job {
        "update" => format!("{nanoseconds} {}", filter.fill_ratio()),
        _ => format!("{nanoseconds} {}", found.iter().filter(|&&found| found).count()),
    })
}

fn main() -> Result<(), Box<dyn Error>> {
    let n_keys: u64 = std::env::args().nth(1).ok_or("usage: bloomline-python-baseline KEYS")?.parse()?;
    let ints: Vec<i64> = (0..n_keys).map(|i| (mix(i) >> 1) as i64).collect();
    let mut text = Text { offsets: vec![0], data: Vec::new() };
    for int in &ints {
        write!(text.data, "user:{int:019}")?;
        text.offsets.push(i32::try_from(text.data.len())?);
    }
    for job in stdin().lock().lines() {
        println!("{}", run(&job?, &ints, &text)?);
    }
    Ok(())
}
