//! Inserts of two threads into the same lanes, in chosen orders. So a lost update fails each time, although real
//! threads rarely meet.
//!
//! `tests/loom.rs` tries all orders, in a build of its own.

use std::cell::Cell;

#[path = "../src/kernel/shared.rs"]
#[allow(dead_code, reason = "tests/loom.rs calls the rest")]
mod shared;

/// What `shared.rs` uses instead of `src/kernel/sync.rs`.
mod sync {
    use super::{Cell, before_each_access};
    pub(crate) use std::sync::atomic::Ordering;

    pub(crate) struct AtomicU64(pub(super) Cell<u64>);

    #[allow(dead_code, reason = "an insert may use any of them")]
    impl AtomicU64 {
        pub(crate) fn load(&self, _: Ordering) -> u64 {
            before_each_access();
            self.0.get()
        }

        pub(crate) fn store(&self, bits: u64, _: Ordering) {
            before_each_access();
            self.0.set(bits);
        }

        pub(crate) fn fetch_or(&self, bits: u64, _: Ordering) -> u64 {
            before_each_access();
            self.0.replace(self.0.get() | bits)
        }
    }
}

use sync::AtomicU64;

type Lanes = [AtomicU64; 8];
type Insert = Box<dyn FnOnce()>;

thread_local! {
    /// The number of accesses until the second thread inserts, and its insert.
    static OTHER: Cell<Option<(usize, Insert)>> = const { Cell::new(None) };
}

fn before_each_access() {
    match OTHER.take() {
        Some((0, insert)) => insert(),
        Some((accesses, insert)) => OTHER.set(Some((accesses - 1, insert))),
        None => (),
    }
}

fn insert(lanes: &Lanes, mask: [u64; 8]) -> bool {
    shared::insert(lanes, mask.into_iter().enumerate().filter(|(_, bits)| *bits != 0))
}

#[test]
fn no_insert_undoes_the_insert_of_another_thread() {
    const OURS: [u64; 8] = [0b0011, 0b1, 0b01, 0, 0, 0, 0, 1 << 63];
    const THEIRS: [u64; 8] = [0b0110, 0b1, 0b10, 0b1, 0, 0, 0, 1 << 63];
    for accesses in 0.. {
        let lanes: &Lanes = Box::leak(Box::new(std::array::from_fn(|_| AtomicU64(Cell::new(0b1000)))));
        OTHER.set(Some((accesses, Box::new(|| assert!(insert(lanes, THEIRS), "their key was new")))));
        assert!(insert(lanes, OURS), "our key was new");
        let is_over = OTHER.take().is_some();
        let bits = |mask: [u64; 8]| -> [u64; 8] { std::array::from_fn(|i| lanes[i].0.get() & mask[i]) };
        assert_eq!(bits(OURS), OURS, "their insert before access {accesses} of ours");
        if is_over {
            // Four lanes are read, and four written.
            return assert!(accesses >= 8);
        }
        assert_eq!(bits(THEIRS), THEIRS, "their insert before access {accesses} of ours");
    }
}
