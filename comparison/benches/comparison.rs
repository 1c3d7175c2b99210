//! bloomline and other filters, all with the same hashes and the same bits per key.
//!
//! ```text
//! cargo bench -p bloomline-comparison -- --quick
//! cargo bench -p bloomline-comparison -- --size 1MiB --filter fastbloom --filter bloomline
//! scripts/report                                   # every measurement, into docs/performance.md
//! ```

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use bloomline_comparison::builds;
use bloomline_comparison::contender::Contender;
use bloomline_comparison::keys::{Keys, SHAPES, Shape};
use bloomline_comparison::line_up::{
    self, BASELINE, BITS_PER_KEY, BY_KEY, FASTBLOOM, ROCKSDB, ROCKSDB_DEBIAN, SBBF,
};
use bloomline_comparison::machine::Machine;
use bloomline_comparison::memory::peak_during;
use bloomline_comparison::queries::{self, Hashes, Stream};
use bloomline_comparison::race::{median, race, time_once, time_repeatedly};
use bloomline_comparison::results::{
    BuildTiming, Entry, KTiming, KeyBuild, KeyTiming, Rate, Results, Timing, Workload, size_text,
};
use bloomline_comparison::{rates, rocksdb};
use clap::Parser;
use indicatif::{ProgressBar, ProgressStyle};

/// Few enough that their hashes stay in cache, so that only the lookups are timed.
const QUERIES: usize = 16 << 10;
/// The same for byte keys, which are larger: 16,384 of 40 bytes would take half of a cache of 1 MiB from the filter. Each
/// turn has another order, so no branch predictor learns their lengths: with four times as many, mixed lengths take the
/// same time.
const TIMED_KEYS: u64 = 4 << 10;
/// So many that the lines they touch exceed every cache many times over.
const STREAM: u64 = 4 << 20;
/// Hashes of one turn, taken from the stream: many times as many as bring the page tables back into the caches.
const WINDOW: usize = 512 << 10;
/// Filters of up to this size are timed in cache.
const LARGEST_IN_CACHE: usize = 1 << 20;
/// The size at which false-positive rates are measured.
const MIDDLE_SIZE: usize = 1 << 20;
/// The size at which k varies: in cache, so that the computation is timed and not the memory.
const SMALL_SIZE: usize = 16 << 10;
const KEYS_TO_BUILD: u64 = 1_000_000;
/// A filter of 40 MB, larger than the caches close to a core.
const MANY_KEYS_TO_BUILD: u64 = 32_000_000;
const SIZES: [usize; 5] = [16 << 10, 256 << 10, 1 << 20, 16 << 20, 64 << 20];
const HUGE: usize = 1 << 30;

/// Compare the speed and the false-positive rate of bloomline with those of other filters
#[derive(Parser)]
struct Arguments {
    /// Only filters whose name contains NAME, and the baseline; repeat for several
    #[arg(long, value_name = "NAME")]
    filter: Vec<String>,
    /// Only filters of this size, e.g. 16KiB; repeat for several. Skips builds, false-positive rates and k
    #[arg(long, value_name = "SIZE", value_parser = size)]
    size: Vec<usize>,
    /// Also filters of 1 GiB: takes 3 GiB of memory and some minutes
    #[arg(long)]
    huge: bool,
    /// No builds, false-positive rates and k
    #[arg(long)]
    speed: bool,
    /// Fewer rounds and sizes; less exact
    #[arg(long)]
    quick: bool,
    /// Save the measurements
    #[arg(long, value_name = "FILE.json")]
    save: Option<PathBuf>,
    /// Passed by cargo to every benchmark
    #[arg(long, hide = true)]
    bench: bool,
}

impl Arguments {
    /// The command that repeats these measurements.
    fn command(&self) -> String {
        let mut command = "cargo bench -p bloomline-comparison --".to_owned();
        command.extend(self.filter.iter().map(|name| format!(" --filter '{name}'")));
        command.extend(self.size.iter().map(|&size| format!(" --size {}", size_text(size).replace(' ', ""))));
        for (flag, is_given) in [(" --huge", self.huge), (" --speed", self.speed), (" --quick", self.quick)] {
            command += if is_given { flag } else { "" };
        }
        command.trim_end_matches(" --").to_owned()
    }
}

fn size(text: &str) -> Result<usize, String> {
    let number = text.trim_end_matches(|letter: char| !letter.is_ascii_digit());
    let unit = match text[number.len()..].trim() {
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        _ => return Err("give a size such as 16KiB, 1MiB or 1GiB".to_owned()),
    };
    let size =
        number.parse().ok().and_then(|number: usize| number.checked_mul(unit)).filter(|&size| size > 0);
    size.ok_or_else(|| "give a size such as 16KiB, 1MiB or 1GiB".to_owned())
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let sizes = match (&arguments.size[..], arguments.quick) {
        ([], true) => vec![16 << 10, 1 << 20],
        ([], false) => SIZES.into_iter().chain(arguments.huge.then_some(HUGE)).collect(),
        (sizes, _) => sizes.to_vec(),
    };
    let rest = arguments.size.is_empty() && !arguments.speed;
    let progress = ProgressBar::new(sizes.len() as u64 + 5 * u64::from(rest));
    progress.set_style(ProgressStyle::with_template("{wide_bar} {pos}/{len} {msg}")?);
    let mut bench = Bench {
        progress,
        results: Results {
            machine: Machine::this(),
            command: arguments.command(),
            quick: arguments.quick,
            entries: Vec::new(),
            timings: Vec::new(),
            key_timings: Vec::new(),
            builds: Vec::new(),
            key_builds: Vec::new(),
            by_k: Vec::new(),
            rates: Vec::new(),
        },
        arguments,
    };

    if let Some(reason) = rocksdb::WITHOUT {
        println!("Without RocksDB, because {reason}.");
    }
    for size_bytes in sizes {
        bench.size(size_bytes)?;
    }
    if rest {
        bench.step("false-positive rates", Bench::measure_fpr);
        bench.step("builds", Bench::builds);
        bench.step("builds from keys", Bench::key_builds);
        bench.step("k", Bench::vary_k);
        bench.step("bits per key", Bench::vary_bits_per_key);
    }
    bench.progress.finish_and_clear();
    if let Some(path) = &bench.arguments.save {
        let text = serde_json::to_string(&bench.results)?;
        std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

struct Bench {
    arguments: Arguments,
    progress: ProgressBar,
    results: Results,
}

impl Bench {
    fn is_wanted(&self, name: &str) -> bool {
        let filter = &self.arguments.filter;
        filter.is_empty() || name == BASELINE || filter.iter().any(|part| name.contains(part.as_str()))
    }

    fn step(&mut self, name: &str, step: fn(&mut Self)) {
        self.progress.set_message(name.to_owned());
        step(self);
        self.progress.inc(1);
    }

    fn print(&self, title: &str, rows: &[Vec<String>]) {
        if rows.iter().skip(1).any(|row| row.len() > 1) {
            self.progress.suspend(|| print_table(title, rows));
        }
    }

    fn rounds(&self, in_cache: bool) -> usize {
        match (self.arguments.quick, in_cache) {
            (true, true) => 9,
            (true, false) => 3,
            (false, true) => 51,
            (false, false) => 15,
        }
    }

    fn size(&mut self, size_bytes: usize) -> Result<()> {
        for (race, names) in line_up::races(size_bytes).into_iter().enumerate() {
            let is_wanted =
                |name: &str| self.is_wanted(name) && names.is_none_or(|names| names.contains(&name));
            let contenders = line_up::contenders(size_bytes, is_wanted);
            self.race(size_bytes, race, contenders)?;
        }
        for workload in Workload::ALL {
            self.print_workload(size_bytes, workload);
        }
        if [SMALL_SIZE, MIDDLE_SIZE].contains(&size_bytes) {
            self.by_key(size_bytes)?;
        }
        self.progress.inc(1);
        Ok(())
    }

    fn race(
        &mut self,
        size_bytes: usize,
        race: usize,
        mut contenders: Vec<Box<dyn Contender>>,
    ) -> Result<()> {
        let keys = (size_bytes * 8 / BITS_PER_KEY) as u64;
        for contender in &mut contenders {
            self.progress.set_message(format!("{}: filling {}", size_text(size_bytes), contender.name()));
            rates::fill(contender.as_mut(), keys);
        }
        let present: Vec<u64> = (0..QUERIES as u64).map(|i| queries::present(i, keys)).collect();
        for contender in contenders.iter().filter(|contender| contender.name() != BASELINE) {
            let found = contender.count(&present);
            ensure!(
                found == QUERIES && contender.count_branching(&present) == QUERIES,
                "{} lost {} of {QUERIES} keys",
                contender.name(),
                QUERIES - found
            );
        }
        for workload in Workload::ALL {
            self.progress.set_message(format!("{}: {workload:?}", size_text(size_bytes)));
            self.workload(size_bytes, race, workload, &mut contenders);
        }
        Ok(())
    }

    fn workload(
        &mut self,
        size_bytes: usize,
        race_number: usize,
        workload: Workload,
        contenders: &mut [Box<dyn Contender>],
    ) {
        let keys = (size_bytes * 8 / BITS_PER_KEY) as u64;
        let hash = |i| match workload {
            Workload::Absent => queries::absent(i),
            Workload::Present | Workload::Insert => queries::present(i, keys),
            Workload::Mixed => queries::mixed(i, keys),
        };
        let run = |contender: &mut dyn Contender, hashes: &[u64]| {
            std::hint::black_box(match workload {
                Workload::Absent | Workload::Present => contender.count(hashes),
                Workload::Mixed => contender.count_branching(hashes),
                Workload::Insert => {
                    contender.insert_all(hashes);
                    0
                }
            });
        };
        let mut contenders: Vec<&mut Box<dyn Contender>> = contenders
            .iter_mut()
            .filter(|contender| workload != Workload::Insert || contender.supports_inserts())
            .collect();
        let in_cache = size_bytes <= LARGEST_IN_CACHE;
        let rounds = self.rounds(in_cache);
        let times = if in_cache {
            let mut hashes = Hashes::new((0..QUERIES as u64).map(hash));
            race(&mut contenders, rounds, |contender| {
                time_repeatedly(&mut hashes, |hashes| run(contender.as_mut(), hashes.get()))
            })
        } else {
            let mut stream = Stream::new((0..STREAM).map(hash), WINDOW);
            // The first pass after another workload is the slowest.
            for contender in &mut contenders {
                run(contender.as_mut(), stream.next_window());
            }
            race(&mut contenders, rounds, |contender| {
                let hashes = stream.next_window();
                time_once(hashes.len(), || run(contender.as_mut(), hashes))
            })
        };
        for (contender, rounds) in contenders.iter().zip(times) {
            let contender = contender.name().to_owned();
            self.results.timings.push(Timing { size_bytes, workload, race: race_number, contender, rounds });
        }
    }

    fn print_workload(&self, size_bytes: usize, workload: Workload) {
        let mut rows = vec![row(["", "ns", "/ baseline", "/ RocksDB", "/ sbbf-rs-safe", "/ fastbloom"])];
        for name in self.results.contenders(workload) {
            let Some(nanoseconds) = self.results.nanoseconds(size_bytes, workload, name) else {
                continue;
            };
            let to = |other| ratio_text(self.results.ratio(size_bytes, workload, name, other));
            let nanoseconds = format!("{nanoseconds:.2}");
            rows.push(vec![name.to_owned(), nanoseconds, to(BASELINE), to(ROCKSDB), to(SBBF), to(FASTBLOOM)]);
        }
        self.print(&format!("{}: {}", size_text(size_bytes), workload.title()), &rows);
    }

    fn measure_fpr(&mut self) {
        let keys = (MIDDLE_SIZE * 8 / BITS_PER_KEY) as u64;
        let mut rows = vec![row(["", "bits per key", "FPR", ""])];
        for mut contender in line_up::contenders(MIDDLE_SIZE, |name| self.is_wanted(name)) {
            if contender.name() == BASELINE {
                continue;
            }
            rates::fill(contender.as_mut(), keys);
            let queried = 8 << 20;
            let (positives, queried) = rates::false_positives(contender.as_ref(), queried, queried, 0);
            let entry = Entry {
                contender: contender.name().to_owned(),
                rehashes: contender.rehashes(),
                bits_per_key: 8.0 * contender.byte_len() as f64 / keys as f64,
                fpr: positives as f64 / queried as f64,
            };
            rows.push(vec![
                entry.contender.clone(),
                format!("{:.2}", entry.bits_per_key),
                format!("{:.4} %", 100.0 * entry.fpr),
                if entry.rehashes { "hashes again" } else { "" }.to_owned(),
            ]);
            self.results.entries.push(entry);
        }
        self.print(&format!("False-positive rate, {keys} keys in {}", size_text(MIDDLE_SIZE)), &rows);
    }

    /// Lookups by key, hashing included.
    fn by_key(&mut self, size_bytes: usize) -> Result<()> {
        let mut rows = vec![row(["", "ns", "/ RocksDB", "/ RocksDB (Debian)", "/ fastbloom"])];
        for shape in SHAPES {
            self.progress.set_message(format!("{}: keys, {}", size_text(size_bytes), shape.name));
            self.keys_of(size_bytes, shape)?;
            for name in BY_KEY {
                let Some(nanoseconds) = self.results.key_nanoseconds(size_bytes, shape.name, name) else {
                    continue;
                };
                let to = |other| ratio_text(self.results.key_ratio(size_bytes, shape.name, name, other));
                rows.push(vec![
                    format!("{}: {name}", shape.name),
                    format!("{nanoseconds:.2}"),
                    to(ROCKSDB),
                    to(ROCKSDB_DEBIAN),
                    to(FASTBLOOM),
                ]);
            }
        }
        self.print(&format!("{}: lookups of absent keys, hashing included", size_text(size_bytes)), &rows);
        Ok(())
    }

    fn keys_of(&mut self, size_bytes: usize, shape: Shape) -> Result<()> {
        let keys = (size_bytes * 8 / BITS_PER_KEY) as u64;
        let is_wanted = |name: &str| BY_KEY.contains(&name) && self.is_wanted(name);
        let mut contenders = line_up::contenders(size_bytes, is_wanted);
        let inserted = Keys::new(0..keys, shape);
        let present = Keys::new((0..QUERIES as u64).map(|i| bloomline::mix(i) % keys), shape);
        let absent = Keys::new((0..QUERIES as u64).map(|i| (1 << 40) + i), shape);
        let mut timed = Keys::new((0..TIMED_KEYS).map(|i| (1 << 40) + i), shape);
        for contender in &mut contenders {
            contender.insert_keys(&inserted);
            let (found, positives) = (contender.count_keys(&present), contender.count_keys(&absent));
            ensure!(found == QUERIES, "{} lost {} of {QUERIES} keys", contender.name(), QUERIES - found);
            // About 1 % at 10 bits per key, 164 keys.
            ensure!(
                (80..250).contains(&positives),
                "{} found {positives} of {QUERIES} absent keys",
                contender.name()
            );
        }
        let times = race(&mut contenders, self.rounds(true), |contender| {
            time_repeatedly(&mut timed, |queries| {
                std::hint::black_box(contender.count_keys(queries));
            })
        });
        for (contender, rounds) in contenders.iter().zip(times) {
            let (shape, contender) = (shape.name.to_owned(), contender.name().to_owned());
            self.results.key_timings.push(KeyTiming { shape, size_bytes, contender, rounds });
        }
        Ok(())
    }

    fn builds(&mut self) {
        let mut rows = vec![row(["", "keys", "ns per key"])];
        let max_keys = if self.arguments.quick { KEYS_TO_BUILD } else { MANY_KEYS_TO_BUILD };
        let hashes: Vec<u64> = (0..max_keys).map(bloomline::mix).collect();
        for (keys, rounds) in [(KEYS_TO_BUILD, self.rounds(false)), (MANY_KEYS_TO_BUILD, 3)] {
            let Some(hashes) = hashes.get(..keys as usize) else {
                continue;
            };
            let mut builds = builds::FROM_HASHES.to_vec();
            builds.retain(|&name| self.is_wanted(name) && (name != ROCKSDB || rocksdb::WITHOUT.is_none()));
            let times = race(&mut builds, rounds, |name| {
                time_once(hashes.len(), || builds::from_hashes(name, std::hint::black_box(hashes)))
            });
            for (name, rounds) in builds.into_iter().zip(times) {
                rows.push(vec![name.to_owned(), keys.to_string(), median_text(&rounds)]);
                self.results.builds.push(BuildTiming { contender: name.to_owned(), keys, rounds });
            }
        }
        self.print("Building a filter from hashes", &rows);
    }

    fn key_builds(&mut self) {
        let mut rows = vec![row(["", "ns per key", "scratch bytes per key"])];
        for shape in [SHAPES[1], SHAPES[2]] {
            let keys = Keys::new(0..KEYS_TO_BUILD, shape);
            let mut builds = builds::FROM_KEYS.to_vec();
            builds.retain(|(name, _)| self.is_wanted(name));
            let times = race(&mut builds, self.rounds(false), |(_, build)| {
                time_once(KEYS_TO_BUILD as usize, || {
                    std::hint::black_box(build(std::hint::black_box(&keys)));
                })
            });
            for ((name, build), rounds) in builds.into_iter().zip(times) {
                let (peak, bytes) = peak_during(|| build(&keys));
                let scratch_bytes = (peak - bytes.len()) as f64 / KEYS_TO_BUILD as f64;
                rows.push(vec![
                    format!("{}: {name}", shape.name),
                    median_text(&rounds),
                    format!("{scratch_bytes:.2}"),
                ]);
                self.results.key_builds.push(KeyBuild {
                    contender: name.to_owned(),
                    shape: shape.name.to_owned(),
                    rounds,
                    scratch_bytes,
                });
            }
        }
        self.print(
            &format!("Building and serializing a filter of {KEYS_TO_BUILD} byte keys, hashing included"),
            &rows,
        );
    }

    fn vary_k(&mut self) {
        let keys = (SMALL_SIZE * 8 / BITS_PER_KEY) as u64;
        let mut hashes = Hashes::new((0..QUERIES as u64).map(queries::absent));
        let mut rows = Vec::new();
        for k in 1..=16 {
            let mut contenders = rates::with_k(SMALL_SIZE, k);
            contenders.retain(|contender| self.is_wanted(contender.name()));
            for contender in &mut contenders {
                rates::fill(contender.as_mut(), keys);
            }
            let rounds = if self.arguments.quick { 5 } else { 21 };
            let times = race(&mut contenders, rounds, |contender| {
                time_repeatedly(&mut hashes, |hashes| {
                    std::hint::black_box(contender.count(hashes.get()));
                })
            });
            if rows.is_empty() {
                let names = contenders.iter().map(|contender| contender.name().to_owned());
                rows.push([String::new()].into_iter().chain(names).collect());
            }
            rows.push(
                [format!("k = {k}")]
                    .into_iter()
                    .chain(times.iter().map(|times| median_text(times)))
                    .collect(),
            );
            for (contender, rounds) in contenders.iter().zip(times) {
                self.results.by_k.push(KTiming { contender: contender.name().to_owned(), k, rounds });
            }
        }
        self.print(&format!("ns per lookup of an absent key, {}", size_text(SMALL_SIZE)), &rows);
    }

    fn vary_bits_per_key(&mut self) {
        let most = if self.arguments.quick { 8 << 20 } else { 64 << 20 };
        let mut rows = vec![row(["", "bits per key", "k", "FPR"])];
        for bits_per_key in (6..=24).step_by(if self.arguments.quick { 3 } else { 1 }) {
            let keys = MIDDLE_SIZE * 8 / bits_per_key;
            for (k, mut contender) in rates::with_best_k(MIDDLE_SIZE, keys) {
                if !self.is_wanted(contender.name()) {
                    continue;
                }
                rates::fill(contender.as_mut(), keys as u64);
                let (positives, queried) = rates::false_positives(contender.as_ref(), 1 << 20, most, 20_000);
                // With fewer the rate is too uncertain.
                if positives >= 100 {
                    let contender = contender.name().to_owned();
                    let bits_per_key = 8.0 * MIDDLE_SIZE as f64 / keys as f64;
                    let rate = Rate { contender, bits_per_key, k, positives, queried };
                    rows.push(vec![
                        rate.contender.clone(),
                        format!("{bits_per_key:.1}"),
                        k.to_string(),
                        format!("{:.5} %", 100.0 * rate.fpr()),
                    ]);
                    self.results.rates.push(rate);
                }
            }
        }
        self.print(
            "False-positive rate by bits per key, each filter with the k that its library chooses",
            &rows,
        );
    }
}

fn median_text(rounds: &[f64]) -> String {
    median(rounds.iter().copied()).map_or(String::new(), |median| format!("{median:.2}"))
}

fn ratio_text(ratio: Option<f64>) -> String {
    ratio.map_or(String::new(), |ratio| format!("{ratio:.2}"))
}

fn row<const N: usize>(cells: [&str; N]) -> Vec<String> {
    cells.map(str::to_owned).to_vec()
}

fn print_table(title: &str, rows: &[Vec<String>]) {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width =
        |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    println!("\n{title}");
    for row in rows {
        let mut line = String::new();
        for (i, (cell, &width)) in row.iter().zip(&widths).enumerate() {
            line += &if i == 0 { format!("  {cell:<width$}") } else { format!("  {cell:>width$}") };
        }
        println!("{}", line.trim_end());
    }
}
