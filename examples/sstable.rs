//! Bloomline's filters in a LevelDB-format database: what they save, and that no key is lost.
//!
//! ```text
//! cargo run --release --example sstable
//! ```
//!
//! Writes the same keys to three databases of the `rusty-leveldb` crate: without a filter, with its own Bloom filter,
//! and with bloomline's. Then gets present and missing keys from each. Exits with code 1 if a key is lost, 2 if the
//! arguments are invalid or a file cannot be read or written.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::io::{IsTerminal, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::rc::Rc;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use bloomline_adapters::Bloomline;
use clap::Parser;
use indicatif::{ProgressBar, ProgressStyle};
use rusty_leveldb::{DB, FilterPolicy, LdbIterator, Options};

const ROUNDS: usize = 9;
const KEYS_A_ROUND: usize = 10_000;
/// A file with longer lines is probably not a list of keys, and would take hours.
const LONGEST_KEY: usize = 1 << 16;

/// Show what bloomline's filters save in a LevelDB-format database
#[derive(Parser)]
#[command(after_help = "Examples, after `cargo run --release --example sstable --`:
  --bits-per-key 16                     larger filters, fewer false positives
  --keys words.txt                      your own keys
  --count 1000000 --db /tmp/databases   more keys, and keep the files")]
struct Arguments {
    /// Bits per key of both filters, 1 to 64
    #[arg(long, value_name = "BITS", default_value = "10", allow_negative_numbers = true)]
    #[arg(value_parser = |text: &str| whole_number(text, 64))]
    bits_per_key: u32,
    /// Number of keys to write: half like db_bench's, half like YCSB's
    #[arg(long, value_name = "N", default_value = "200000", allow_negative_numbers = true)]
    #[arg(value_parser = |text: &str| whole_number(text, 10_000_000))]
    count: u32,
    /// Write the keys of FILE instead: one per line, any bytes
    #[arg(long, value_name = "FILE", conflicts_with = "count")]
    keys: Option<PathBuf>,
    /// Keep the databases in PATH, a new or empty directory
    #[arg(long, value_name = "PATH")]
    db: Option<PathBuf>,
}

fn whole_number(text: &str, most: u32) -> Result<u32, String> {
    let number = text.parse().ok().filter(|number| (1..=most).contains(number));
    number.ok_or_else(|| format!("give a whole number from 1 to {most}"))
}

fn main() -> ExitCode {
    match arguments().and_then(|arguments| run(&arguments)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// The arguments, or an error of one line, where clap's has several.
fn arguments() -> Result<Arguments> {
    Arguments::try_parse().map_err(|error| {
        if !error.use_stderr() {
            error.exit(); // --help
        }
        let text = error.to_string();
        let first = text.lines().next().unwrap_or_default();
        anyhow::anyhow!("{} (see --help)", first.trim_start_matches("error: "))
    })
}

/// Whether every key was found.
fn run(arguments: &Arguments) -> Result<bool> {
    let generated = |missing| (0..arguments.count).map(|i| generated_key(i, missing)).collect();
    let present: Vec<_> = arguments.keys.as_deref().map_or_else(|| Ok(generated(false)), keys_of_file)?;
    let missing = if arguments.keys.is_some() { keys_beside(&present) } else { generated(true) };
    if let Some(path) = &arguments.db {
        return compare(arguments.bits_per_key, empty_directory(path)?, &present, &missing);
    }
    let temporary = tempfile::tempdir().context("no temporary directory: set TMPDIR, or use --db PATH")?;
    compare(arguments.bits_per_key, temporary.path(), &present, &missing)
}

fn compare(bits_per_key: u32, directory: &Path, present: &[Vec<u8>], missing: &[Vec<u8>]) -> Result<bool> {
    // rusty-leveldb panics on names that are not UTF-8.
    ensure!(
        directory.canonicalize()?.to_str().is_some(),
        "the path {} is not UTF-8, which rusty-leveldb requires: choose another directory with --db",
        directory.display()
    );
    let own = rusty_leveldb::BloomPolicy::new(bits_per_key);
    let ours = Bloomline::with_bits_per_key(f64::from(bits_per_key))?;
    let write = |name, policy| Contender::write(name, policy, directory, present);
    let mut contenders = [
        write("no filter", None)?,
        write("rusty-leveldb", Some(Rc::new(own)))?,
        write("bloomline", Some(Rc::new(ours)))?,
    ];
    for contender in &mut contenders {
        contender.check(present, missing)?;
    }
    measure(&mut contenders, present, missing);
    let report = report(&contenders, bits_per_key, present.len(), missing.len());
    std::io::stdout().write_all(report.as_bytes()).context("cannot write the report")?;
    Ok(contenders.iter().all(|contender| contender.found.lost == 0))
}

/// Key `i` as db_bench writes it or, every second one, as YCSB does. Missing keys sort between the present ones.
fn generated_key(i: u32, missing: bool) -> Vec<u8> {
    let number = 2 * u64::from(i) + u64::from(missing);
    if i.is_multiple_of(2) {
        format!("{number:016}").into()
    } else {
        format!("user{:019}", bloomline::mix(number) / 2).into()
    }
}

fn keys_of_file(path: &Path) -> Result<Vec<Vec<u8>>> {
    let name = path.display();
    let text = std::fs::read(path)
        .with_context(|| format!("cannot read {name}: give --keys a file with one key per line"))?;
    let mut seen = HashSet::new();
    let mut keys = Vec::new();
    for (i, line) in text.split(|&byte| byte == b'\n').enumerate() {
        ensure!(
            line.len() <= LONGEST_KEY,
            "line {} of {name} has {} bytes, but a key has at most {}: put one key on each line",
            grouped(i + 1),
            grouped(line.len()),
            grouped(LONGEST_KEY)
        );
        if !line.is_empty() && seen.insert(line) {
            keys.push(line.to_vec());
        }
    }
    ensure!(!keys.is_empty(), "{name} contains no keys: put one on each line");
    Ok(keys)
}

/// For each key, the next one in order that is not among them.
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
    let entries = std::fs::create_dir_all(path).and_then(|()| std::fs::read_dir(path));
    let mut entries = entries
        .with_context(|| format!("cannot use {}: name a new or empty directory with --db", path.display()))?;
    ensure!(
        entries.next().is_none(),
        "{} is not empty: name a new or empty directory for the databases with --db",
        path.display()
    );
    Ok(path)
}

/// 100 bytes that do not compress.
fn value_of(i: usize) -> Vec<u8> {
    let words = (0..13).map(|word| bloomline::mix((i * 13 + word) as u64));
    words.flat_map(u64::to_le_bytes).take(100).collect()
}

/// A policy that counts the database's queries. Without a policy, every data block that may hold a key is read.
struct Counted {
    policy: Option<Rc<dyn FilterPolicy>>,
    counts: Rc<Counts>,
}

#[derive(Default)]
struct Counts {
    queries: Cell<usize>,
    may_match: Cell<usize>,
    /// Address and length of each filter queried, while they are collected.
    filters: RefCell<Option<HashMap<usize, usize>>>,
}

impl FilterPolicy for Counted {
    fn name(&self) -> &'static str {
        self.policy.as_ref().map_or("example.NoFilter", |policy| policy.name())
    }

    /// One byte for no filter, as `rusty-leveldb` requires at least one.
    fn create_filter(&self, keys: &[u8], offsets: &[usize]) -> Vec<u8> {
        self.policy.as_ref().map_or(vec![0], |policy| policy.create_filter(keys, offsets))
    }

    fn key_may_match(&self, key: &[u8], filter: &[u8]) -> bool {
        let may_match = self.policy.as_ref().is_none_or(|policy| policy.key_may_match(key, filter));
        self.counts.queries.set(self.counts.queries.get() + 1);
        self.counts.may_match.set(self.counts.may_match.get() + usize::from(may_match));
        if let Some(filters) = &mut *self.counts.filters.borrow_mut() {
            filters.insert(filter.as_ptr().addr(), filter.len());
        }
        may_match
    }
}

/// A database with one of the filters, and its measurements.
struct Contender {
    name: &'static str,
    db: DB,
    counts: Rc<Counts>,
    found: Found,
}

#[derive(Default)]
struct Found {
    filters: usize,
    filter_bytes: usize,
    /// Filter queries for missing keys.
    queries: usize,
    false_positives: usize,
    lost: usize,
    missing_ns: Vec<f64>,
    present_ns: Vec<f64>,
}

impl Contender {
    /// Writes the keys, compacts them into tables, and reopens the database.
    fn write(
        name: &'static str,
        policy: Option<Rc<dyn FilterPolicy>>,
        directory: &Path,
        keys: &[Vec<u8>],
    ) -> Result<Self> {
        let path = directory.join(name.replace(' ', "-"));
        let counts = Rc::new(Counts::default());
        let open = || {
            let counted = Counted { policy: policy.clone(), counts: Rc::clone(&counts) };
            let options = Options { filter_policy: Rc::new(Box::new(counted)), ..Options::default() };
            DB::open(&path, options).with_context(|| format!("cannot open {}", path.display()))
        };
        let progress = progress(&format!("writing, {name}"), keys.len());
        let write = || -> Result<DB> {
            let mut db = open()?;
            for (i, key) in keys.iter().enumerate() {
                db.put(key, &value_of(i))?;
                progress.inc(1);
            }
            let last = keys.iter().max().expect("there are keys");
            // Compacting once leaves some tables, different ones with each filter, in a level of their own: gets then
            // probe more tables in one database than in another. Compacting twice moves all to the same level.
            db.compact_range(b"", last)?;
            db.compact_range(b"", last)?;
            db.close()?;
            drop(db);
            // rusty-leveldb does not report a failed compaction, for example with a full disk. Iterators query no
            // filter, so a key that they miss was not lost by a filter.
            let mut db = open()?;
            let mut entries = db.new_iter()?;
            let n_stored = std::iter::from_fn(|| entries.advance().then_some(())).count();
            ensure!(n_stored == keys.len(), "only {} keys were stored", grouped(n_stored));
            Ok(db)
        };
        let db = write().with_context(|| {
            format!("cannot write {}: free some space, or choose another directory with --db", path.display())
        })?;
        progress.finish_and_clear();
        Ok(Self { name, db, counts, found: Found::default() })
    }

    /// Gets every key once, and counts queries, false positives and lost keys.
    fn check(&mut self, present: &[Vec<u8>], missing: &[Vec<u8>]) -> Result<()> {
        let progress = progress(&format!("checking, {}", self.name), present.len() + missing.len());
        *self.counts.filters.borrow_mut() = Some(HashMap::new());
        for (i, key) in present.iter().enumerate() {
            let value = self.db.get(key);
            self.found.lost += usize::from(value.is_none_or(|value| *value != *value_of(i)));
            progress.inc(1);
        }
        let filters = self.counts.filters.take().unwrap_or_default();
        self.found.filters = filters.len();
        self.found.filter_bytes = filters.values().sum();
        self.counts.queries.set(0);
        self.counts.may_match.set(0);
        for key in missing {
            ensure!(self.db.get(key).is_none(), "{}: found a key that was never written", self.name);
            progress.inc(1);
        }
        self.found.queries = self.counts.queries.get();
        self.found.false_positives = self.counts.may_match.get();
        progress.finish_and_clear();
        Ok(())
    }

    /// Nanoseconds per get of these keys.
    fn time(&mut self, keys: &[&Vec<u8>]) -> f64 {
        let start = Instant::now();
        let found = keys.iter().filter(|key| self.db.get(key).is_some()).count();
        std::hint::black_box(found);
        start.elapsed().as_nanos() as f64 / keys.len() as f64
    }
}

/// Each round times all contenders in turn on the same random keys, so that other load on the machine affects all
/// alike.
fn measure(contenders: &mut [Contender], present: &[Vec<u8>], missing: &[Vec<u8>]) {
    let progress = progress("measuring", ROUNDS * contenders.len());
    for round in 0..ROUNDS {
        let place = |i| bloomline::mix((round * KEYS_A_ROUND + i) as u64) as usize;
        let present: Vec<_> = (0..KEYS_A_ROUND).map(|i| &present[place(i) % present.len()]).collect();
        let missing: Vec<_> = (0..KEYS_A_ROUND).map(|i| &missing[place(i) % missing.len()]).collect();
        for contender in &mut *contenders {
            let (missing, present) = (contender.time(&missing), contender.time(&present));
            contender.found.missing_ns.push(missing);
            contender.found.present_ns.push(present);
            progress.inc(1);
        }
    }
    progress.finish_and_clear();
}

fn report(contenders: &[Contender; 3], bits_per_key: u32, n_present: usize, n_missing: usize) -> String {
    let [none, own, ours] = contenders.each_ref().map(|contender| &contender.found);
    let row = |cells: [&str; 6]| {
        let [name, bytes, positives, lost, missing, present] = cells;
        format!("{name:15}{bytes:>10}{positives:>21}{lost:>7}{missing:>14}{present:>14}\n")
    };
    let mut report = format!(
        "{} keys in the database, {} missing keys; {bits_per_key} bits per key;\n\
         medians of {ROUNDS} rounds of {} gets\n\n",
        grouped(n_present),
        grouped(n_missing),
        grouped(KEYS_A_ROUND)
    );
    report += &row(["", "filter", "false", "keys", "ns per", "ns per"]);
    report += &row(["filter", "bytes", "positives", "lost", "missing get", "present get"]);
    for Contender { name, found, .. } in contenders {
        let fpr = percent(found.false_positives, found.queries);
        report += &row([
            name,
            &grouped(found.filter_bytes),
            &format!("{} ({fpr:.2} %)", grouped(found.false_positives)),
            &grouped(found.lost),
            &grouped(median_ns(&found.missing_ns)),
            &grouped(median_ns(&found.present_ns)),
        ]);
    }
    // Of the numbers above, so that the report agrees with itself.
    let times =
        |other: &Found| median_ns(&other.missing_ns) as f64 / median_ns(&ours.missing_ns).max(1) as f64;
    let bits = |found: &Found| 8.0 * found.filter_bytes as f64 / n_present as f64;
    report += &format!(
        "\nWith bloomline's filters, {} keys were lost. Of the gets for missing keys, {:.2} % needlessly read a\n\
         data block. A get for a missing key is {:.1} times as fast as without a filter, and {:.2} times as\n\
         fast as with rusty-leveldb's own. The database creates a filter for every {:.0} keys. Rounded up to\n\
         whole lanes or blocks, bloomline's take {:.1} bits per key; rusty-leveldb's take {:.1}.\n",
        grouped(ours.lost),
        percent(ours.false_positives, n_missing),
        times(none),
        times(own),
        n_present as f64 / ours.filters.max(1) as f64,
        bits(ours),
        bits(own),
    );
    report
}

fn percent(part: usize, whole: usize) -> f64 {
    100.0 * part as f64 / whole.max(1) as f64
}

/// The median, in whole nanoseconds.
fn median_ns(values: &[f64]) -> usize {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2].round() as usize
}

/// 1234567 becomes 1,234,567.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let groups: Vec<_> = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy).collect();
    groups.join(",")
}

/// A progress bar on standard error, if that is a terminal.
fn progress(message: &str, length: usize) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{msg:25} {wide_bar} {percent:>3} %").expect("a valid template");
    ProgressBar::new(length as u64).with_style(style).with_message(message.to_owned())
}
