//! Hot loops over the same keys, whose instructions valgrind's callgrind counts: scripts/check instructions.
use std::hint::black_box;

use bloomline::bank::{FilterBank, SlotBitmap};
use bloomline::variants::StandardBloomFilter;
use bloomline::{AtomicBloomFilter, BloomFilter, BloomView, Sizing, mix};

const KEYS: usize = 4096;

/// Callgrind counts what this function calls, and names no loop.
#[inline(never)]
#[unsafe(no_mangle)]
fn counted(run: &mut dyn FnMut()) {
    run();
    // Not a jump, after which callgrind would not see this function return.
    black_box(());
}

fn count<T>(name: &str, mut run: impl FnMut() -> T) {
    counted(&mut || drop(black_box(run())));
    println!("{name}\t{KEYS}");
}

fn with_keys(n_blocks: usize, n_modules: usize, keys: &[u64]) -> BloomFilter {
    let sizing = Sizing::new(n_blocks, 6).and_then(|sizing| sizing.with_modules(n_modules));
    let mut filter = BloomFilter::with_sizing(sizing.expect("in range")).expect("4 MiB");
    filter.insert_batch(keys);
    black_box(filter)
}

fn main() {
    let hashes: Vec<u64> = (0..KEYS as u64).map(mix).collect();
    // Every second key is present.
    let present: Vec<u64> = hashes.iter().copied().step_by(2).collect();
    let mut filter = with_keys(64, 1, &present);
    let (large, modules) = (with_keys(1 << 16, 1, &present), with_keys(128, 2, &present));
    let (mut found, mut bits) = (vec![false; KEYS], vec![0; KEYS / 8]);
    let text = vec![b'x'; KEYS + 1024];
    let (atomic, mut standard) =
        (AtomicBloomFilter::from(filter.clone()), StandardBloomFilter::with_fpr(KEYS as u64, 0.01).unwrap());
    let filters = vec![filter.clone(); 16];
    let bank = FilterBank::from_filters(&filters).unwrap();
    let bank = black_box(bank.as_view());
    let mut slots = SlotBitmap::default();

    let looked_up = |filter: &BloomFilter| hashes.iter().filter(|&&hash| filter.contains_hash(hash)).count();
    let by_key = |length| (0..KEYS).filter(|&at| filter.contains(&text[at..at + length])).count();
    count("contains_hash", || looked_up(&filter));
    count("contains_hash, two modules", || looked_up(&modules));
    count("contains, 16 bytes", || by_key(black_box(16)));
    count("contains, 200 bytes", || by_key(black_box(200)));
    count("contains_batch", || filter.contains_batch(&hashes, &mut found));
    count("contains_batch, 4 MiB", || large.contains_batch(&hashes, &mut found));
    count("contains_batch, two modules", || modules.contains_batch(&hashes, &mut found));
    count("contains_bitmap", || filter.contains_bitmap(&hashes, &mut bits));
    count("BloomView::which_contain, 16 filters", || {
        let all = hashes.iter().flat_map(|&hash| BloomView::which_contain(&filters, hash));
        all.count()
    });
    count("FilterBank::find_hash, 16 filters", || {
        for &hash in &hashes {
            black_box(bank.find_hash(hash, &mut slots));
        }
    });
    count("insert_hash", || {
        for &hash in &hashes {
            filter.insert_hash(hash);
        }
    });
    count("insert_batch", || filter.insert_batch(&hashes));
    count("AtomicBloomFilter::insert_hash", || {
        for &hash in &hashes {
            atomic.insert_hash(hash);
        }
    });
    count("StandardBloomFilter::insert_batch", || standard.insert_batch(&hashes));
}
