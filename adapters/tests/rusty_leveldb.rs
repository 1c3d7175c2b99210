//! What tables of `rusty-leveldb` store. The core's `tests/sstable_policy.rs` tests whole databases.
#![cfg(feature = "rusty-leveldb")]

use std::rc::Rc;

use bloomline::sstable::FilterPolicy;
use bloomline_adapters::Bloomline;

#[test]
fn filters_have_the_name_and_the_bytes_of_the_policy() {
    let policy = Bloomline::with_bits_per_key(10.0).unwrap();
    let boxed: Rc<Box<dyn rusty_leveldb::FilterPolicy>> = policy.clone().into();
    assert_eq!(boxed.name(), FilterPolicy::NAME);
    let filter = boxed.create_filter(b"antbee", &[0, 3]);
    let mut expected = Vec::new();
    FilterPolicy::with_bits_per_key(10.0).unwrap().create_filter(["ant", "bee"], &mut expected);
    assert_eq!(filter, expected);
    assert!(boxed.key_may_match(b"ant", &filter) && boxed.key_may_match(b"bee", &filter));
    assert!(!boxed.key_may_match(b"cat", &filter));
    assert_eq!(policy.unusable_filters(), 0);
    assert!(boxed.key_may_match(b"cat", &filter[1..]) && boxed.key_may_match(b"cat", b""));
    assert_eq!(policy.unusable_filters(), 2);
}
