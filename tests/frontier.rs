//! The frontier visits nothing twice, skips no more new items than the requested false-positive rate allows, and
//! resumes a saved crawl.

mod common;

use std::collections::HashSet;
use std::io::{self, Write};

use bloomline::variants::{Frontier, ScalableBloomFilter};
use bloomline::{BloomFilter, Error, Key, mix};
use common::allocations::{allocated, kept};
use common::decode::{every_change_and_truncation_is_detected, forge_footer, forge_frontier};
use common::error_texts::*;
use xxhash_rust::xxh64::xxh64;

const FOOTER_BYTES: usize = 64;

fn with_fpr<T: Key>(expected_items: usize, fpr: f64) -> Frontier<T> {
    Frontier::with_fpr(expected_items as u64, fpr).expect("a small frontier")
}

/// A frontier that accepted three animals, one of them popped.
fn sample() -> Frontier<String> {
    let mut frontier = with_fpr(100, 0.01).with_seed(0x5eed).unwrap();
    frontier.extend(["ant", "bee", "cat", "bee"].map(String::from));
    assert_eq!(frontier.pop().as_deref(), Some("ant"));
    frontier
}

fn restored(bytes: &[u8]) -> Result<Frontier<String>, Error> {
    Frontier::from_standalone(bytes)
}

#[test]
fn the_filter_has_the_requested_size() {
    for (expected_items, fpr) in [(0, 0.5), (1_000, 0.01), (50_000, 0.0001)] {
        let filter = BloomFilter::with_fpr(expected_items, fpr).unwrap();
        let frontier: Frontier<String> = with_fpr(expected_items as usize, fpr);
        assert_eq!((frontier.byte_len(), frontier.estimated_fpr()), (filter.byte_len(), 0.0));
        let filter = ScalableBloomFilter::with_fpr(expected_items, fpr).unwrap();
        let frontier = Frontier::<String>::growing(expected_items, fpr).unwrap();
        assert_eq!((frontier.byte_len(), frontier.estimated_fpr()), (filter.byte_len(), 0.0));
    }
    assert_eq!(Frontier::<String>::growing(10, 1e-9).text(), low_rate("1e-9", "8.0832e-7"));
    assert_eq!(Frontier::<String>::with_fpr(10, 1.0).text(), not_a_rate(1));
}

#[test]
fn a_frontier_reports_that_it_is_over_capacity() {
    let mut frontier: Frontier<String> = with_fpr(1_000, 1e-6);
    for i in 0..1_100 {
        assert_eq!(frontier.is_over_capacity(), i > 1_000, "after {i} items");
        assert!(frontier.insert(i.to_string()));
        frontier.pop();
    }
    assert!(restored(&frontier.to_standalone()).unwrap().is_over_capacity());
    assert!(!sample().is_over_capacity());
    assert_eq!(
        (frontier.capacity(), Frontier::<String>::growing(9, 0.1).unwrap().capacity()),
        (Some(1_000), None)
    );
    let mut frontier = Frontier::growing(10, 0.01).unwrap();
    frontier.extend((0..1_000).map(|i| i.to_string()));
    assert!(frontier.accepted() > 900 && !frontier.is_over_capacity());
}

#[test]
fn frontiers_with_different_seeds_drop_different_items() {
    let skipped = |frontier: Result<Frontier<String>, Error>, seed| {
        let mut frontier = frontier.unwrap().with_seed(seed).unwrap();
        (0..3_000).filter(|i: &u32| !frontier.insert(i.to_string())).collect::<HashSet<_>>()
    };
    for make in [Frontier::with_fpr, Frontier::growing] {
        let (one, other) = (skipped(make(1_000, 0.1), 1), skipped(make(1_000, 0.1), 2));
        assert!(one.len() > 20 && other.len() > 20, "{} and {}", one.len(), other.len());
        let both = one.intersection(&other).count();
        assert!(both < one.len() / 2, "{both} of {} and {}", one.len(), other.len());
    }
}

#[test]
fn a_frontier_returns_its_seed() {
    for make in [Frontier::<String>::with_fpr, Frontier::growing] {
        let frontier = make(10, 0.1).unwrap();
        assert_eq!((frontier.seed(), frontier.with_seed(5).unwrap().seed()), (0, 5));
    }
}

#[test]
fn the_seed_of_a_frontier_with_items_cannot_be_changed() {
    assert_eq!(sample().with_seed(1).text(), too_late(1));
}

/// A URL without spare capacity, so that the memory of a set of them is not overstated.
fn url(i: u64) -> String {
    let site = mix(i % 5_000) % 100_000_000;
    format!("https://www.site-{site}.example/articles/{:016x}/{i}.html", mix(i)).into_boxed_str().into()
}

/// Pushes `distinct` URLs, each followed by a repeat of a pushed URL. Checks that the number of skipped URLs matches
/// the false-positive rate computed from the filter's bits, and that the filter needs less memory than a set.
fn crawl(make: impl FnOnce() -> Result<Frontier<String>, Error>, distinct: u64, fpr: f64) {
    let mut set = HashSet::new();
    let set_bytes = kept(|| (0..distinct).for_each(|i| _ = set.insert(url(i))));
    let mut frontier = None;
    let empty_bytes = kept(|| frontier = make().ok());
    let mut frontier = frontier.expect("a small frontier");
    assert!((frontier.byte_len()..frontier.byte_len() + 512).contains(&empty_bytes), "{empty_bytes} bytes");

    let mut visited = HashSet::new();
    let (mut skipped, mut expected) = (0, 0.0);
    for i in 0..distinct {
        let step = distinct / 500;
        if i % step == step / 2 {
            expected += step as f64 * frontier.estimated_fpr();
        }
        skipped += u64::from(!frontier.insert(url(i)));
        assert!(!frontier.insert(url(mix(i) % (i + 1))), "a repeat was accepted");
        if i % 2 == 0 {
            assert!(frontier.pop().is_none_or(|url| visited.insert(url)), "visited twice");
        }
    }
    while let Some(url) = frontier.pop() {
        assert!(visited.insert(url), "visited twice");
    }
    assert_eq!((visited.len() as u64, frontier.accepted()), (distinct - skipped, distinct - skipped));
    assert!(visited.is_subset(&set));
    println!(
        "{distinct} items at {fpr}: {skipped} skipped, {:.4} of the requested FPR, {expected:.0} expected from the bits; \
         filter {} bytes, set {set_bytes}, 1/{:.0}",
        skipped as f64 / distinct as f64 / fpr,
        frontier.byte_len(),
        set_bytes as f64 / frontier.byte_len() as f64
    );
    let tolerance = 0.02 * expected + 3.5 * expected.sqrt();
    assert!((skipped as f64 - expected).abs() <= tolerance, "{skipped} skipped, {expected} expected");
    assert!(skipped as f64 <= 1.1 * fpr * distinct as f64);
    assert!(frontier.estimated_fpr() <= 1.05 * fpr);
    assert!(20 * frontier.byte_len() <= set_bytes);
}

fn crawls(distinct: usize) {
    crawl(|| Frontier::with_fpr(distinct as u64, 0.01), distinct as u64, 0.01);
    crawl(|| Frontier::with_fpr(distinct as u64, 0.001), distinct as u64, 0.001);
    crawl(|| Frontier::growing((distinct / 10) as u64, 0.01), distinct as u64, 0.01);
}

#[test]
#[cfg_attr(miri, ignore = "hours under miri")]
fn a_crawl_skips_no_more_than_the_requested_fpr() {
    crawls(20_000);
}

#[test]
#[ignore = "2 million pushes, three times: seconds in release"]
fn a_crawl_of_a_million_urls_skips_no_more_than_the_requested_fpr() {
    crawls(1_000_000);
}

#[test]
fn a_frontier_writes_the_golden_bytes() {
    assert!(sample().to_standalone() == include_bytes!("golden/frontier.bin"));
}

#[test]
#[cfg_attr(miri, ignore = "hours under miri")]
fn damage_is_detected() {
    every_change_and_truncation_is_detected(&sample().to_standalone(), Frontier::<String>::from_standalone);
}

#[test]
fn each_check_reports_what_is_wrong() {
    let standalone = sample().to_standalone();
    let open = |bytes: &[u8]| restored(bytes);
    let forge = |offset, bytes: &[u8]| open(&forge_footer(&standalone, offset, bytes));
    // This capacity marks a frontier that grows, whose filter has a different format.
    assert_eq!(forge(24, &[0xff; 8]).text(), of_kind("blocked filter"));

    let found_bytes = standalone.len() - FOOTER_BYTES;
    // Two items of three letters and their lengths.
    let queue_bytes: u64 = 2 * (8 + 3);
    for stored in [0, 1, 3, 1 << 40, u64::MAX / 2] {
        let forged = [stored.to_le_bytes(), queue_bytes.to_le_bytes(), (u64::MAX / 2).to_le_bytes()].concat();
        let (bytes, error) = allocated(|| forge(0, &forged));
        assert_eq!(error.text(), wrong_size(stored, "queued items", found_bytes));
        assert!(bytes <= standalone.len() + 256, "{bytes} bytes");
    }
    for stored in [0, 21, 23, found_bytes as u64 + 1, u64::MAX] {
        let error = forge(8, &stored.to_le_bytes());
        let unit = if stored > found_bytes as u64 { "bytes of queue" } else { "queued items" };
        let stored = if stored > found_bytes as u64 { stored } else { 2 };
        assert_eq!(error.text(), wrong_size(stored, unit, found_bytes));
    }
    for length in [4, 1 << 40, u64::MAX] {
        let mut queue = standalone[..queue_bytes as usize].to_vec();
        queue[..8].copy_from_slice(&u64::to_le_bytes(length));
        let (bytes, error) = allocated(|| open(&forge_frontier(&queue, 2)));
        let error = error.text();
        assert!(error.starts_with("the footer's size of 2 queued items does not match"), "{error}");
        assert!(bytes < 2_000, "{bytes} bytes");
    }
}

/// Each item of the queue is looked up in each filter, which must not take the product of two large numbers.
#[test]
fn more_filters_than_a_frontier_makes_are_refused() {
    let empty = Frontier::<String>::growing(1, 0.1).unwrap().to_standalone();
    let of = |n_filters| {
        let mut filter = ScalableBloomFilter::with_fpr(1, 0.1).unwrap();
        for key in 0..n_filters {
            let mut other = ScalableBloomFilter::with_fpr(1, 0.1).unwrap();
            other.insert(key);
            filter.union_with(&other).unwrap();
        }
        assert_eq!(filter.filters().len() as u64, n_filters);
        let bytes = [filter.to_standalone(), empty[empty.len() - FOOTER_BYTES..].to_vec()].concat();
        let checksum = xxh64(&bytes[..bytes.len() - FOOTER_BYTES], 0);
        restored(&forge_footer(&bytes, 32, &checksum.to_le_bytes())).map(drop)
    };
    assert_eq!(of(64), Ok(()));
    assert_eq!(of(65).text(), impossible("number of filters", 65_u64));
}

/// An item type whose decoded bytes differ from the stored ones.
struct Lowercase(Vec<u8>);

impl Key for Lowercase {
    fn key_bytes(&self) -> impl AsRef<[u8]> {
        &self.0
    }
}

impl From<Vec<u8>> for Lowercase {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes.to_ascii_lowercase())
    }
}

#[test]
fn restored_items_that_differ_from_those_saved_are_refused() {
    let mut frontier: Frontier<&[u8]> = with_fpr(1_000, 1e-6);
    frontier.extend([&b"ant"[..], b"\xff", b""]);
    let bytes = frontier.to_standalone();
    assert_eq!(restored(&bytes).text(), wrong_item(1));
    let copy = Frontier::<Box<[u8]>>::from_standalone(&bytes).unwrap();
    assert!(copy.iter().map(|item| &**item).eq(frontier.iter().copied()));

    // The filter need not contain the decoded bytes, so accepting the item would let it be visited twice.
    let mut frontier = with_fpr(1, 0.9);
    frontier.extend(["ant", "Bee"]);
    let error = Frontier::<Lowercase>::from_standalone(&frontier.to_standalone());
    assert_eq!(error.text(), wrong_item(1));
}

/// Counts the bytes written and discards them.
struct Sink(usize);

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_saved_frontier_is_restored() {
    let mut frontier = sample();
    for round in 0..3 {
        frontier.insert(round.to_string());
        let mut file = Vec::new();
        frontier.write_standalone(&mut file).unwrap();
        assert!(file == frontier.to_standalone());
        let copy = Frontier::<String>::from_standalone(&file).unwrap();
        assert!(copy.iter().eq(frontier.iter()) && copy.to_standalone() == frontier.to_standalone());
    }
}

/// The queue and the filter may fill most of the memory, so a copy may not fit.
#[test]
fn saving_copies_nothing() {
    for frontier in [Frontier::with_fpr(1_000, 0.01), Frontier::growing(100, 0.01)] {
        let mut frontier = frontier.unwrap();
        frontier.extend((0..1_000).map(|i| format!("{i:01000}")));
        let mut sink = Sink(0);
        let (bytes, saved) = allocated(|| frontier.write_standalone(&mut sink));
        saved.unwrap();
        assert!(sink.0 > 1_000_000);
        assert_eq!(bytes, 0);
    }
}
