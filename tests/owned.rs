//! Views that keep their bytes are sound wherever their owner goes, which `scripts/check miri` sees: they are opened,
//! cloned, moved, sent, replaced and dropped by value. `drop` frees the bytes while the view is its argument.

use std::collections::HashMap;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;

use bloomline::bank::{BankView, IndexView, SlotBitmap};
use bloomline::{AlignedBytes, BloomFilter, Owned, OwnedView, Sizing};

/// `as_ref` returns different bytes at each call, because `AsRef` promises nothing.
struct Fickle {
    first: Vec<u8>,
    others: [u8; 3],
    calls: AtomicUsize,
}

impl AsRef<[u8]> for Fickle {
    fn as_ref(&self) -> &[u8] {
        if self.calls.fetch_add(1, Relaxed) == 0 { &self.first } else { &self.others }
    }
}

fn fickle(bytes: &[u8]) -> Fickle {
    Fickle { first: bytes.to_vec(), others: [0; 3], calls: AtomicUsize::new(0) }
}

fn filter(n_modules: usize) -> BloomFilter {
    let sizing = Sizing::new(2, 6).unwrap().with_modules(n_modules).unwrap();
    let mut filter = BloomFilter::with_sizing(sizing).unwrap();
    filter.insert("ant");
    filter
}

/// Made by `tests/golden/make.py`, because it takes miri minutes to make them.
const COMPACT: &[u8] = include_bytes!("golden/compact-1-block.bin");
const BANK: &[u8] = include_bytes!("golden/bank-9-slots.bin");
const INDEX: &[u8] = include_bytes!("golden/index-6-files.bin");

/// Moves a kept view to everywhere that Rust code moves values. `open` returns a new one each time.
fn is_moved<O: Clone + Send + 'static>(
    open: impl Fn() -> O,
    has_key: impl Fn(&O) -> bool + Copy + Send + 'static,
) {
    let by_value = |kept: O| {
        let answer = has_key(&kept);
        drop(kept);
        answer
    };
    drop(open());
    assert!(by_value(open()));

    let kept = open();
    let clone = kept.clone();
    assert!(by_value(kept) && has_key(&clone) && by_value(clone.clone()) && has_key(&clone));
    drop(clone);

    let kept = open();
    let closure = move || by_value(kept);
    assert!(closure());
    let kept = open();
    assert!(thread::spawn(move || has_key(&kept)).join().unwrap());
    let kept = open();
    let kept = thread::spawn(move || kept).join().unwrap();
    assert!(has_key(&kept));

    // A cache that evicts.
    let mut cache = HashMap::from([(1, open()), (2, kept)]);
    assert!(has_key(&cache[&1]));
    assert!(cache.insert(1, open()).is_some_and(by_value));
    assert!(cache.remove(&2).is_some_and(by_value));
    let mut last = Box::new(cache.remove(&1).unwrap());
    assert!(by_value(mem::replace(&mut *last, open())));
    *last = open();
    assert!(has_key(&last));
    let mut list = vec![*last, open()];
    list.swap(0, 1);
    list.push(open());
    list.reverse();
    assert!(list.iter().all(has_key) && list.into_iter().all(by_value));
}

#[test]
fn a_kept_filter_may_be_moved_and_dropped_anywhere() {
    fn ask<B>(view: &OwnedView<B>) -> bool {
        view.contains("ant") && !view.as_view().contains("elk")
    }
    let bytes = filter(1).to_standalone();
    is_moved(|| OwnedView::from_standalone(bytes.clone()).unwrap(), ask);
    is_moved(|| OwnedView::from_standalone(Box::<[u8]>::from(&*bytes)).unwrap(), ask);
    is_moved(|| OwnedView::from_standalone(AlignedBytes::copy_of(&bytes).unwrap()).unwrap(), ask);
    is_moved(|| OwnedView::from_standalone_unverified(Arc::<[u8]>::from(&*bytes)).unwrap(), ask);
    is_moved(|| OwnedView::from_standalone_unverified(fickle(&bytes)).unwrap(), ask);
    is_moved(|| OwnedView::from_compact(COMPACT).unwrap(), ask);
    // Bytes that move with their owner.
    let array: [u8; 129] = filter(1).to_compact().try_into().unwrap();
    is_moved(|| OwnedView::from_compact(array).unwrap(), ask);
    let two_modules = filter(2).to_compact();
    is_moved(|| OwnedView::from_compact(two_modules.clone()).unwrap(), ask);
}

/// The owner can be a borrow, even one that could change the bytes.
#[test]
fn bytes_that_were_lent_come_back() {
    let mut bytes = filter(1).to_standalone();
    {
        let kept = OwnedView::from_standalone(&mut bytes).unwrap();
        let moved = Box::new(kept.clone());
        drop(kept);
        assert!(moved.contains("ant"));
        drop(*moved);
    }
    bytes[0] ^= 1;
    assert!(OwnedView::from_standalone(&mut bytes).is_err());
}

#[test]
fn a_kept_bank_may_be_moved_and_dropped_anywhere() {
    fn ask<B>(bank: &Owned<BankView<'static>, B>) -> bool {
        let mut found = SlotBitmap::new();
        bank.as_view().find("6-0", &mut found) && found.contains(6)
    }
    is_moved(|| Owned::from_standalone_unverified(BANK.to_vec()).unwrap(), ask);
    is_moved(|| Owned::from_standalone_unverified(fickle(BANK)).unwrap(), ask);
    assert!(ask(&Owned::from_standalone(Arc::<[u8]>::from(BANK)).unwrap()));
}

#[test]
fn a_kept_index_may_be_moved_and_dropped_anywhere() {
    fn ask<B>(index: &Owned<IndexView<'static>, B>) -> bool {
        index.as_view().footer().name(1) == Some(b"logs/2026-11-26/app.log")
    }
    is_moved(|| Owned::from_standalone_unverified(INDEX.to_vec()).unwrap(), ask);
    is_moved(|| Owned::from_standalone_unverified(fickle(INDEX)).unwrap(), ask);
    let index = Owned::<IndexView, _>::from_standalone(Arc::<[u8]>::from(INDEX)).unwrap();
    assert_eq!(index.as_view().find("ant", &mut SlotBitmap::new()), Ok(true));
}

/// The owner is dropped once, also when the bytes are refused.
#[test]
fn the_bytes_are_dropped_with_the_last_clone() {
    let bytes: Arc<[u8]> = filter(1).to_standalone().into();
    let kept = OwnedView::from_standalone(Arc::clone(&bytes)).unwrap();
    let clone = kept.clone();
    assert!(Arc::ptr_eq(kept.get_ref(), clone.get_ref()) && Arc::strong_count(&bytes) == 2);
    drop(kept);
    assert!(clone.contains("ant") && Arc::strong_count(&bytes) == 2);
    drop(clone);
    assert_eq!(Arc::strong_count(&bytes), 1);
    assert!(OwnedView::from_compact(Arc::clone(&bytes)).is_err() && Arc::strong_count(&bytes) == 1);
}
