//! A key is the same key whatever holds it, by one rule for every type and language, and `Debug` of whatever holds keys
//! stays short.
#![allow(clippy::needless_borrows_for_generic_args, reason = "borrowed is what is tested")]

use std::borrow::Cow;
use std::fmt::Debug;
use std::rc::Rc;
use std::sync::Arc;

use bloomline::sizing::standard::StandardSizing;
use bloomline::sstable::FilterPolicy;
use bloomline::variants::{CountingBloomFilter, Frontier, ScalableBloomFilter, StandardBloomFilter};
use bloomline::{
    AlignedBytes, AtomicBloomFilter, BloomFilter, BloomView, FilterBuilder, Key, OwnedView, Sizing, hash_key,
};

fn bytes_of(key: impl Key) -> Vec<u8> {
    key.key_bytes().as_ref().to_vec()
}

/// The rule of `docs/format.md`, "Keys of other types".
#[test]
fn an_integer_is_its_value_in_eight_bytes() {
    fn check<T: Key + Copy + TryFrom<i128>>(range: std::ops::RangeInclusive<i128>) {
        let (least, most) = (*range.start(), *range.end());
        for value in [least, least + 1, -1, 0, 1, 42, 127, most - 1, most] {
            let Ok(integer) = T::try_from(value) else { continue };
            let expected = (value.rem_euclid(1 << 64) as u64).to_le_bytes();
            assert_eq!(bytes_of(integer), expected, "{value}");
            assert_eq!(bytes_of(&integer), expected, "{value}, by reference");
        }
    }
    check::<u8>(0..=u8::MAX.into());
    check::<u16>(0..=u16::MAX.into());
    check::<u32>(0..=u32::MAX.into());
    check::<u64>(0..=u64::MAX.into());
    check::<usize>(0..=usize::MAX as i128);
    check::<i8>(i8::MIN.into()..=i8::MAX.into());
    check::<i16>(i16::MIN.into()..=i16::MAX.into());
    check::<i32>(i32::MIN.into()..=i32::MAX.into());
    check::<i64>(i64::MIN.into()..=i64::MAX.into());
    check::<isize>(isize::MIN as i128..=isize::MAX as i128);
}

#[test]
fn text_and_bytes_are_themselves_in_whatever_holds_them() {
    let text = "größe";
    let bytes = text.as_bytes();
    let array: [u8; 7] = bytes.try_into().unwrap();
    let all = [
        bytes_of(text),
        bytes_of(text.to_owned()),
        bytes_of(&text.to_owned()),
        bytes_of(&mut text.to_owned()),
        bytes_of(Box::<str>::from(text)),
        bytes_of(Rc::<str>::from(text)),
        bytes_of(Arc::<str>::from(text)),
        bytes_of(Cow::Borrowed(text)),
        bytes_of(Cow::<str>::Owned(text.to_owned())),
        bytes_of(bytes),
        bytes_of(array),
        bytes_of(&array),
        bytes_of(bytes.to_vec()),
        bytes_of(&&bytes.to_vec()),
        bytes_of(Box::<[u8]>::from(bytes)),
        bytes_of(Rc::new(bytes.to_vec())),
        bytes_of(Arc::<[u8]>::from(bytes)),
        bytes_of(Cow::Borrowed(bytes)),
    ];
    assert!(all.iter().all(|other| other == bytes), "{all:?}");
    assert!(bytes_of("").is_empty() && bytes_of([0_u8; 0]).is_empty());
    assert_eq!(bytes_of(Box::new(7_u16)), bytes_of(Rc::new(7_i64)));
}

/// One file is for integers and text of every type. `cli`, `python` and `datafusion` read its keys from `keys.tsv`.
#[test]
fn every_filter_finds_a_key_of_another_type() {
    let mut filter = BloomFilter::with_fpr(1_000, 1e-6).unwrap().with_seed(9).unwrap();
    assert!(filter.insert(42_u64) && filter.insert(-1_i32) && filter.insert("ant"));
    filter.extend([7_i16, 8]);
    let keys = [
        hash_key(42_i8, 9),
        hash_key(&42_usize, 9),
        hash_key(u64::MAX, 9),
        hash_key(b"ant", 9),
        hash_key(7_u64, 9),
        hash_key(8_u64.to_le_bytes(), 9),
    ];
    let present = |contains: &dyn Fn(u64) -> bool| {
        assert!(keys.iter().all(|&hash| contains(hash)) && !contains(hash_key("42", 9)));
    };
    let bytes = filter.to_standalone();
    let view = BloomView::from_standalone(&bytes).unwrap();
    let owned = OwnedView::from_standalone(&bytes).unwrap();
    let atomic = AtomicBloomFilter::from(BloomFilter::from_standalone(&bytes).unwrap());
    present(&|hash| filter.contains_hash(hash));
    present(&|hash| view.contains_hash(hash));
    present(&|hash| owned.as_view().contains_hash(hash));
    present(&|hash| atomic.contains_hash(hash));
    let answers = [filter.contains(42), view.contains(42), owned.as_view().contains(42), atomic.contains(42)];
    assert_eq!(answers, [true; 4]);
}

/// A hash under a wrong seed loses keys, so each type hashes under its own seed.
#[test]
fn every_type_hashes_under_its_own_seed() {
    let hash = hash_key(42, 9);
    let filter = BloomFilter::with_blocks(3, 6).unwrap().with_seed(9).unwrap();
    assert_eq!((filter.hash_key(42), filter.as_view().hash_key(42)), (hash, hash));
    assert_eq!(AtomicBloomFilter::from(filter.clone()).hash_key(42), hash);
    let owned = OwnedView::from_compact_with_seed(filter.to_compact(), 9).unwrap();
    assert_eq!(owned.as_view().hash_key(42), hash);
    let builder = FilterBuilder::with_fpr(0.01).unwrap().with_seed(9).unwrap();
    assert_eq!(builder.hash_key(42), hash);
    let (mut standard, mut counting, mut scalable) = (
        StandardBloomFilter::with_sizing(StandardSizing::new(100, 6).unwrap()).unwrap().with_seed(9).unwrap(),
        CountingBloomFilter::with_sizing(Sizing::new(3, 6).unwrap()).unwrap().with_seed(9).unwrap(),
        ScalableBloomFilter::with_fpr(10, 0.01).unwrap().with_seed(9).unwrap(),
    );
    assert_eq!([standard.hash_key(42), counting.hash_key(42), scalable.hash_key(42)], [hash; 3]);
    assert!(standard.insert(42) && standard.contains_hash(hash) && standard.contains(42_u8));
    assert!(counting.insert(42) && counting.count(42_u8) == 1 && counting.remove(42_i64));
    assert!(scalable.insert(42) && scalable.contains_hash(hash) && scalable.contains(42_u8));
    assert!(hash_key(42, 0) != hash);
}

#[test]
fn integers_are_keys_of_policies_and_frontiers() {
    let (policy, mut filter) = (FilterPolicy::with_fpr(1e-6).unwrap(), Vec::new());
    policy.create_filter([1_u32, 2, 3], &mut filter);
    assert!(policy.key_may_match(3_i64, &filter) && !policy.key_may_match(4, &filter));
    let mut frontier = Frontier::with_fpr(100, 1e-6).unwrap();
    assert!(frontier.insert(7_u32) && !frontier.insert(7) && frontier.contains(7_u64));
    assert_eq!(frontier.pop(), Some(7));
}

fn assert_short(what: &dyn Debug) {
    let debug = format!("{what:?}");
    assert!(debug.len() < 150, "{} characters: {debug:.300}", debug.len());
}

/// A builder of a million keys once printed 21 MB of hashes into a log.
#[test]
#[cfg_attr(miri, ignore = "hours under miri")]
fn debug_output_is_short_however_many_keys_there_are() {
    let keys = 0..1_000_000_u32;
    let mut builder = FilterBuilder::with_bits_per_key(10.0).unwrap();
    builder.extend(keys.clone());
    assert_eq!(format!("{builder:?}"), "FilterBuilder { len: 1000000, bits_per_key: 10.0, seed: 0, .. }");
    let filter = builder.finish().unwrap();
    let compact = filter.to_compact();
    assert_short(&filter);
    assert_short(&filter.as_view());
    assert_short(&AlignedBytes::copy_of(&compact).unwrap());
    assert_short(&OwnedView::from_compact(&compact).unwrap());
    assert_short(&AtomicBloomFilter::from(filter));

    assert_short(&FilterPolicy::with_bits_per_key(10.0).unwrap());

    let mut scalable = ScalableBloomFilter::with_fpr(1, 0.01).unwrap();
    let mut standard = StandardBloomFilter::with_fpr(1_000_000, 0.01).unwrap();
    let mut counting = CountingBloomFilter::with_fpr(1_000_000, 0.01).unwrap();
    let mut frontier = Frontier::with_fpr(1_000_000, 0.01).unwrap();
    for key in keys {
        scalable.insert(key);
        standard.insert(key);
        counting.insert(key);
        frontier.insert(key);
    }
    assert_short(&scalable);
    assert_short(&standard);
    assert_short(&counting);
    assert_short(&frontier);
}
