//! What a filter saves: gets of missing and present keys from tables without filters, with standard Bloom filters (LevelDB
//! has this kind) and with bloomline's, and the time of lookups in the filters of many tables.
//!
//! ```text
//! cargo run --release --example sstable -- [KEYS [BITS_PER_KEY]]      # default: 50000 10
//! ```
//!
//! Exits with code 1 if a get is wrong, or a file cannot be read or written.

mod table;

use std::error::Error;
use std::hint::black_box;
use std::process::ExitCode;
use std::str::FromStr;
use std::time::Instant;
use std::{env, fs, process};

use bloomline::sizing::standard::StandardSizing;
use bloomline::sstable::FilterPolicy;
use bloomline::variants::StandardBloomFilter;
use bloomline::{BloomFilter, Sizing, hash_key, mix};
use table::{Result, Table};

/// They overlap, as in level 0 of an LSM tree: a get may have to search all of them.
const TABLES: usize = 4;
/// As a server holds. With a million keys in four tables, they have 80 MB, more than most caches.
const FILTERS: u64 = 256;
const LOOKUPS: u64 = 1_000_000;
/// At most, because without filters each reads four blocks.
const MISSING: usize = 100_000;
const ROUNDS: usize = 5;

fn main() -> Result<ExitCode> {
    let mut arguments = env::args().skip(1);
    let (count, bits_per_key) = (argument(arguments.next(), 50_000)?, argument(arguments.next(), 10.0)?);
    if let Some(text) = arguments.next() {
        return Err(refused(&text));
    }
    let present = keys(count);
    // Each of these sorts right behind a present key.
    let missing: Vec<_> = present.iter().take(MISSING).map(|key| format!("{key}\n")).collect();
    let n = present.len();
    let policy = FilterPolicy::with_bits_per_key(bits_per_key)?;
    eprintln!("writing {} ...", counted(n, "key"));
    let databases = databases(&present, &policy)?;
    let n_tables = databases[0].len();

    print!("{} in {}, ", counted(n, "key"), counted(n_tables, "table"));
    println!("filters of {bits_per_key} bits per key\n");
    println!("             false     data blocks read by a get of a      keys");
    println!("filter     positives     missing key    present key        lost");
    let (mut wrong, mut missing_gets) = (0, Vec::new());
    for (name, tables) in ["none", "standard", "bloomline"].iter().zip(&databases) {
        let (missing, present) = (gets(tables, &missing)?, gets(tables, &present)?);
        print!("{name:10}{:9.2}%{:16.3}", 100.0 * missing.reads / n_tables as f64, missing.reads);
        println!("{:15.3}{:12}", present.reads, n - present.found);
        wrong += n - present.found + missing.found;
        missing_gets.push(missing);
    }
    let (none, bloomline) = (&missing_gets[0], &missing_gets[2]);
    let spared = 100.0 * (1.0 - bloomline.reads / none.reads);
    println!("\nWith bloomline's filters, a get of a missing key reads {spared:.1}% fewer data blocks,");
    println!("and runs in {:.1}% of the time.", 100.0 * bloomline.ns / none.ns);

    eprintln!("\nfilling the filters of {FILTERS} such tables ...");
    let [standard, bloomline] = lookups(n.div_ceil(TABLES) as u64, &policy)?;
    println!("\nA lookup in one of {FILTERS} such filters runs in {bloomline:.1} ns,");
    println!("and in one of {FILTERS} standard filters in {standard:.1} ns.");
    Ok(ExitCode::from(u8::from(wrong > 0)))
}

fn argument<T: FromStr>(text: Option<String>, default: T) -> Result<T> {
    let Some(text) = text else { return Ok(default) };
    text.parse().map_err(|_| refused(&text))
}

fn refused(argument: &str) -> Box<dyn Error> {
    format!("unexpected argument {argument}: give KEYS and BITS_PER_KEY, two numbers, as in 50000 10").into()
}

fn counted(n: usize, noun: &str) -> String {
    format!("{n} {noun}{}", if n == 1 { "" } else { "s" })
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
            let table = Table::open(&path)?;
            if let Err(error) = &table.filter {
                eprintln!("gets will read a table without its filter, because {error}");
            }
            database.push((table, standard));
        }
        fs::remove_file(&path)?; // open files can still be read
    }
    databases[..2].iter_mut().flatten().for_each(|(table, _)| table.filter = Err("it is not asked".into()));
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

/// Nanoseconds per lookup of an absent key in one of many filters, standard ones and bloomline's: the median of rounds.
fn lookups(keys: u64, policy: &FilterPolicy) -> Result<[f64; 2]> {
    let mut standard =
        StandardBloomFilter::with_sizing(StandardSizing::for_bits_per_key(keys, policy.bits_per_key())?)?;
    let mut blocked = BloomFilter::with_sizing(Sizing::for_bits_per_key(keys, policy.bits_per_key())?)?;
    (0..keys).map(mix).for_each(|hash| _ = (standard.insert_hash(hash), blocked.insert_hash(hash)));
    // Tables of the same keys do as well: their filters lie in memory of their own.
    let (standard, blocked) = (vec![standard; FILTERS as usize], vec![blocked; FILTERS as usize]);
    let mut rounds = [const { Vec::new() }; 2];
    for _ in 0..ROUNDS {
        // Each round times both, so that other load on the machine slows both.
        rounds[0].push(ns(keys, |filter, hash| standard[filter].contains_hash(hash)));
        rounds[1].push(ns(keys, |filter, hash| blocked[filter].contains_hash(hash)));
    }
    Ok(rounds.map(|mut ns| *ns.select_nth_unstable_by(ROUNDS / 2, f64::total_cmp).1))
}

/// Nanoseconds per call, with a filter in random order and the hash of an absent key.
fn ns(keys: u64, contains: impl Fn(usize, u64) -> bool) -> f64 {
    let start = Instant::now();
    let absent = (keys..keys + LOOKUPS).map(mix);
    black_box(absent.filter(|&hash| contains((hash % FILTERS) as usize, hash)).count());
    start.elapsed().as_nanos() as f64 / LOOKUPS as f64
}
