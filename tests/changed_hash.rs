//! If a release of the `wyhash` crate changes its output, you get an error, never a filter with wrong answers.
//!
//! ```text
//! RUSTFLAGS="--cfg changed_wyhash" cargo test --config 'patch.crates-io.wyhash.path="tests/changed_wyhash"' \
//!     --test changed_hash
//! ```
//!
//! In any other build this file is empty.
#![cfg(changed_wyhash)]

use bloomline::{BloomFilter, BloomView, DecodeError, HashChanged};

#[test]
fn standalone_filters_are_neither_written_nor_opened() {
    let filter = BloomFilter::with_blocks(1, 6).unwrap();
    let mut bytes = vec![7];
    let changed = filter.write_standalone(&mut bytes).expect_err("the hash has changed");
    assert!(matches!(changed, HashChanged { found, expected } if found != expected));
    assert!(filter.write_standalone_to(&mut bytes).is_err());
    assert_eq!(bytes, [7], "nothing is appended");
    assert!(changed.to_string().contains("pin it to the version"));

    let written_before = include_bytes!("golden/standalone-empty.bin");
    let error = BloomView::from_standalone(written_before).map(|_| ()).expect_err("the hash has changed");
    assert_eq!(error, DecodeError::HashChanged(changed));
}
