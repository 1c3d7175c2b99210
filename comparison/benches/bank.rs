//! One key in many filters: a bank, and the filters one by one. Absent keys that never repeat, 10 bits per key.
//!
//! `cargo bench -p bloomline-comparison --bench bank`, with numbers of filters and their KiB as arguments: `64x1024`.

use std::hint::black_box;
use std::time::Instant;

use bloomline::bank::{FilterBank, SlotBitmap};
use bloomline::{BloomFilter, BloomView, Kernel, mix};
use bloomline_comparison::line_up::BITS_PER_KEY;
use bloomline_comparison::race::{race, time_once};

/// Filters, and KiB of each.
const SIZES: [(usize, usize); 10] = [
    (4, 64),
    (8, 64),
    (16, 64),
    (32, 64),
    (64, 64),
    (256, 64),
    (1024, 64),
    (64, 1024),
    (256, 1024),
    (4096, 16),
];
const ROUNDS: usize = 9;
const K: u32 = 6;

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

fn main() {
    let given = std::env::args().skip(1).filter_map(|size| {
        let (filters, kib) = size.split_once('x')?;
        Some((filters.parse().ok()?, kib.parse().ok()?))
    });
    let mut sizes: Vec<(usize, usize)> = given.collect();
    if sizes.is_empty() {
        sizes = SIZES.to_vec();
    }
    println!("kernel {}; ns per lookup, median of {ROUNDS} rounds", Kernel::active());
    println!(
        "| filters | one by one | prefetched | fastbloom | sbbf-rs | bank | bank, batch | bank ÷ prefetched | batch ÷ \
         bank | made, GB/s | push, ms |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|");
    for (n_filters, kib) in sizes {
        row(n_filters, kib);
    }
}

fn row(n_filters: usize, kib: usize) {
    let n_blocks = kib * 16;
    let n_keys = kib * 8192 / BITS_PER_KEY;
    let hashes = |filter: usize| (0..n_keys as u64).map(move |i| mix((filter as u64) << 40 | i));
    let filters: Vec<BloomFilter> = (0..n_filters)
        .map(|i| {
            let mut filter = BloomFilter::with_blocks(n_blocks, K).expect("enough memory");
            filter.insert_batch(&hashes(i).collect::<Vec<_>>());
            filter
        })
        .collect();
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

    let views: Vec<BloomView<'_>> = filters.iter().map(BloomView::from).collect();
    let make = || {
        let start = Instant::now();
        let bank = FilterBank::from_filters(&views).expect("equal sizes");
        (start.elapsed().as_secs_f64(), bank)
    };
    let bytes = (n_filters * kib * 1024) as f64;
    let speed = median((0..5).map(|_| bytes / make().0 / 1e9).collect());
    let mut bank = make().1;

    let mut found = SlotBitmap::new();
    for i in 0..1000_u64 {
        let hash = if i % 2 == 0 { mix(1 << 62 | i) } else { mix((i % n_filters as u64) << 40 | i) };
        bank.find_hash(hash, &mut found);
        let expected = filters.iter().enumerate().filter(|(_, filter)| filter.contains_hash(hash));
        assert!(found.iter().eq(expected.map(|(slot, _)| slot)), "the bank returns what the filters return");
    }

    let mut absent = Absent(1 << 50);
    let n = (8 << 20) / n_filters;
    let n = n.clamp(1 << 8, 16 << 10);
    let mut sum = 0_usize;
    type Turn<'a> = Box<dyn FnMut(&[u64]) -> usize + 'a>;
    let mut contenders: Vec<(&str, Turn<'_>)> = vec![
        (
            "one by one",
            Box::new(|hashes| {
                hashes
                    .iter()
                    .map(|&hash| filters.iter().filter(|filter| filter.contains_hash(hash)).count())
                    .sum()
            }),
        ),
        (
            "prefetched",
            Box::new(|hashes| {
                let mut sum = 0;
                for &hash in hashes {
                    filters.iter().for_each(|filter| filter.prefetch(hash));
                    sum += filters.iter().filter(|filter| filter.contains_hash(hash)).count();
                }
                sum
            }),
        ),
        (
            "fastbloom",
            Box::new(|hashes| {
                hashes
                    .iter()
                    .map(|&hash| fastbloom.iter().filter(|filter| filter.contains_hash(hash)).count())
                    .sum()
            }),
        ),
        (
            "sbbf-rs",
            Box::new(|hashes| {
                hashes
                    .iter()
                    .map(|&hash| sbbf.iter().filter(|filter| filter.contains_hash(hash)).count())
                    .sum()
            }),
        ),
        (
            "bank",
            Box::new(|hashes| {
                let mut found = SlotBitmap::new();
                hashes.iter().map(|&hash| usize::from(black_box(&bank).find_hash(hash, &mut found))).sum()
            }),
        ),
        (
            "batch",
            Box::new(|hashes| {
                let mut sum = 0;
                bank.find_batch(hashes, |_, found| sum += usize::from(!found.is_empty()));
                sum
            }),
        ),
    ];
    let column = race("bank", "time", &mut contenders, ROUNDS, |turn| {
        // The contender before has left its data in the caches.
        sum += turn(&absent.take(n));
        let hashes = absent.take(n);
        time_once(n, || sum += turn(&hashes))
    });
    drop(contenders);
    black_box(sum);
    let times: Vec<f64> = column.values.into_iter().map(|(_, times)| median(times)).collect();
    let [one_by_one, prefetched, fastbloom, sbbf, single, batch] = times[..] else { unreachable!() };

    bank.reserve(1).expect("enough memory");
    let pushes = (0..5).map(|i| {
        let start = Instant::now();
        bank.replace(i * (n_filters - 1) / 4, &filters[0]).expect("a slot");
        start.elapsed().as_secs_f64() * 1e3
    });
    let push = median(pushes.collect());
    println!(
        "| {n_filters} × {kib} KiB | {one_by_one:.0} | {prefetched:.0} | {fastbloom:.0} | {sbbf:.0} | {single:.0} | \
         {batch:.0} | {:.3} | {:.2} | {speed:.2} | {push:.2} |",
        single / prefetched,
        batch / single,
    );
}
