//! Every order in which threads can meet, by loom's model of memory.
//!
//! ```text
//! RUSTFLAGS="--cfg loom" cargo test --test loom
//! ```
//!
//! Elsewhere there is nothing to test.
#![cfg(loom)]

use loom::sync::Arc;
use loom::sync::atomic::{self, AtomicU8, AtomicUsize};
use loom::thread;

#[path = "../src/kernel/choice.rs"]
mod choice;

use choice::{Choice, UNMADE};

/// Whether a thread asks first, while the other is choosing, or after it: it gets the choice, and nobody chooses who
/// has seen it.
#[test]
fn every_thread_gets_the_choice() {
    loom::model(|| {
        let choice = Arc::new((Choice(AtomicU8::new(UNMADE)), AtomicUsize::new(0)));
        let ask_twice = |(choice, chosen): &(Choice, AtomicUsize)| {
            let choose = || {
                chosen.fetch_add(1, atomic::Ordering::Relaxed);
                2
            };
            assert_eq!(choice.get(&["a", "b", "c"], choose), "c");
            assert_eq!(choice.get(&["a", "b", "c"], || unreachable!("this thread has seen the choice")), "c");
        };
        let other = {
            let choice = Arc::clone(&choice);
            thread::spawn(move || ask_twice(&choice))
        };
        ask_twice(&choice);
        other.join().expect("no panic");
        let chosen = choice.1.load(atomic::Ordering::Relaxed);
        assert!(matches!(chosen, 1 | 2), "chosen {chosen} times by two threads");
    });
}
