//! Filters by way of serde: what comes back is what went in, and nothing else comes back.
#![cfg(feature = "serde")]

use std::fmt::Debug;

use bloomline::BloomFilter;
use bloomline::family::StandardBloomFilter;
use serde_core::{Serialize, de::DeserializeOwned};

/// By a format of text, that knows no bytes, and a binary one; and damaged in both.
fn comes_back<T: Serialize + DeserializeOwned + PartialEq + Debug>(filter: &T) {
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
    // A length that is not there.
    assert!(postcard::from_bytes::<T>(&[0xff, 0xff, 0xff, 0xff, 0x0f]).is_err());
}

#[test]
fn every_filter_comes_back() {
    let keys = ["ant", "bee", "cat"];
    let mut filter = BloomFilter::with_fpr(10, 0.01).unwrap().with_seed(7);
    filter.extend(keys);
    comes_back(&filter);

    let mut standard = StandardBloomFilter::with_fpr(10, 0.01).unwrap().with_seed(7);
    standard.extend(keys);
    comes_back(&standard);
}

#[test]
fn errors_say_what_is_wrong() {
    let error = |text| serde_json::from_str::<BloomFilter>(text).unwrap_err().to_string();
    assert!(error("[1]").starts_with("a standalone filter has at least 72 bytes, not 1"));
    assert!(error("{}").contains("expected the standalone bytes of a BloomFilter"));
}
