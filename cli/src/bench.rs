//! `bloomline bench`
#![forbid(unsafe_code)]

use std::hint::black_box;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Result;
use bloomline::{BloomFilter, Kernel, mix};
use clap::Args;

use crate::output::Printer;

/// Measure lookup speed on this machine
#[derive(Args)]
#[command(after_help = "\
Prints nanoseconds per lookup of absent keys, by each kernel, for three filter
sizes: 10 bits per key, one thread, keys hashed beforehand, minimum of many
rounds. `batch` looks up many keys at once, like `bloomline check`; `single`
looks up one key at a time. Other load on the machine affects the results.
BLOOMLINE_KERNEL in the environment excludes kernels faster than the one that it
names.")]
pub struct Arguments {
    /// How long to measure, in seconds
    #[arg(long, default_value = "30", value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=3600))]
    seconds: u64,
}

/// For the cache next to a core, the cache that cores share, and memory.
const SIZES: [(&str, usize); 3] = [("16 KiB", 16 << 10), ("4 MiB", 4 << 20), ("256 MiB", 256 << 20)];
const LOOKUPS: usize = 1 << 16;

pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let mut printer = Printer::new();
    let kernels: Vec<Kernel> = Kernel::available().collect();
    let names: Vec<_> = kernels.iter().map(|kernel| kernel.name()).collect();
    printer.print(format!("kernels: {}; chosen: {}\n\n", names.join(", "), Kernel::active()))?;
    printer
        .print(format!("{:10}  {:>17}  {:>17}  {:>17}\n", "ns per", SIZES[0].0, SIZES[1].0, SIZES[2].0))?;
    printer.print(format!("{:10}{}\n", "lookup", format!("  {:>8} {:>8}", "batch", "single").repeat(3)))?;
    let each = Duration::from_secs(arguments.seconds) / (SIZES.len() * kernels.len()) as u32;
    let mut columns = Vec::new();
    for (_, size_bytes) in SIZES {
        let mut filter = BloomFilter::with_blocks(size_bytes / 64, 6)?;
        let hashes: Vec<u64> = (0..LOOKUPS as u64).map(mix).collect();
        let keys = (size_bytes as u64 * 8 / 10).div_ceil(LOOKUPS as u64);
        let mut batch = vec![0; LOOKUPS.min(size_bytes * 8 / 10)];
        for i in 0..keys {
            for (j, hash) in (0..).zip(&mut batch) {
                *hash = mix(u64::MAX - i * LOOKUPS as u64 - j);
            }
            filter.insert_batch(&batch);
        }
        let mut column = Vec::new();
        for &kernel in &kernels {
            filter = filter.with_kernel(kernel);
            column.push(least(&filter, &hashes, each));
        }
        columns.push(column);
    }
    for (i, kernel) in kernels.iter().enumerate() {
        let cells: String =
            columns.iter().map(|column| format!("  {:8.2} {:8.2}", column[i].0, column[i].1)).collect();
        printer.print(format!("{:10}{cells}\n", kernel.name()))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The minimum nanoseconds per lookup, in batches and one at a time.
fn least(filter: &BloomFilter, hashes: &[u64], time: Duration) -> (f64, f64) {
    let mut found = vec![false; hashes.len()];
    let (mut batch, mut single) = (f64::INFINITY, f64::INFINITY);
    let nanoseconds = |start: Instant| start.elapsed().as_nanos() as f64 / hashes.len() as f64;
    let begin = Instant::now();
    while begin.elapsed() < time || single.is_infinite() {
        let start = Instant::now();
        filter.contains_batch(hashes, &mut found);
        black_box(&found);
        batch = batch.min(nanoseconds(start));
        let start = Instant::now();
        black_box(hashes.iter().filter(|&&hash| filter.contains_hash(hash)).count());
        single = single.min(nanoseconds(start));
    }
    (batch, single)
}
