//! Every order in which threads can meet, by loom's model of memory.
//!
//! ```text
//! RUSTFLAGS="--cfg loom" cargo test --test loom
//! ```
//!
//! Elsewhere there is nothing to test.
#![cfg(loom)]

use loom::sync::Arc;
use loom::sync::atomic::{self, AtomicU8, AtomicU64, AtomicUsize};
use loom::thread;

#[path = "../src/kernel/choice.rs"]
mod choice;

use choice::{Choice, UNMADE};

#[path = "../src/kernel/shared.rs"]
mod shared;

/// Whatever the order, bits of both are there when both are done, each was set by one of them, and who is told of none
/// finds its own all the same.
#[test]
fn threads_set_bits_in_the_same_lanes() {
    const MASKS: [[u64; 8]; 2] = [[0b0011, 0b1, 0, 0, 0, 0, 0, 0], [0b0110, 0b1, 0, 0, 0, 0, 0, 0]];
    loom::model(|| {
        let lanes: Arc<[AtomicU64; 8]> = Arc::new(core::array::from_fn(|_| AtomicU64::new(0)));
        let insert = |lanes: &[AtomicU64; 8], mask: [u64; 8]| {
            let is_new = shared::insert(lanes, mask);
            let seen = shared::load(lanes);
            assert!(seen.iter().zip(mask).all(|(seen, bits)| seen & bits == bits), "its own bits");
            is_new
        };
        let other = {
            let lanes = Arc::clone(&lanes);
            thread::spawn(move || insert(&lanes, MASKS[1]))
        };
        let is_new = [insert(&lanes, MASKS[0]), other.join().expect("no panic")];
        // Each has a bit that the other has not.
        assert_eq!(is_new, [true; 2]);
        assert_eq!(shared::load(&lanes), [0b0111, 0b1, 0, 0, 0, 0, 0, 0]);
        assert!(!shared::insert(&lanes, MASKS[0]) && !shared::insert(&lanes, MASKS[1]));
    });
}

/// The same key by two threads: one of them is told that it is new.
#[test]
fn a_key_inserted_by_two_threads_is_new_to_at_least_one() {
    loom::model(|| {
        let lanes: Arc<[AtomicU64; 8]> = Arc::new(core::array::from_fn(|_| AtomicU64::new(0)));
        let mask = [0b1, 0b1, 0, 0, 0, 0, 0, 0];
        let other = {
            let lanes = Arc::clone(&lanes);
            thread::spawn(move || shared::insert(&lanes, mask))
        };
        let is_new = shared::insert(&lanes, mask);
        assert!(other.join().expect("no panic") || is_new);
        assert_eq!(shared::load(&lanes), mask);
    });
}

/// Whether a thread asks first, while the other is choosing, or after it: it gets the choice, and nobody chooses who
/// has seen it.
#[test]
fn every_thread_gets_the_same_choice() {
    loom::model(|| {
        let choice = Arc::new((Choice(AtomicU8::new(UNMADE)), AtomicUsize::new(0)));
        let get_twice = |(choice, chosen): &(Choice, AtomicUsize)| {
            let choose = || {
                chosen.fetch_add(1, atomic::Ordering::Relaxed);
                2
            };
            assert_eq!(choice.get(&["a", "b", "c"], choose), "c");
            assert_eq!(choice.get(&["a", "b", "c"], || unreachable!("this thread has seen the choice")), "c");
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
