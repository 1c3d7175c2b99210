//! Filters round-trip through serde, and damaged data is an error.
#![cfg(feature = "serde")]

use std::fmt::Debug;

use bloomline::variants::{CountingBloomFilter, Frontier, ScalableBloomFilter, StandardBloomFilter};
use bloomline::{AtomicBloomFilter, BloomFilter, Sizing};
use serde_core::{Serialize, de::DeserializeOwned};

/// Round-trips through a text format, which has no type for bytes, and a binary format. Damaged data is an error in
/// both.
fn round_trips<T: Serialize + DeserializeOwned + PartialEq + Debug>(filter: &T) {
    let text = serde_json::to_string(filter).unwrap();
    assert_eq!(serde_json::from_str::<T>(&text).unwrap(), *filter);
    let bytes = postcard::to_allocvec(filter).unwrap();
    assert_eq!(postcard::from_bytes::<T>(&bytes).unwrap(), *filter);

    for damaged in ["[]", "[1,2,300]", "\"filter\"", &text.replacen('[', "[7,", 1)] {
        assert!(serde_json::from_str::<T>(damaged).is_err(), "{damaged}");
    }
    for place in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[place] ^= 1;
        assert!(postcard::from_bytes::<T>(&damaged).is_err(), "byte {place}");
        assert!(postcard::from_bytes::<T>(&bytes[..place]).is_err(), "cut at {place}");
    }
    // A length, but not the bytes that it announces.
    assert!(postcard::from_bytes::<T>(&[0xff, 0xff, 0xff, 0xff, 0x0f]).is_err());
}

const KEYS: [&str; 3] = ["ant", "bee", "cat"];

fn filter() -> BloomFilter {
    let mut filter = BloomFilter::with_fpr(10, 0.01).unwrap().with_seed(7).unwrap();
    filter.extend(KEYS);
    filter
}

#[test]
fn every_filter_round_trips() {
    round_trips(&filter());

    let mut counting = CountingBloomFilter::with_fpr(10, 0.01).unwrap().with_seed(7).unwrap();
    counting.extend(KEYS);
    round_trips(&counting);

    let sizing = Sizing::new(4, 6).unwrap().with_modules(2).unwrap();
    let mut modules = BloomFilter::with_sizing(sizing).unwrap().with_seed(7).unwrap();
    modules.extend(KEYS);
    round_trips(&modules);

    let mut scalable = ScalableBloomFilter::with_fpr(1, 0.01).unwrap().with_seed(7).unwrap();
    scalable.extend(KEYS);
    round_trips(&scalable);

    let mut standard = StandardBloomFilter::with_fpr(10, 0.01).unwrap().with_seed(7).unwrap();
    standard.extend(KEYS);
    round_trips(&standard);
}

#[test]
fn an_atomic_filter_is_stored_as_a_plain_filter() {
    let stored = serde_json::to_string(&AtomicBloomFilter::from(filter())).unwrap();
    assert_eq!(stored, serde_json::to_string(&filter()).unwrap());
    let atomic: AtomicBloomFilter = serde_json::from_str(&stored).unwrap();
    assert_eq!(atomic.to_filter().unwrap(), filter());
}

#[test]
fn a_restored_frontier_resumes() {
    for frontier in [Frontier::with_fpr(10, 0.01), Frontier::growing(1, 0.01)] {
        let mut frontier = frontier.unwrap();
        frontier.extend(KEYS.map(str::to_owned));
        assert_eq!(frontier.pop().as_deref(), Some("ant"));
        let bytes = postcard::to_allocvec(&frontier).unwrap();
        let mut restored: Frontier<String> = postcard::from_bytes(&bytes).unwrap();
        assert!(!restored.insert("ant".to_owned()));
        assert!(restored.iter().eq(["bee", "cat"]));
        assert!(postcard::from_bytes::<Frontier<String>>(&bytes[..bytes.len() - 1]).is_err());
    }
}

#[test]
fn errors_report_what_is_wrong() {
    let error = |text| serde_json::from_str::<BloomFilter>(text).unwrap_err().to_string();
    assert!(error("[1]").contains("there are 1,"));
    assert!(error("{}").contains("expected the standalone bytes of a BloomFilter"));
}
