//! `bloomline bench`
#![forbid(unsafe_code)]

use std::hint::black_box;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Result;
use bloomline::{BloomFilter, Kernel, mix};
use clap::Args;
use serde_json::json;

use crate::output::Printer;
use crate::progress::Progress;

/// Measure lookup speed on this machine
#[derive(Args)]
#[command(after_help = "\
Prints nanoseconds per lookup of absent keys, by each kernel, for three filter
sizes: 10 bits per key, one thread, keys hashed beforehand, minimum of many
rounds. `batch` looks up many keys at once, like `bloomline check`; `single`
looks up one key at a time. Other load on the machine affects the results.
BLOOMLINE_KERNEL in the environment excludes kernels faster than the one that it
names. --json prints one object: chosen (a kernel), and results, a list of
kernel, bytes, batch_ns and single_ns.")]
pub struct Arguments {
    /// How long to measure, in seconds
    #[arg(long, default_value = "30", value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=3600))]
    seconds: u64,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

/// For the cache next to a core, the cache that cores share, and memory.
const SIZES: [(&str, usize); 3] = [("16 KiB", 16 << 10), ("4 MiB", 4 << 20), ("256 MiB", 256 << 20)];
const LOOKUPS: usize = 1 << 16;

pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let time = Duration::from_secs(arguments.seconds);
    let begin = Instant::now();
    let progress = Progress::new("measuring", Some(time.as_nanos() as u64));
    let kernels: Vec<Kernel> = Kernel::available().collect();
    let hashes: Vec<u64> = (0..LOOKUPS as u64).map(mix).collect();
    let mut to_measure = (SIZES.len() * kernels.len()) as u32;
    let mut columns = Vec::new();
    for (_, byte_len) in SIZES {
        let mut filter = full(byte_len)?;
        let mut column = Vec::new();
        for &kernel in &kernels {
            filter = filter.with_kernel(kernel);
            // Filling the filters takes time too.
            let each = time.saturating_sub(begin.elapsed()) / to_measure;
            column.push(least(&filter, &hashes, each, &progress));
            to_measure -= 1;
        }
        columns.push(column);
    }
    drop(progress);
    let print = if arguments.json { json } else { table };
    Printer::new().print(print(&kernels, &columns))?;
    Ok(ExitCode::SUCCESS)
}

/// Nanoseconds per lookup in batches and one at a time, for each kernel.
type Column = Vec<(f64, f64)>;

fn table(kernels: &[Kernel], columns: &[Column]) -> String {
    let names: Vec<_> = kernels.iter().map(|kernel| kernel.name()).collect();
    let mut table = format!("kernels: {}; chosen: {}\n\n", names.join(", "), Kernel::active());
    table += &format!("{:10}  {:>17}  {:>17}  {:>17}\n", "ns per", SIZES[0].0, SIZES[1].0, SIZES[2].0);
    table += &format!("{:10}{}\n", "lookup", format!("  {:>8} {:>8}", "batch", "single").repeat(3));
    for (i, name) in names.iter().enumerate() {
        let cell = |column: &Column| format!("  {:8.2} {:8.2}", column[i].0, column[i].1);
        table += &format!("{name:10}{}\n", columns.iter().map(cell).collect::<String>());
    }
    table
}

fn json(kernels: &[Kernel], columns: &[Column]) -> String {
    let results = SIZES.iter().zip(columns).flat_map(|((_, bytes), column)| {
        kernels.iter().zip(column).map(move |(kernel, (batch, single))| {
            json!({ "kernel": kernel.name(), "bytes": bytes, "batch_ns": batch, "single_ns": single })
        })
    });
    let json = json!({ "chosen": Kernel::active().name(), "results": results.collect::<Vec<_>>() });
    format!("{json:#}\n")
}

/// A filter with 10 bits per key. Its blocks repeat, which takes a tenth of the time of inserting that many keys and is
/// as good for lookups of absent keys.
fn full(byte_len: usize) -> Result<BloomFilter> {
    let n_blocks = byte_len / 64;
    let n_distinct = n_blocks.min(1 << 14);
    let mut distinct = BloomFilter::with_blocks(n_distinct, 6)?;
    let n_keys = (n_distinct * 512 / 10) as u64;
    distinct.insert_batch(&(0..n_keys).map(|i| mix(u64::MAX - i)).collect::<Vec<_>>());
    let bytes = distinct.to_compact();
    let (lanes, end) = bytes.split_at(n_distinct * 64);
    let mut repeated = lanes.repeat(n_blocks / n_distinct);
    repeated.extend_from_slice(end);
    Ok(BloomFilter::from_compact(&repeated)?)
}

/// The minimum nanoseconds per lookup, in batches and one at a time.
fn least(filter: &BloomFilter, hashes: &[u64], time: Duration, progress: &Progress) -> (f64, f64) {
    let mut found = vec![false; hashes.len()];
    let (mut batch, mut single) = (f64::INFINITY, f64::INFINITY);
    let nanoseconds = |start: Instant| start.elapsed().as_nanos() as f64 / hashes.len() as f64;
    let begin = Instant::now();
    while begin.elapsed() < time || single.is_infinite() {
        let round = Instant::now();
        let start = Instant::now();
        filter.contains_batch(hashes, &mut found);
        black_box(&found);
        batch = batch.min(nanoseconds(start));
        let start = Instant::now();
        black_box(hashes.iter().filter(|&&hash| filter.contains_hash(hash)).count());
        single = single.min(nanoseconds(start));
        progress.add(round.elapsed().as_nanos() as u64);
    }
    (batch, single)
}
