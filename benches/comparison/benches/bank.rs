//! Looks up one key in many filters, in a bank and one by one. Writes docs/banks.md, and the figures of its plot, which the
//! report draws.
//!
//! `cargo bench -p bloomline-comparison --bench bank` prints the page. With `--save`, it also writes the files. It
//! needs about two minutes and 1 GiB of memory.

use std::fs;
use std::hint::black_box;
use std::path::Path;

use anyhow::Result;
use bloomline::bank::{FilterBank, SlotBitmap};
use bloomline::{BloomFilter, BloomView, Kernel, Sizing, mix};
use bloomline_comparison::line_up::BITS_PER_KEY;
use bloomline_comparison::machine::Machine;
use bloomline_comparison::race::{race, time_once};
use bloomline_comparison::results::{Table, json};
use clap::Parser;

#[derive(Parser)]
struct Arguments {
    /// Write docs/banks.md and docs/plots/banks.json
    #[arg(long)]
    save: bool,
    /// Numbers of filters and their KiB, such as 64x1024, instead of those of the page
    sizes: Vec<String>,
    #[arg(long, hide = true)]
    bench: bool,
}

/// Numbers of filters of 64 KiB in the plot.
const PLOTTED: [usize; 10] = [4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048];
/// Filters, and KiB of each.
const OTHERS: [(usize, usize); 3] = [(64, 1024), (256, 1024), (4096, 16)];
/// Numbers of filters of 64 KiB that only the plot shows.
const ONLY_PLOTTED: [usize; 5] = [4, 64, 128, 512, 2048];
const ROUNDS: usize = 9;
/// The best for 10 bits per key.
const K: u32 = 6;

const CONTENDERS: [&str; 6] =
    ["fastbloom", "sbbf-rs-safe", "bloomline", "bloomline, prefetched", "bank", "bank, batch"];

struct Row {
    filters: usize,
    kib: usize,
    /// Nanoseconds per lookup, in the order of `CONTENDERS`.
    times: Vec<f64>,
    made_gb_per_s: f64,
    push_ms: f64,
}

impl Row {
    fn is_shown(&self) -> bool {
        self.kib != 64 || !ONLY_PLOTTED.contains(&self.filters)
    }
}

/// Hashes of absent keys, new ones each time.
struct Absent(u64);

impl Absent {
    fn take(&mut self, n: usize) -> Vec<u64> {
        let hashes = (self.0..self.0 + n as u64).map(mix).collect();
        self.0 += n as u64;
        hashes
    }
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn main() -> Result<()> {
    let Arguments { save, sizes, .. } = Arguments::parse();
    let given = sizes.iter().filter_map(|size| {
        let (filters, kib) = size.split_once('x')?;
        Some((filters.parse().ok()?, kib.parse().ok()?))
    });
    let mut sizes: Vec<(usize, usize)> = given.collect();
    if sizes.is_empty() {
        sizes = PLOTTED.into_iter().map(|filters| (filters, 64)).chain(OTHERS).collect();
    }
    let rows: Vec<Row> = sizes.into_iter().map(|(filters, kib)| measured(filters, kib)).collect();
    let page = page(&rows);
    print!("{page}");
    if save {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
        fs::write(folder.join("banks.md"), page)?;
        fs::write(folder.join("plots/banks.json"), json(&plotted(&rows))?)?;
    }
    Ok(())
}

fn measured(n_filters: usize, kib: usize) -> Row {
    let n_keys = kib * 8192 / BITS_PER_KEY;
    let hashes = |filter: usize| (0..n_keys as u64).map(move |i| mix((filter as u64) << 40 | i));
    let filters: Vec<BloomFilter> = (0..n_filters)
        .map(|i| {
            let mut filter = BloomFilter::with_blocks(kib * 16, K).expect("enough memory");
            filter.insert_batch(&hashes(i).collect::<Vec<_>>());
            filter
        })
        .collect();
    let bytes = (n_filters * kib * 1024) as f64;
    let make = |_| bytes / time_once(1, || _ = black_box(FilterBank::from_filters(&filters)));
    let made_gb_per_s = median((0..5).map(make).collect());

    let mut bank = FilterBank::from_filters(&filters).expect("equal sizes");
    assert_equal_answers(&bank, &filters);
    let fastbloom: Vec<fastbloom::BloomFilter> = (0..n_filters)
        .map(|i| {
            let mut filter = fastbloom::BloomFilter::with_num_bits(kib * 8192).expected_items(n_keys);
            hashes(i).for_each(|hash| _ = filter.insert_hash(hash));
            filter
        })
        .collect();
    let sbbf: Vec<sbbf_rs_safe::Filter> = (0..n_filters)
        .map(|i| {
            let mut filter = sbbf_rs_safe::Filter::new(8, kib * 1024);
            hashes(i).for_each(|hash| _ = filter.insert_hash(hash));
            filter
        })
        .collect();

    type Turn<'a> = Box<dyn FnMut(&[u64]) -> usize + 'a>;
    let turns: [Turn<'_>; 6] = [
        Box::new(|hashes| {
            let count = |&hash: &u64| fastbloom.iter().filter(|filter| filter.contains_hash(hash)).count();
            hashes.iter().map(count).sum()
        }),
        Box::new(|hashes| {
            let count = |&hash: &u64| sbbf.iter().filter(|filter| filter.contains_hash(hash)).count();
            hashes.iter().map(count).sum()
        }),
        Box::new(|hashes| {
            let count = |&hash: &u64| BloomView::which_contain(&filters, hash).count();
            hashes.iter().map(count).sum()
        }),
        Box::new(|hashes| {
            let count = |&hash: &u64| {
                filters.iter().for_each(|filter| filter.prefetch(hash));
                BloomView::which_contain(&filters, hash).count()
            };
            hashes.iter().map(count).sum()
        }),
        Box::new(|hashes| {
            let mut found = SlotBitmap::new();
            let mut count = |&hash: &u64| {
                bank.as_view().find_hash(hash, &mut found);
                found.count()
            };
            hashes.iter().map(&mut count).sum()
        }),
        Box::new(|hashes| {
            let mut sum = 0;
            bank.as_view().find_batch(hashes, |_, found| sum += found.count());
            sum
        }),
    ];
    let mut contenders: Vec<_> = CONTENDERS.into_iter().zip(turns).collect();
    let mut absent = Absent(1 << 50);
    let n = ((8 << 20) / n_filters).clamp(1 << 8, 16 << 10);
    let column = race("banks", "", &mut contenders, ROUNDS, |turn| {
        // Not timed, because the contender before has left its data in the caches.
        black_box(turn(&absent.take(n)));
        let hashes = absent.take(n);
        time_once(n, || _ = black_box(turn(&hashes)))
    });
    drop(contenders);
    let times = column.values.into_iter().map(|(_, times)| median(times)).collect();

    // The last slot of a bank of this size.
    let sizing = Sizing::new(kib * 16, K).expect("in range");
    let pushes = (0..3).map(|_| {
        bank = FilterBank::with_capacity(sizing, n_filters).expect("enough memory");
        bank.push_all(&filters[1..]).expect("room for them");
        time_once(1_000_000, || _ = bank.push(&filters[0]).expect("room for it"))
    });
    let push_ms = median(pushes.collect());
    Row { filters: n_filters, kib, times, made_gb_per_s, push_ms }
}

fn assert_equal_answers(bank: &FilterBank, filters: &[BloomFilter]) {
    let mut found = SlotBitmap::new();
    for i in 0..1000_u64 {
        let hash = if i % 2 == 0 { mix(1 << 62 | i) } else { mix((i % filters.len() as u64) << 40 | i) };
        bank.as_view().find_hash(hash, &mut found);
        let expected = filters.iter().enumerate().filter(|(_, filter)| filter.contains_hash(hash));
        assert!(found.iter().eq(expected.map(|(slot, _)| slot)), "the bank returns what the filters return");
    }
}

fn page(rows: &[Row]) -> String {
    let machine = Machine::this();
    let cpu = machine.facts.iter().find(|(fact, _)| fact == "CPU").map_or("", |(_, value)| value);
    format!(
        include_str!("bank.txt"),
        rounds = ROUNDS,
        date = machine.date,
        cpu = cpu,
        machine = machine.name,
        kernel = Kernel::active(),
        names = CONTENDERS.join(" | "),
        dashes = "---|".repeat(CONTENDERS.len()),
        rows = rows.iter().filter(|row| row.is_shown()).map(line).collect::<String>(),
    )
}

fn line(Row { filters, kib, times, made_gb_per_s, push_ms }: &Row) -> String {
    let times = Vec::from_iter(times.iter().map(|time| format!("{time:.0}"))).join(" | ");
    format!("| {filters} of {} | {times} | {made_gb_per_s:.1} | {push_ms:.1} |\n", size(*kib))
}

fn size(kib: usize) -> String {
    if kib.is_multiple_of(1024) { format!("{} MiB", kib / 1024) } else { format!("{kib} KiB") }
}

fn plotted(rows: &[Row]) -> Table {
    let rows: Vec<&Row> = rows.iter().filter(|row| row.kib == 64).collect();
    let times = |i: usize| rows.iter().map(|row| Some((row.times[i] * 10.0).round() / 10.0)).collect();
    Table {
        title: Machine::this().name,
        columns: rows.iter().map(|row| row.filters.to_string()).collect(),
        rows: CONTENDERS.iter().enumerate().map(|(i, &name)| (name.to_owned(), times(i))).collect(),
    }
}
