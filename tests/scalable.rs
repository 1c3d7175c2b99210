//! The scalable filter: no key is lost as it grows, the rate stays below the one asked for, and its bytes are those of
//! the format.

use bloomline::family::ScalableBloomFilter;
use bloomline::mix;

#[test]
fn no_key_is_lost_and_the_rate_holds() {
    let mut filter = ScalableBloomFilter::with_fpr(1_000, 0.01).unwrap();
    let mut added = 0;
    for hash in (0..100_000).map(mix) {
        let was_in = filter.contains_hash(hash);
        assert_eq!(filter.insert_hash(hash), !was_in);
        added += u64::from(!was_in);
        assert_eq!(filter.inserted_keys(), added);
    }
    assert_eq!(filter.filters().len(), 7);
    let copy = ScalableBloomFilter::from_standalone(&filter.to_standalone()).unwrap();
    assert!(copy == filter && (0..100_000).all(|i| copy.contains_hash(mix(i))));
    let positives = (1 << 40..(1 << 40) + 100_000).filter(|&i| copy.contains_hash(mix(i))).count();
    assert!((300..=1_000).contains(&positives), "{positives}");
}
