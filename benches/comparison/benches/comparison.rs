//! bloomline and other filters, all with the same hashes and the same bits per key.

use std::hint::black_box;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use bloomline::{BloomView, FilterBuilder, Sizing, mix};
use bloomline_comparison::line_up::{
    self, BASELINE, BITS_PER_KEY, BLOOMLINE, BLOOMLINE_BATCH, Contender, FASTBLOOM, HASH_KEYS, ONE_MODULE,
    ROCKSDB, ROCKSDB_DEBIAN, SBBF, WITHOUT_INSERTS,
};
use bloomline_comparison::results::{
    ABSENT, AT_RATES, BY_BITS, BY_K, BY_KEY, Column, INSERT, MIXED, OPENED, OPENED_COLUMNS, PRESENT, Results,
    Table, size, size_text,
};
use bloomline_comparison::{
    cpp,
    filter::{Filter, branchless},
    keys::{Keys, SHAPES},
    machine::Machine,
    queries::{self, Queries},
    race::{race, time_once, time_repeatedly},
};
use clap::Parser;

/// Few enough that their hashes stay in cache, so that only the lookups are timed.
const QUERIES: usize = 16 << 10;
/// The same for byte keys. Fewer, because 16,384 keys of 40 bytes would fill half of a cache of 1 MiB. Each turn has a
/// new order, so no branch predictor learns their lengths. With four times as many keys of mixed lengths, lookups are
/// as fast.
const TIMED_KEYS: usize = 4 << 10;
/// So many that the lines they touch exceed every cache many times over.
const STREAM: u64 = 4 << 20;
/// Hashes of one turn from the stream, many times as many as bring the page tables back into the caches.
const WINDOW: usize = 1 << 20;
/// Filters of up to this size are timed in cache. False-positive rates are measured at this size.
const MIDDLE_SIZE: usize = 1 << 20;
/// The size at which k varies. In cache, so that the computation is timed and not the memory.
const SMALL_SIZE: usize = 16 << 10;
const SIZES: [usize; 5] = [SMALL_SIZE, 256 << 10, MIDDLE_SIZE, 16 << 20, 64 << 20];
const HUGE: usize = 1 << 30;
/// Keys in filters of equal rates, which need about 12 KB, 600 KB and 60 MB at 1%.
const NUMBERS_OF_KEYS: [(usize, &str); 3] =
    [(10_000, "10,000"), (500_000, "500,000"), (50_000_000, "50,000,000")];
/// Rounds of filters in cache, and of larger ones.
const IN_CACHE: usize = 51;
const BEYOND: usize = 15;

/// Compare bloomline with other filters: speed and false-positive rate
#[derive(Parser)]
struct Arguments {
    /// Only filters whose name contains NAME, and the baseline. Repeat for several
    #[arg(long, value_name = "NAME")]
    filter: Vec<String>,
    /// Only filters of this size, e.g. 16KiB; repeat for several. Skips false-positive rates and k
    #[arg(long, value_name = "SIZE", value_parser = size)]
    size: Vec<usize>,
    /// Also filters of 1 GiB, which needs 3 GiB of memory and some minutes
    #[arg(long)]
    huge: bool,
    /// No false-positive rates and k
    #[arg(long)]
    speed: bool,
    /// Fewer rounds and sizes, so less exact
    #[arg(long)]
    quick: bool,
    /// Save the measurements
    #[arg(long, value_name = "FILE.json")]
    save: Option<PathBuf>,
    /// Passed by cargo to every benchmark
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let sizes = match (&arguments.size[..], arguments.quick) {
        ([], true) => vec![SMALL_SIZE, MIDDLE_SIZE],
        ([], false) => SIZES.into_iter().chain(arguments.huge.then_some(HUGE)).collect(),
        (sizes, _) => sizes.to_vec(),
    };
    let mut machine = Machine::this();
    let given = std::env::args().skip(1).take_while(|argument| argument != "--save" && argument != "--bench");
    let command = format!("`cargo bench -p bloomline-comparison -- {}`", Vec::from_iter(given).join(" "));
    machine.facts.push(("command".to_owned(), command));
    let results = Results { machine, columns: Vec::new() };
    let mut bench = Bench { arguments, results };

    if let Some(names) = cpp::WITHOUT {
        println!("Without {names}.");
    }
    for size_bytes in sizes {
        if [SMALL_SIZE, MIDDLE_SIZE].contains(&size_bytes) {
            bench.by_key(size_bytes)?;
        }
        bench.by_hash(size_bytes)?;
    }
    if bench.arguments.size.is_empty() && bench.is_wanted(OPENED) {
        bench.opened()?;
    }
    if bench.arguments.size.is_empty() && !bench.arguments.speed {
        bench.vary_k();
        bench.vary_bits_per_key();
        bench.at_rates()?;
    }
    if let Some(path) = &bench.arguments.save {
        let text = serde_json::to_string(&bench.results)?;
        std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

struct Bench {
    arguments: Arguments,
    results: Results,
}

impl Bench {
    fn is_wanted(&self, name: &str) -> bool {
        let filter = &self.arguments.filter;
        filter.is_empty() || name == BASELINE || filter.iter().any(|part| name.contains(part.as_str()))
    }

    fn rounds(&self, most: usize) -> usize {
        if self.arguments.quick { most / 5 } else { most }
    }

    /// The contenders with these names, or all at 10 bits per key, filled with `n` keys.
    fn filled(&self, size_bytes: usize, n: usize, k: Option<u32>, names: &[&str]) -> Vec<Contender> {
        let is_wanted = |name: &str| match names {
            [] => self.is_wanted(name) && name != ONE_MODULE,
            _ => self.is_wanted(name) && names.contains(&name),
        };
        let mut contenders = line_up::contenders(size_bytes, n, k, is_wanted);
        contenders.iter_mut().for_each(|(_, filter)| line_up::fill(filter.as_mut(), n as u64));
        contenders
    }

    /// Keeps a column without rounds.
    fn keep(&mut self, table: &str, name: impl Into<String>, values: impl Iterator<Item = (String, f64)>) {
        let values = values.map(|(contender, value)| (contender, vec![value])).collect();
        self.results.columns.push(Column { table: table.to_owned(), name: name.into(), values });
    }

    /// Lookups by key, hashing included.
    fn by_key(&mut self, size_bytes: usize) -> Result<()> {
        let n = size_bytes * 8 / BITS_PER_KEY;
        let mut columns = Vec::new();
        for shape in &SHAPES {
            let is_wanted = |name: &str| HASH_KEYS.contains(&name) && self.is_wanted(name);
            let mut contenders = line_up::contenders(size_bytes, n, None, is_wanted);
            let inserted = Keys::new(0..n as u64, shape);
            let present = Keys::new((0..QUERIES as u64).map(|i| bloomline::mix(i) % n as u64), shape);
            let absent = |n| Keys::new((1 << 40..).take(n), shape);
            for (name, filter) in &mut contenders {
                filter.insert_keys(&inserted);
                let (found, positives) = (filter.count_keys(&present), filter.count_keys(&absent(QUERIES)));
                ensure!(found == QUERIES, "{name} lost {} of {QUERIES} keys", QUERIES - found);
                // About 1% at 10 bits per key, 164 keys.
                ensure!((80..250).contains(&positives), "{name} found {positives} of {QUERIES} absent keys");
            }
            let mut timed = Queries::new(absent(TIMED_KEYS), TIMED_KEYS);
            let name = format!("{}, {}", shape.name, size_text(size_bytes));
            columns.push(race(BY_KEY, name, &mut contenders, self.rounds(IN_CACHE), |filter| {
                time_repeatedly(&mut timed, |keys| _ = black_box(filter.count_keys(keys)))
            }));
        }
        Table::ratios(BY_KEY, &columns, &[ROCKSDB, ROCKSDB_DEBIAN, FASTBLOOM]).print();
        self.results.columns.extend(columns);
        Ok(())
    }

    fn by_hash(&mut self, size_bytes: usize) -> Result<()> {
        let (n, size) = (size_bytes * 8 / BITS_PER_KEY, size_text(size_bytes));
        for names in line_up::races(size_bytes) {
            let mut contenders = self.filled(size_bytes, n, None, names);
            loses_no_key(&contenders, n)?;
            for table in [ABSENT, PRESENT, MIXED] {
                self.operation(table, (table, &size), n, &mut contenders);
            }
            contenders.retain(|(name, _)| !WITHOUT_INSERTS.contains(&&**name));
            self.operation(INSERT, (INSERT, &size), n, &mut contenders);
        }
        Ok(())
    }

    /// Lookups in filters of equal false-positive rates, each with the bits per key that it needs. The library computes
    /// bloomline's. Follows [`vary_bits_per_key`](Self::vary_bits_per_key), which measures the others'.
    fn at_rates(&mut self) -> Result<()> {
        let inexact = if self.arguments.quick { 0.15 } else { 0.05 };
        for (table, fpr) in AT_RATES {
            let filled = |bench: &Self, n: usize| {
                let row = |names: &[&str]| {
                    let chosen = Sizing::for_fpr(n as u64, fpr / 100.0).ok()?;
                    let bytes = match names[0] {
                        BLOOMLINE => chosen.byte_len() as f64,
                        ONE_MODULE if chosen.n_modules() == 1 => return None,
                        ONE_MODULE => {
                            Sizing::for_fpr_within(n as u64, fpr / 100.0, 1).ok()?.byte_len() as f64
                        }
                        name => n as f64 * bench.results.bits_for(name, fpr)? / 8.0,
                    };
                    // An even number of blocks, which two modules can share.
                    Some(bench.filled((bytes / 128.0).ceil() as usize * 128, n, None, names))
                };
                Vec::from_iter(line_up::AT_RATES.into_iter().filter_map(row).flatten())
            };
            let n = 1_000_000;
            let contenders = filled(self, n);
            let bits = |(name, filter): &Contender| (name.clone(), 8.0 * filter.byte_len() as f64 / n as f64);
            self.keep(table, "bits per key", contenders.iter().map(bits));
            let rates = Vec::from_iter(line_up::rates(&contenders, 64 << 20, 20_000));
            for (name, rate) in &rates {
                ensure!((rate / fpr - 1.0).abs() < inexact, "{name} has {rate:.4}% instead of {fpr}%");
            }
            self.keep(table, "FPR, %", rates.into_iter());
            for &(n, text) in &NUMBERS_OF_KEYS[..if self.arguments.quick { 2 } else { 3 }] {
                let mut contenders = filled(self, n);
                loses_no_key(&contenders, n)?;
                for (operation, keys) in [(ABSENT, "absent"), (PRESENT, "present")] {
                    self.operation(operation, (table, &format!("{keys}, {text}")), n, &mut contenders);
                }
            }
            self.results.table(table).print();
        }
        Ok(())
    }

    /// Times the operation of this table on filters of `n` keys, and keeps it as a column of a table.
    fn operation(
        &mut self,
        operation: &str,
        (table, name): (&str, &str),
        n: usize,
        contenders: &mut [Contender],
    ) {
        let n = n as u64;
        let hash = |i| match operation {
            ABSENT => queries::absent(i),
            MIXED => queries::mixed(i, n),
            _ => queries::present(i, n),
        };
        let run = |filter: &mut Box<dyn Filter>, hashes: &[u64]| match operation {
            INSERT => filter.insert_all(hashes),
            _ => _ = black_box(filter.count(hashes, operation == MIXED)),
        };
        let column = if n <= (MIDDLE_SIZE * 8 / BITS_PER_KEY) as u64 {
            let mut hashes = Queries::of_hashes(hash, QUERIES);
            race(table, name, contenders, self.rounds(IN_CACHE), |filter| {
                time_repeatedly(&mut hashes, |hashes| run(filter, hashes))
            })
        } else {
            let stream: Vec<u64> = (0..STREAM).map(hash).collect();
            let mut windows = stream.chunks(WINDOW).cycle();
            let mut next = || windows.next().expect("a cycle");
            // The first pass after another operation is the slowest.
            contenders.iter_mut().for_each(|(_, filter)| run(filter, next()));
            race(table, name, contenders, self.rounds(BEYOND), |filter| {
                let hashes = next();
                time_once(hashes.len(), || run(filter, hashes))
            })
        };
        let others = [BASELINE, ROCKSDB, SBBF, FASTBLOOM];
        Table::ratios(&format!("{name}: {table}"), std::slice::from_ref(&column), &others).print();
        self.results.columns.push(column);
    }

    /// Lookups in compact bytes that are opened for each, and in a view that is kept.
    fn opened(&mut self) -> Result<()> {
        let by_bits = |n| (n, FilterBuilder::with_bits_per_key(BITS_PER_KEY as f64));
        let by_rate = (100_000, FilterBuilder::with_fpr(0.0001));
        let filters = [by_bits(20), by_bits(3_000), by_bits(100_000), by_rate];
        for (name, (n, builder)) in OPENED_COLUMNS.into_iter().zip(filters) {
            let (mut builder, mut bytes) = (builder?, Vec::new());
            let keys = Vec::from_iter((0..n as u64).map(mix));
            builder.insert_batch(&keys);
            builder.finish_compact(&mut bytes)?;
            let (bytes, view) = (&*bytes, &BloomView::from_compact(&bytes)?);
            // Opaque, so that nothing is done once before the loop.
            let opened = |hash| BloomView::compact_contains_hash(black_box(bytes), hash).unwrap_or(true);
            let ours = |is_opened, hashes: &[u64]| match is_opened {
                true => branchless(hashes, opened),
                false => branchless(hashes, |hash| black_box(view).contains_hash(hash)),
            };
            type Count<'a> = Box<dyn Fn(bool, &[u64]) -> usize + 'a>;
            let mut counts: Vec<(&str, Count)> = vec![(OPENED, Box::new(ours))];
            counts.extend(cpp::OPENED.iter().map(|&(name, [opened, kept])| -> (_, Count) {
                (
                    name,
                    Box::new(|is_opened, hashes| {
                        cpp::count_in(if is_opened { *opened } else { *kept }, bytes, hashes)
                    }),
                )
            }));
            let mut hashes = Queries::of_hashes(queries::absent, QUERIES);
            let mut ratios = Vec::new();
            for (of, count) in counts {
                ensure!(
                    count(true, &keys) == n && count(false, &keys) == n,
                    "{of}: a filter of {name} lost some"
                );
                let both = &mut [("opened", true), ("kept", false)];
                let column = race(OPENED, name, both, self.rounds(5 * IN_CACHE), |&mut is_opened| {
                    time_repeatedly(&mut hashes, |hashes| _ = black_box(count(is_opened, hashes)))
                });
                // The least times, because a busy machine slows most rounds.
                let [opened, kept] =
                    [0, 1].map(|i| column.values[i].1.iter().copied().fold(f64::MAX, f64::min));
                ratios.push((of.to_owned(), opened / kept));
            }
            self.keep(OPENED, name, ratios.into_iter());
        }
        self.results.table(OPENED).print();
        Ok(())
    }

    fn vary_k(&mut self) {
        let mut hashes = Queries::of_hashes(queries::absent, QUERIES);
        let names = [BLOOMLINE, BLOOMLINE_BATCH, ROCKSDB, FASTBLOOM];
        for k in 1..=16 {
            let mut contenders = self.filled(SMALL_SIZE, SMALL_SIZE * 8 / BITS_PER_KEY, Some(k), &names);
            self.results.columns.push(race(
                BY_K,
                k.to_string(),
                &mut contenders,
                self.rounds(21),
                |filter| time_repeatedly(&mut hashes, |hashes| _ = black_box(filter.count(hashes, false))),
            ));
        }
        self.results.table(BY_K).print();
    }

    fn vary_bits_per_key(&mut self) {
        let (most, step) = if self.arguments.quick { (8 << 20, 2) } else { (64 << 20, 1) };
        // The last is more than `sbbf-rs-safe` needs for the lowest rate.
        for bits in (6..=27).step_by(step) {
            let names = [BLOOMLINE, ROCKSDB, SBBF, FASTBLOOM];
            let contenders = self.filled(MIDDLE_SIZE, MIDDLE_SIZE * 8 / bits, None, &names);
            self.keep(BY_BITS, bits.to_string(), line_up::rates(&contenders, most, 20_000));
        }
        self.results.table(BY_BITS).print();
    }
}

fn loses_no_key(contenders: &[Contender], n: usize) -> Result<()> {
    let present: Vec<u64> = (0..QUERIES as u64).map(|i| queries::present(i, n as u64)).collect();
    for (name, filter) in contenders.iter().filter(|(name, _)| name != BASELINE) {
        let found = filter.count(&present, false).min(filter.count(&present, true));
        ensure!(found == QUERIES, "{name} lost {} of {QUERIES} keys", QUERIES - found);
    }
    Ok(())
}
