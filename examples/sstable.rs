//! Bloomline inside a LevelDB-format database: what it saves, and that it loses nothing.
//!
//! ```text
//! cargo run --release --example sstable
//! ```
//!
//! Writes the same keys into three databases of the `rusty-leveldb` crate, without a filter, with its own Bloom filter
//! and with bloomline's, and asks each for keys that it has and for keys that it has not.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::rc::Rc;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use clap::Parser;
use indicatif::{ProgressBar, ProgressStyle};
use rusty_leveldb::{DB, FilterPolicy, Options};

/// All that it takes to give `rusty-leveldb` a filter of bloomline's.
struct Bloomline(bloomline::sstable::FilterPolicy);

impl FilterPolicy for Bloomline {
    fn name(&self) -> &'static str {
        bloomline::sstable::FilterPolicy::NAME
    }

    /// The keys lie end to end in `keys`, each from its offset to the next one's.
    fn create_filter(&self, keys: &[u8], offsets: &[usize]) -> Vec<u8> {
        let ends = offsets.iter().skip(1).copied().chain([keys.len()]);
        let mut filter = Vec::new();
        self.0.create_filter(offsets.iter().zip(ends).map(|(&start, end)| &keys[start..end]), &mut filter);
        filter
    }

    fn key_may_match(&self, key: &[u8], filter: &[u8]) -> bool {
        self.0.key_may_match(key, filter)
    }
}

/// Reads every data block that a key might be in. One byte, as `rusty-leveldb` insists on a filter.
struct NoFilter;

impl FilterPolicy for NoFilter {
    fn name(&self) -> &'static str {
        "bloomline.example.NoFilter"
    }

    fn create_filter(&self, _keys: &[u8], _offsets: &[usize]) -> Vec<u8> {
        vec![0]
    }

    fn key_may_match(&self, _key: &[u8], _filter: &[u8]) -> bool {
        true
    }
}

/// Show what bloomline's filters save in a LevelDB-format database.
#[derive(Parser)]
#[command(after_help = "Examples:
  sstable --bits-per-key 16
  sstable --keys words.txt --db /tmp/words")]
struct Arguments {
    /// Bits per key of both filters, 1 to 64
    #[arg(long, default_value_t = 10, allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..=64))]
    bits_per_key: u32,
    /// How many keys to write, half of them as db_bench writes them and half as YCSB does
    #[arg(long, default_value_t = 200_000, allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    count: u32,
    /// Write the keys of this file instead, one a line, any bytes
    #[arg(long, value_name = "FILE", conflicts_with = "count")]
    keys: Option<PathBuf>,
    /// Put the three databases into this new or empty directory and keep them; else they go to a temporary one
    #[arg(long, value_name = "PATH")]
    db: Option<PathBuf>,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// Whether every key was found.
fn run(arguments: &Arguments) -> Result<bool> {
    let present = match &arguments.keys {
        Some(path) => keys_of_file(path)?,
        None => (0..arguments.count).map(|i| generated_key(i, false)).collect(),
    };
    let missing = match &arguments.keys {
        Some(_) => keys_beside(&present),
        None => (0..arguments.count).map(|i| generated_key(i, true)).collect(),
    };
    let temporary = match &arguments.db {
        Some(path) => return compare(arguments.bits_per_key, empty_directory(path)?, &present, &missing),
        None => tempfile::tempdir().context("no temporary directory: set TMPDIR, or use --db PATH")?,
    };
    compare(arguments.bits_per_key, temporary.path(), &present, &missing)
}

fn compare(bits_per_key: u32, directory: &Path, present: &[Vec<u8>], missing: &[Vec<u8>]) -> Result<bool> {
    let own = rusty_leveldb::BloomPolicy::new(bits_per_key);
    let ours = bloomline::sstable::FilterPolicy::with_bits_per_key(f64::from(bits_per_key))?;
    let mut contenders = [
        Contender::write("no filter", Rc::new(NoFilter), directory, present)?,
        Contender::write("rusty-leveldb", Rc::new(own), directory, present)?,
        Contender::write("bloomline", Rc::new(Bloomline(ours)), directory, present)?,
    ];
    for contender in &mut contenders {
        contender.check(present, missing)?;
    }
    measure(&mut contenders, present, missing)?;
    print_report(&contenders, bits_per_key, present.len(), missing.len());
    Ok(contenders.iter().all(|contender| contender.lost == 0))
}

/// Key `i` as db_bench writes it or, every second one, as YCSB does. Missing keys lie between the others.
fn generated_key(i: u32, missing: bool) -> Vec<u8> {
    let number = 2 * u64::from(i) + u64::from(missing);
    if i.is_multiple_of(2) {
        format!("{number:016}").into()
    } else {
        format!("user{:019}", bloomline::mix(number) / 2).into()
    }
}

fn keys_of_file(path: &Path) -> Result<Vec<Vec<u8>>> {
    let text =
        std::fs::read(path).with_context(|| format!("the keys cannot be read from {}", path.display()))?;
    let mut seen = HashSet::new();
    let lines = text.split(|&byte| byte == b'\n').filter(|line| !line.is_empty() && seen.insert(*line));
    let keys: Vec<Vec<u8>> = lines.map(<[u8]>::to_vec).collect();
    ensure!(!keys.is_empty(), "{} holds no keys: put one on each line", path.display());
    Ok(keys)
}

/// For each key the next one in order that is none of them.
fn keys_beside(present: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let taken: HashSet<&[u8]> = present.iter().map(Vec::as_slice).collect();
    let beside = |key: &Vec<u8>| {
        let mut next = key.clone();
        while taken.contains(next.as_slice()) {
            next.push(0);
        }
        next
    };
    present.iter().map(beside).collect()
}

fn empty_directory(path: &Path) -> Result<&Path> {
    std::fs::create_dir_all(path)
        .with_context(|| format!("the directory {} cannot be made", path.display()))?;
    let mut entries = std::fs::read_dir(path)
        .with_context(|| format!("the directory {} cannot be read", path.display()))?;
    if entries.next().is_some() {
        bail!(
            "the directory {} is not empty: name a new one, as databases are written into it",
            path.display()
        );
    }
    Ok(path)
}

/// 100 bytes that do not compress.
fn value_of(i: usize) -> Vec<u8> {
    let words = (0..13).map(|word| bloomline::mix((i * 13 + word) as u64));
    words.flat_map(u64::to_le_bytes).take(100).collect()
}

/// A policy, with counts of what the database asks of it.
struct Counted {
    policy: Rc<dyn FilterPolicy>,
    counts: Rc<Counts>,
}

#[derive(Default)]
struct Counts {
    may_match: Cell<usize>,
    /// Address and length of each filter that was asked, while they are collected.
    filters: RefCell<Option<HashMap<usize, usize>>>,
}

impl FilterPolicy for Counted {
    fn name(&self) -> &'static str {
        self.policy.name()
    }

    fn create_filter(&self, keys: &[u8], offsets: &[usize]) -> Vec<u8> {
        self.policy.create_filter(keys, offsets)
    }

    fn key_may_match(&self, key: &[u8], filter: &[u8]) -> bool {
        let may_match = self.policy.key_may_match(key, filter);
        self.counts.may_match.set(self.counts.may_match.get() + usize::from(may_match));
        if let Some(filters) = &mut *self.counts.filters.borrow_mut() {
            filters.insert(filter.as_ptr().addr(), filter.len());
        }
        may_match
    }
}

/// A database with one of the filters, and what was found of it.
struct Contender {
    name: &'static str,
    db: DB,
    counts: Rc<Counts>,
    n_filters: usize,
    filter_bytes: usize,
    false_positives: usize,
    lost: usize,
    missing_ns: Vec<f64>,
    present_ns: Vec<f64>,
}

impl Contender {
    /// Writes the keys, compacts them into tables, and opens the database anew.
    fn write(
        name: &'static str,
        policy: Rc<dyn FilterPolicy>,
        directory: &Path,
        keys: &[Vec<u8>],
    ) -> Result<Self> {
        let path = directory.join(name.replace(' ', "-"));
        let counts = Rc::new(Counts::default());
        let open = || {
            let counted = Counted { policy: Rc::clone(&policy), counts: Rc::clone(&counts) };
            let options = Options { filter_policy: Rc::new(Box::new(counted)), ..Options::default() };
            DB::open(&path, options)
                .with_context(|| format!("no database can be opened in {}", path.display()))
        };
        let progress = progress(&format!("writing, {name}"), keys.len());
        let write = || -> Result<()> {
            let mut db = open()?;
            for (i, key) in keys.iter().enumerate() {
                db.put(key, &value_of(i))?;
                progress.inc(1);
            }
            let last = keys.iter().max().expect("there are keys");
            // Once leaves some tables in a level of their own, other ones for each filter: then gets ask more tables in
            // one database than in the other. Twice brings all to the same level.
            db.compact_range(b"", last)?;
            db.compact_range(b"", last)?;
            Ok(db.close()?)
        };
        write().with_context(|| format!("writing the database in {} failed", path.display()))?;
        progress.finish_and_clear();
        let db = open()?;
        let (missing_ns, present_ns) = (Vec::new(), Vec::new());
        Ok(Self {
            name,
            db,
            counts,
            n_filters: 0,
            filter_bytes: 0,
            false_positives: 0,
            lost: 0,
            missing_ns,
            present_ns,
        })
    }

    /// Asks for every key once, counting.
    fn check(&mut self, present: &[Vec<u8>], missing: &[Vec<u8>]) -> Result<()> {
        let progress = progress(&format!("checking, {}", self.name), present.len() + missing.len());
        *self.counts.filters.borrow_mut() = Some(HashMap::new());
        for (i, key) in present.iter().enumerate() {
            let found = self.db.get(key);
            self.lost += usize::from(found.is_none_or(|value| *value != *value_of(i)));
            progress.inc(1);
        }
        let filters = self.counts.filters.take().unwrap_or_default();
        self.n_filters = filters.len();
        self.filter_bytes = filters.values().sum();
        self.counts.may_match.set(0);
        for key in missing {
            ensure!(self.db.get(key).is_none(), "{}: a key was found that was never written", self.name);
            progress.inc(1);
        }
        self.false_positives = self.counts.may_match.get();
        progress.finish_and_clear();
        Ok(())
    }

    /// Nanoseconds for each of these keys.
    fn time(&mut self, keys: &[&Vec<u8>]) -> f64 {
        let start = Instant::now();
        let found = keys.iter().filter(|key| self.db.get(key).is_some()).count();
        std::hint::black_box(found);
        start.elapsed().as_nanos() as f64 / keys.len() as f64
    }
}

const ROUNDS: usize = 9;
const KEYS_A_ROUND: usize = 10_000;

/// Rounds of all contenders in turn, each in another order of keys: what else the machine does meets all alike.
fn measure(contenders: &mut [Contender], present: &[Vec<u8>], missing: &[Vec<u8>]) -> Result<()> {
    let progress = progress("measuring", ROUNDS * contenders.len());
    for round in 0..ROUNDS {
        let sample = |keys: &'_ [Vec<u8>], i: usize| {
            bloomline::mix((round * KEYS_A_ROUND + i) as u64) as usize % keys.len()
        };
        let present: Vec<_> = (0..KEYS_A_ROUND).map(|i| &present[sample(present, i)]).collect();
        let missing: Vec<_> = (0..KEYS_A_ROUND).map(|i| &missing[sample(missing, i)]).collect();
        for contender in &mut *contenders {
            let ns = contender.time(&missing);
            contender.missing_ns.push(ns);
            let ns = contender.time(&present);
            contender.present_ns.push(ns);
            progress.inc(1);
        }
    }
    progress.finish_and_clear();
    Ok(())
}

fn print_report(contenders: &[Contender; 3], bits_per_key: u32, n_present: usize, n_missing: usize) {
    println!("{} keys in the database, {} that are not;", grouped(n_present), grouped(n_missing));
    println!("{bits_per_key} bits per key; medians of {ROUNDS} rounds of {} gets\n", grouped(KEYS_A_ROUND));
    println!("{:15}{:>10}{:>21}{:>7}{:>14}{:>14}", "", "filter", "false", "keys", "ns per", "ns per");
    println!(
        "{:15}{:>10}{:>21}{:>7}{:>14}{:>14}",
        "filter", "bytes", "positives", "lost", "missing get", "present get"
    );
    for contender in contenders {
        let share = 100.0 * contender.false_positives as f64 / n_missing as f64;
        println!(
            "{:15}{:>10}{:>21}{:>7}{:>14}{:>14}",
            contender.name,
            grouped(contender.filter_bytes),
            format!("{} ({share:.2} %)", grouped(contender.false_positives)),
            grouped(contender.lost),
            grouped(median(&contender.missing_ns) as usize),
            grouped(median(&contender.present_ns) as usize),
        );
    }
    let [none, own, ours] = contenders;
    let times = |other: &Contender| {
        let mut ratios: Vec<f64> =
            other.missing_ns.iter().zip(&ours.missing_ns).map(|(a, b)| a / b).collect();
        ratios.sort_by(f64::total_cmp);
        median(&ratios)
    };
    println!(
        "\nbloomline: {} keys lost; {:.2} % of gets for missing keys read a data block in vain; such a get is\n\
         {:.1} times as fast as without a filter, {:.2} times as fast as with rusty-leveldb's own. The\n\
         database makes a filter for every {:.0} keys, which bloomline rounds up to {:.1} bits per key.",
        grouped(ours.lost),
        100.0 * ours.false_positives as f64 / n_missing as f64,
        times(none),
        times(own),
        n_present as f64 / ours.n_filters as f64,
        8.0 * ours.filter_bytes as f64 / n_present as f64,
    );
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

/// 1234567 as 1,234,567.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// A bar on standard error, where that is a terminal.
fn progress(message: &str, length: usize) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{msg:25} {wide_bar} {percent:>3} %").expect("a valid template");
    ProgressBar::new(length as u64).with_style(style).with_message(message.to_owned())
}
