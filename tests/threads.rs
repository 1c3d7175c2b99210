//! Threads that share filters, and the choice of the kernel, which all make at once. The thread sanitizer watches.

use std::sync::{Barrier, OnceLock};
use std::thread;

use bloomline::sstable::FilterPolicy;
use bloomline::{BloomFilter, Kernel, mix};

const THREADS: u64 = 4;

/// Calls `run` in several threads at the same moment.
fn at_once(run: impl Fn(u64) + Sync) {
    let start = Barrier::new(THREADS as usize);
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (start, run) = (&start, &run);
            scope.spawn(move || {
                start.wait();
                run(thread);
            });
        }
    });
}

/// The first use in the process, unless another test of this file was quicker; all of them start at once.
#[test]
fn all_threads_choose_the_same_kernel() {
    let fastest = OnceLock::new();
    at_once(|_| {
        let kernel = Kernel::active();
        assert_eq!(*fastest.get_or_init(|| kernel), kernel);
        assert_eq!(Kernel::available().next(), Some(kernel));
    });
}

#[test]
fn a_filter_is_read_by_many_threads() {
    let hashes: Vec<u64> = (0..if cfg!(miri) { 20 } else { 1_000 }).map(mix).collect();
    let mut filter = BloomFilter::with_bits_per_key(hashes.len(), 10.0).unwrap();
    filter.insert_batch(&hashes);
    at_once(|_| {
        let mut found = vec![false; hashes.len()];
        filter.contains_batch(&hashes, &mut found);
        assert!(found.iter().all(|&found| found));
        assert!(hashes.iter().all(|&hash| filter.contains_hash(hash)));
    });
}

#[test]
fn a_policy_makes_filters_in_many_threads() {
    let policy = FilterPolicy::with_bits_per_key(10.0).unwrap();
    at_once(|thread| {
        for table in 0..if cfg!(miri) { 1 } else { 10 } {
            let keys: Vec<[u8; 8]> =
                (0..20).map(|i| mix(thread << 32 | table << 16 | i).to_be_bytes()).collect();
            let mut filter = Vec::new();
            policy.create_filter(&keys, &mut filter);
            assert!(keys.iter().all(|key| policy.key_may_match(key, &filter)));
        }
    });
}
