//! Gets of missing and present keys from tables without filters, with standard Bloom filters (LevelDB has this kind) and
//! with bloomline's.
//!
//! ```text
//! cargo run --release --example sstable -- [KEYS [BITS_PER_KEY]]      # default: 50000 10
//! ```
//!
//! Exits with code 1 if a get is wrong, or a file cannot be read or written.

mod table;

use std::process::ExitCode;
use std::time::Instant;
use std::{env, fs, process};

use bloomline::hash_key;
use bloomline::sizing::standard::StandardSizing;
use bloomline::sstable::FilterPolicy;
use bloomline::variants::StandardBloomFilter;
use table::{Result, Table};

/// They overlap, as in level 0 of an LSM tree: a get may have to search all of them.
const TABLES: usize = 4;
const ROUNDS: usize = 5;

fn main() -> Result<ExitCode> {
    let mut arguments = env::args().skip(1);
    let present = keys(arguments.next().map_or(Ok(50_000), |number| number.parse())?);
    let bits_per_key = arguments.next().map_or(Ok(10.0), |number| number.parse())?;
    // Each of these sorts right behind a present key.
    let missing: Vec<_> = present.iter().map(|key| format!("{key}\n")).collect();
    let databases = databases(&present, &FilterPolicy::with_bits_per_key(bits_per_key)?)?;
    let mut rounds = [const { [Vec::new(), Vec::new()] }; 3];
    for _ in 0..ROUNDS {
        // Each round times all databases, so that other load on the machine slows all of them.
        for (tables, rounds) in databases.iter().zip(&mut rounds) {
            rounds[0].push(gets(tables, &missing)?);
            rounds[1].push(gets(tables, &present)?);
        }
    }

    let (n, tables, mut wrong, mut missing_ns) = (present.len(), databases[0].len(), 0, Vec::new());
    println!("{n} keys in {tables} tables, files in memory; filters of {bits_per_key} bits per key\n");
    println!("             false      a missing get        a present get      keys");
    println!("filter     positives    reads        ns     reads        ns     lost");
    for (name, rounds) in ["none", "standard", "bloomline"].iter().zip(&mut rounds) {
        let [missing, present] = rounds.each_mut().map(|rounds| {
            rounds.select_nth_unstable_by(ROUNDS / 2, |a: &Gets, b| a.ns.total_cmp(&b.ns)).1 // the median
        });
        print!("{name:10}{:9.2}%{:9.3}", 100.0 * missing.reads / tables as f64, missing.reads);
        println!("{:10.0}{:10.3}{:10.0}{:9}", missing.ns, present.reads, present.ns, n - present.found);
        wrong += n - present.found + missing.found;
        missing_ns.push(missing.ns);
    }
    let [of_none, of_standard] = [0, 1].map(|i| 100.0 * missing_ns[2] / missing_ns[i]);
    println!("\nWith bloomline, a get of a missing key needs {of_none:.1}% of the time without filters,");
    println!("and {of_standard:.0}% of the time with standard filters of the same size.");
    Ok(ExitCode::from(u8::from(wrong > 0)))
}

/// Keys in random order, at least one.
fn keys(count: u64) -> Vec<String> {
    let mut keys: Vec<_> = (0..count.max(1)).map(|i| format!("user{i:012}")).collect();
    keys.sort_by_cached_key(|key| hash_key(key, 1));
    keys
}

type Tables = Vec<(Table, Option<StandardBloomFilter>)>;

/// Tables without filters, with standard filters beside them, and with bloomline's filters in them.
fn databases(keys: &[String], policy: &FilterPolicy) -> Result<[Tables; 3]> {
    let mut databases = [const { Vec::new() }; 3];
    for keys in keys.chunks(keys.len().div_ceil(TABLES)) {
        let mut entries: Vec<_> = keys.iter().map(|key| (key.as_bytes(), &[0; 100][..])).collect();
        entries.sort_unstable();
        let path = env::temp_dir().join(format!("bloomline-{}", process::id()));
        table::write(&path, &entries, policy)?;
        let sizing = StandardSizing::for_bits_per_key(keys.len() as u64, policy.bits_per_key())?;
        let mut standard = StandardBloomFilter::with_sizing(sizing)?;
        keys.iter().for_each(|key| _ = standard.insert(key));
        for (database, standard) in databases.iter_mut().zip([None, Some(standard), None]) {
            database.push((Table::open(&path)?, standard));
        }
        fs::remove_file(&path)?; // open files can still be read
    }
    databases[..2].iter_mut().flatten().for_each(|(table, _)| table.filter = None);
    Ok(databases)
}

/// Per get: data blocks read, and nanoseconds.
struct Gets {
    found: usize,
    reads: f64,
    ns: f64,
}

fn gets(tables: &Tables, keys: &[String]) -> Result<Gets> {
    let reads = || tables.iter().map(|(table, _)| table.reads.get()).sum::<u64>();
    let (reads_before, mut found, start) = (reads(), 0, Instant::now());
    for key in keys {
        let hash = hash_key(key, 0);
        for (table, standard) in tables {
            let is_possibly_present = standard.as_ref().is_none_or(|filter| filter.contains_hash(hash));
            if is_possibly_present && table.get(key.as_bytes(), hash)?.is_some() {
                found += 1;
                break;
            }
        }
    }
    let (ns, n) = (start.elapsed().as_nanos() as f64, keys.len() as f64);
    Ok(Gets { found, reads: (reads() - reads_before) as f64 / n, ns: ns / n })
}
