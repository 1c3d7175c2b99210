//! Every interleaving of the threads, under loom's memory model.
//!
//! ```text
//! RUSTFLAGS="--cfg loom" cargo test --test loom
//! ```
//!
//! In any other build this file is empty.
#![cfg(loom)]

use loom::sync::Arc;
use loom::sync::atomic::{self, AtomicU8, AtomicU64, AtomicUsize};
use loom::thread;

/// What the files below use instead of `src/kernel/sync.rs`.
mod sync {
    pub(crate) use loom::sync::atomic::{AtomicU8, AtomicU64, Ordering};
}

#[path = "../src/kernel/choice.rs"]
mod choice;

use choice::{Choice, UNMADE};

#[path = "../src/kernel/shared.rs"]
mod shared;

fn insert(lanes: &[AtomicU64; 8], mask: [u64; 8]) -> bool {
    shared::insert(lanes, mask.into_iter().enumerate().filter(|(_, bits)| *bits != 0))
}

/// In every order, the bits of both threads are set when both are done, beside those that were set before, and each
/// thread sees its own bits right after its insert. A later insert of the same bits reports nothing new.
#[test]
fn threads_set_bits_in_the_same_lanes() {
    const MASKS: [[u64; 8]; 2] = [[0b0011, 0b1, 0, 0, 0, 0, 0, 0], [0b0110, 0b1, 0, 0, 0, 0, 0, 0]];
    loom::model(|| {
        let lanes: Arc<[AtomicU64; 8]> = Arc::new(core::array::from_fn(|_| AtomicU64::new(0b1000)));
        let insert = |lanes: &[AtomicU64; 8], mask: [u64; 8]| {
            let is_new = insert(lanes, mask);
            let seen = shared::load(lanes);
            assert!(seen.iter().zip(mask).all(|(seen, bits)| seen & bits == bits), "own bits not seen");
            is_new
        };
        let other = {
            let lanes = Arc::clone(&lanes);
            thread::spawn(move || insert(&lanes, MASKS[1]))
        };
        let is_new = [insert(&lanes, MASKS[0]), other.join().expect("no panic")];
        // Each of the two masks has a bit of its own.
        assert_eq!(is_new, [true; 2]);
        assert_eq!(shared::load(&lanes), [0b1111, 0b1001, 8, 8, 8, 8, 8, 8]);
        assert!(!insert(&lanes, MASKS[0]) && !insert(&lanes, MASKS[1]));
    });
}

/// If two threads insert the same key, `insert` reports it as new to at least one of them.
#[test]
fn a_key_inserted_by_two_threads_is_new_to_at_least_one() {
    loom::model(|| {
        let lanes: Arc<[AtomicU64; 8]> = Arc::new(core::array::from_fn(|_| AtomicU64::new(0)));
        let mask = [0b1, 0b1, 0, 0, 0, 0, 0, 0];
        let other = {
            let lanes = Arc::clone(&lanes);
            thread::spawn(move || insert(&lanes, mask))
        };
        let is_new = insert(&lanes, mask);
        assert!(other.join().expect("no panic") || is_new);
        assert_eq!(shared::load(&lanes), mask);
    });
}

/// A thread gets the same choice whether it comes first, while the second thread is choosing, or last. But a thread
/// that has seen the choice does not choose again.
#[test]
fn every_thread_gets_the_same_choice() {
    loom::model(|| {
        let choice = Arc::new((Choice(AtomicU8::new(UNMADE)), AtomicUsize::new(0)));
        let get_twice = |(choice, chosen): &(Choice, AtomicUsize)| {
            let item = |number: u8| ["a", "b", "c"].get(usize::from(number)).copied();
            let choose = || {
                chosen.fetch_add(1, atomic::Ordering::Relaxed);
                2
            };
            assert_eq!(choice.get(item, choose), "c");
            assert_eq!(choice.get(item, || unreachable!("this thread has seen the choice")), "c");
        };
        let other = {
            let choice = Arc::clone(&choice);
            thread::spawn(move || get_twice(&choice))
        };
        get_twice(&choice);
        other.join().expect("no panic");
        let chosen = choice.1.load(atomic::Ordering::Relaxed);
        assert!(matches!(chosen, 1 | 2), "chosen {chosen} times by two threads");
    });
}
