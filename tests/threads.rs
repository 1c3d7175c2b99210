//! Threads share filters, and all choose the kernel at the same moment. Also run under the thread sanitizer.
//!
//! The proof that the atomic code is right is `loom.rs`, because it tries every interleaving of two threads. Here a bug
//! shows only if threads happen to meet. For example, a bug that `loom.rs` always finds passed in 23 of 30 runs. But
//! these tests add whole filters, batches, and the kernels' assembly.

use std::sync::{Barrier, OnceLock};
use std::thread;

use bloomline::{AtomicBloomFilter, BloomFilter, Kernel, Sizing, mix};

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

/// Usually the first use of a kernel in the process. If a different test of this file comes first, its threads start at
/// the same moment too.
#[test]
fn all_threads_choose_the_same_kernel() {
    let fastest = OnceLock::new();
    at_once(|_| {
        let kernel = Kernel::active();
        assert_eq!(*fastest.get_or_init(|| kernel), kernel);
        assert_eq!(Kernel::available().next(), Some(kernel));
    });
}

/// Each thread inserts keys of its own and keys that all insert, in few blocks, so that threads write to the same
/// lanes.
#[test]
fn no_thread_loses_a_bit_of_another() {
    let keys = if cfg!(miri) { 20 } else { 5_000 };
    let hash = |thread: u64, i: u64| mix(if i.is_multiple_of(4) { i } else { thread << 32 | i });
    for (kernel, n_modules) in Kernel::available().flat_map(|kernel| [(kernel, 1), (kernel, 2)]) {
        let sizing = Sizing::new(if cfg!(miri) { 2 } else { 300 }, 11).unwrap();
        let sizing = sizing.with_modules(n_modules).unwrap();
        let empty = BloomFilter::with_sizing(sizing).unwrap().with_kernel(kernel);
        let filter = AtomicBloomFilter::from(empty.clone());
        at_once(|thread| {
            for i in 0..keys {
                filter.insert_hash(hash(thread, i));
                // A thread finds its own keys while all other threads still insert.
                assert!(
                    (i.saturating_sub(20)..=i).all(|i| filter.contains_hash(hash(thread, i))),
                    "{kernel}"
                );
            }
            let batch: Vec<u64> = (keys..keys + 100).map(|i| hash(thread, i)).collect();
            filter.insert_batch(&batch);
            let mut found = [false; 100];
            filter.contains_batch(&batch, &mut found);
            assert_eq!(found, [true; 100], "{kernel}");
        });
        let mut expected = empty;
        for thread in 0..THREADS {
            (0..keys + 100).for_each(|i| _ = expected.insert_hash(hash(thread, i)));
        }
        assert!(filter.to_filter().unwrap() == expected, "{kernel}: a copy");
        assert!(BloomFilter::from(filter) == expected, "{kernel}");
    }
}
