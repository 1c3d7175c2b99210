//! Filter blocks match LevelDB's, partitions hold the requested number of keys, and neither loses a key, even if
//! damaged.

mod common;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;

use bloomline::mix;
use bloomline::sstable::{
    Ended, FilterBlockBuilder, FilterBlockReader, FilterPolicy, PartitionIndex, PartitionIndexBuilder,
    PartitionedFilterBuilder,
};
use bloomline::{BloomView, BuildError, DecodeError};
use common::errors::error;
use proptest::prelude::*;

fn policy() -> FilterPolicy {
    FilterPolicy::with_bits_per_key(10.0).unwrap()
}

/// The filter of these keys.
fn filter(keys: &[&str]) -> Vec<u8> {
    let mut filter = Vec::new();
    policy().create_filter(keys, &mut filter);
    filter
}

/// The filter block for these data blocks, given by their offsets and keys.
fn block(data_blocks: &[(u64, &[&str])]) -> Vec<u8> {
    let mut builder = FilterBlockBuilder::new(&policy());
    for (offset, keys) in data_blocks {
        builder.start_block(*offset);
        keys.iter().for_each(|key| builder.insert(key));
    }
    builder.finish().unwrap()
}

/// A filter block with these filters, for ranges of 2^`base_log2` bytes, as LevelDB's `doc/table_format.md` has it.
fn block_of(filters: &[Vec<u8>], base_log2: u8) -> Vec<u8> {
    let ends = filters.iter().scan(0, |end, filter| {
        *end += filter.len() as u32;
        Some(*end)
    });
    let offsets: Vec<[u8; 4]> = std::iter::once(0).chain(ends).map(u32::to_le_bytes).collect();
    [&filters.concat(), offsets.as_flattened(), &[base_log2]].concat()
}

#[test]
fn a_policy_is_shared_and_a_reader_copied() {
    let shared: Arc<FilterPolicy> = Arc::new(policy());
    let builder = FilterBlockBuilder::new(&shared);
    std::thread::spawn(move || (shared, builder)).join().unwrap();
    let bytes = block(&[(0, &["ant", "bee"])]);
    let reader = FilterBlockReader::new(&bytes).unwrap();
    let copy = reader;
    assert!(reader.key_may_match(0, "ant") && copy.key_may_match(0, "bee") && !copy.key_may_match(0, "cat"));
}

#[test]
fn filter_blocks_have_the_bytes_of_leveldb() {
    // The block of an empty table, as in LevelDB's own test of filter blocks.
    assert_eq!(block(&[]), b"\x00\x00\x00\x00\x0b");
    // The data blocks at 100, 200 and 300 share a filter.
    let shared = block(&[(100, &["foo", "bar", "box"]), (200, &["box"]), (300, &["hello"])]);
    assert_eq!(shared, block_of(&[filter(&["foo", "bar", "box", "hello"])], 11));
    // No data block starts in the third, fourth, sixth, seventh and eighth 2 KiB. The last two filters have one key
    // each.
    let spread = block(&[(0, &["a"]), (2_000, &["b"]), (3_100, &["c"]), (9_000, &["d"]), (16_384, &["e"])]);
    let filters = [&["a", "b"][..], &["c"], &[], &[], &["d"], &[], &[], &[], &["e"]];
    let filters = filters.map(|keys| if keys.is_empty() { Vec::new() } else { filter(keys) });
    assert_eq!(spread, block_of(&filters, 11));
}

#[test]
fn each_lookup_uses_the_filter_of_its_data_block() {
    let block = block(&[(0, &["a"]), (2_000, &["b"]), (3_100, &["c"]), (9_000, &["d"]), (16_384, &["e"])]);
    let reader = FilterBlockReader::new(&block).unwrap();
    assert_eq!(reader.n_filters(), 9);
    let of = |offset| ["a", "b", "c", "d", "e"].map(|key| reader.try_key_may_match(offset, key).unwrap());
    assert_eq!(of(0), [true, true, false, false, false]);
    assert_eq!(of(2_000), of(0), "one filter for all data blocks that start in its 2 KiB");
    assert_eq!(of(3_100), [false, false, true, false, false]);
    assert_eq!(of(9_000), [false, false, false, true, false]);
    assert_eq!(of(16_384), [false, false, false, false, true]);
    assert_eq!(reader.filter_of(9_000), Ok(&filter(&["d"])[..]));

    // Only damage leads to a lookup where no data block starts.
    let no_keys = error!(DecodeError::NoFilter { range: 2, n_filters: 9 });
    assert_eq!(reader.try_key_may_match(4_096, "a"), no_keys);
    let no_filter = error!(DecodeError::NoFilter { range: 9, n_filters: 9 });
    assert_eq!(reader.try_key_may_match(18_432, "a"), no_filter);
    assert!(reader.key_may_match(4_096, "a") && reader.key_may_match(u64::MAX, "a"));
}

/// LevelDB writes 2 KiB, but a filter block stores its own value.
#[test]
fn ranges_have_the_size_stored_in_the_block() {
    for base_log2 in [0, 5, 12, 63] {
        let last = 96 >> base_log2;
        let mut filters = vec![Vec::new(); last + 1];
        filters[0] = filter(&["a"]);
        filters[last] = if last == 0 { filter(&["a", "b"]) } else { filter(&["b"]) };
        let block = block_of(&filters, base_log2);
        let reader = FilterBlockReader::new(&block).unwrap();
        assert_eq!(reader.n_filters(), 1 + (96 >> base_log2));
        assert!(reader.try_key_may_match(0, "a").unwrap() && reader.try_key_may_match(96, "b").unwrap());
        assert_eq!(reader.try_key_may_match(96, "a").unwrap(), base_log2 >= 7);
    }
}

#[test]
#[should_panic(expected = "data block 2047 is out of order: filter 0 exists")]
fn data_blocks_out_of_order_are_refused() {
    let mut builder = FilterBlockBuilder::new(&policy());
    builder.start_block(4_096);
    builder.start_block(2_047);
}

#[test]
fn damage_is_reported_and_hides_no_key() {
    // Two filters of 9 bytes, then the offsets 0, 9, 9 and 18 from byte 18 on.
    let good = block(&[(0, &["a"]), (4_096, &["c"])]);
    assert_eq!(good, block_of(&[filter(&["a"]), Vec::new(), filter(&["c"])], 11));
    let with = |at: usize, byte: u8| {
        let mut damaged = good.clone();
        damaged[at] = byte;
        damaged
    };
    let error = |block: &[u8]| match FilterBlockReader::new(block) {
        Err(error) => error,
        Ok(reader) => {
            assert!(reader.key_may_match(4_096, "c") && reader.key_may_match(4_096, "gnu"));
            reader.try_key_may_match(4_096, "c").unwrap_err()
        }
    };
    for length in 0..5 {
        assert_eq!(error(&good[..length]), error!(DecodeError::TooShort { found: length, least: 5 }));
    }
    assert_eq!(error(&with(34, 64)), error!(DecodeError::Footer { field: "log2 of a range", found: 64 }));
    assert_eq!(error(&with(34, 10)), error!(DecodeError::NoFilter { range: 4, n_filters: 3 }));
    assert_eq!(
        error(&with(30, 31)),
        error!(DecodeError::Size { stored: 31, unit: "bytes of filters", found_bytes: 30 })
    );
    assert_eq!(error(&with(30, 30)), error!(DecodeError::NoFilter { range: 2, n_filters: 0 }));
    let not_whole = error!(DecodeError::Size { stored: 19, unit: "bytes of filters", found_bytes: 30 });
    assert_eq!(error(&with(30, 19)), not_whole, "not a whole number of offsets");
    assert_eq!(
        error(&with(33, 1)),
        error!(DecodeError::Size { stored: 0x0100_0012, unit: "bytes of filters", found_bytes: 30 })
    );
    assert_eq!(error(&with(26, 18)), error!(DecodeError::NoFilter { range: 2, n_filters: 3 }));
    assert_eq!(error(&with(26, 19)), error!(DecodeError::Slice { start: 19, end: 18, found: 18 }));
    // The first of the filter's nine bytes belongs to the filter before it.
    assert_eq!(error(&with(26, 10)), error!(DecodeError::Length { found: 8 }));
    assert_eq!(
        error(&with(30, 30)).to_string(),
        "filter 2 of 0 is empty or does not exist: the filter block is damaged or of another table, so rewrite the table"
    );
    assert_eq!(
        error(&with(26, 19)).to_string(),
        "bytes 19 to 18 of 18 do not exist: the range is damaged, or of another file"
    );
}

#[test]
fn a_policy_reports_filters_that_it_cannot_use() {
    let (policy, mut filter) = (policy(), Vec::new());
    policy.create_filter(["ant"], &mut filter);
    assert_eq!(policy.try_key_may_match("ant", &filter), Ok(true));
    assert_eq!(policy.try_key_may_match("bee", &filter), Ok(false));
    assert_eq!(policy.try_key_may_match("bee", &filter[1..]), error!(DecodeError::Length { found: 8 }));
    assert!(policy.key_may_match("bee", &filter[1..]));
}

/// Sorted keys of several lengths, with repeats, some of them prefixes of others.
fn keys(n: u64) -> Vec<Vec<u8>> {
    let mut keys: Vec<Vec<u8>> =
        (0..n).map(|i| mix(i % 97).to_be_bytes()[..(i % 9) as usize].to_vec()).collect();
    keys.sort();
    keys
}

/// First keys and filters.
fn partitions(keys: &[Vec<u8>], keys_per_partition: usize) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut builder = PartitionedFilterBuilder::new(&policy(), keys_per_partition).unwrap();
    let (mut partitions, mut filter) = (Vec::new(), Vec::new());
    for key in keys {
        if let Ended::Partition(first_key) = builder.insert(key, &mut filter).unwrap() {
            partitions.push((first_key.to_vec(), std::mem::take(&mut filter)));
        }
    }
    if let Ended::Partition(first_key) = builder.finish(&mut filter).unwrap() {
        partitions.push((first_key.to_vec(), filter));
    }
    partitions
}

/// Writes the partitions to a table, after some data, and returns the table and the index.
fn write(partitions: &[(Vec<u8>, Vec<u8>)]) -> (Vec<u8>, Vec<u8>) {
    let (mut table, mut index) = (b"data".to_vec(), PartitionIndexBuilder::new());
    for (first_key, filter) in partitions {
        index.add(first_key, table.len() as u64, filter.len() as u64).unwrap();
        table.extend_from_slice(filter);
    }
    (table, index.finish())
}

#[test]
fn partitions_hold_the_requested_number_of_distinct_keys() {
    let list = ["a", "b", "b", "b", "c", "c", "d", "e"].map(|key| key.as_bytes().to_vec());
    let cut = |keys_per_partition| partitions(&list, keys_per_partition);
    let of = |partitions: &[&[&str]]| -> Vec<_> {
        partitions.iter().map(|keys| (keys[0].as_bytes().to_vec(), filter(keys))).collect()
    };
    assert_eq!(cut(2), of(&[&["a", "b"], &["c", "d"], &["e"]]));
    assert_eq!(cut(1), of(&[&["a"], &["b"], &["c"], &["d"], &["e"]]));
    assert_eq!(cut(5), of(&[&["a", "b", "c", "d", "e"]]));
    assert_eq!(partitions(&[], 3), []);
}

#[test]
fn partitions_are_appended_to_one_buffer_and_the_builder_is_used_again() {
    let mut builder = PartitionedFilterBuilder::new(&policy(), 2).unwrap();
    for _ in 0..2 {
        let (mut buffer, mut first_keys) = (b"data".to_vec(), Vec::new());
        let mut ended = |ended: Ended<'_>| {
            if let Ended::Partition(first_key) = ended {
                first_keys.push(first_key.to_vec());
            }
        };
        for key in ["a", "b", "c", "c", "d", "e"] {
            ended(builder.insert(key, &mut buffer).unwrap());
        }
        ended(builder.finish(&mut buffer).unwrap());
        let expected = [b"data".to_vec(), filter(&["a", "b"]), filter(&["c", "d"]), filter(&["e"])].concat();
        assert_eq!((buffer, first_keys), (expected, [b"a", b"c", b"e"].map(Vec::from).into()));
        assert_eq!(builder.finish(&mut Vec::new()), Ok(Ended::Nothing));
    }
}

#[test]
fn a_policy_streams_the_keys_of_a_table() {
    let (policy, [mut streamed, mut created]) = (policy(), [const { Vec::new() }; 2]);
    let mut builder = policy.builder();
    for keys in [["ant", "bee", "bee"], ["cat", "dog", "elk"]] {
        keys.iter().for_each(|key| builder.insert(key));
        builder.finish_compact(&mut streamed).unwrap();
        policy.create_filter(keys, &mut created);
        assert_eq!(streamed, created);
    }
}

/// At low rates, a filter that is large enough for whole blocks has two modules.
#[test]
#[cfg_attr(miri, ignore = "hours under miri")]
fn filters_of_low_rates_keep_them_and_save_bits() {
    for (fpr, saves) in [(0.0004, 0.07), (0.0001, 0.09), (1e-6, 0.19)] {
        let policy = FilterPolicy::with_fpr(fpr).unwrap();
        let in_one = policy.clone().with_most_modules(1).unwrap();
        let of_bits = FilterPolicy::with_bits_per_key(in_one.bits_per_key()).unwrap();
        assert!(policy.bits_per_key() <= (1.0 - saves) * in_one.bits_per_key(), "{fpr}");
        for n_keys in [0, 1, 2, 30, 100, 300, 3_000, 100_000] {
            let filters = [&policy, &in_one, &of_bits].map(|policy| {
                let mut filter = vec![0xff];
                policy.create_filter(0..n_keys, &mut filter);
                assert!((0..n_keys).all(|key| policy.key_may_match(key, &filter[1..])), "{n_keys} keys");
                filter.split_off(1)
            });
            let [n_modules, one, _] = filters.each_ref().map(|filter| modules_of(filter));
            let is_rounded = n_keys < if fpr > 2e-4 { 100_000 } else { 3_000 };
            assert!(one == 1 && (is_rounded || n_modules == 2), "{n_keys} keys");
            let lens = filters.each_ref().map(Vec::len);
            assert!(lens[0] <= lens[1] + 1 && lens[2] <= lens[1] + lens[1] / 100 + 1, "{n_keys}: {lens:?}");
            if n_keys == 100_000 {
                assert!((lens[0] as f64) < (1.001 - saves) * lens[1] as f64, "{lens:?}");
                let absent = n_keys..n_keys + (400.0 / fpr).min(4e6) as i32;
                let expected = fpr * absent.len() as f64;
                let found = absent.filter(|key| policy.key_may_match(key, &filters[0])).count() as f64;
                assert!((found - expected).abs() < 4.0 * expected.sqrt() + 0.02 * expected, "{fpr}: {found}");
            }
        }
    }
}

fn modules_of(filter: &[u8]) -> usize {
    BloomView::from_compact(filter).unwrap().n_modules()
}

/// One module needs 17.454 bits per key for 0.0497%.
#[test]
fn a_second_module_begins_at_a_twentieth_of_a_percent() {
    let [bits, rate] = [FilterPolicy::with_bits_per_key, FilterPolicy::with_fpr];
    let within =
        |policy: Result<FilterPolicy, _>, most| policy.and_then(|policy| policy.with_most_modules(most));
    for (policy, n_modules) in [
        (bits(17.454), 1),
        (bits(17.455), 2),
        (rate(0.000_497), 1),
        (rate(0.000_48), 2),
        (within(rate(0.000_48), 1), 1),
        (within(rate(0.000_001), 4), 4),
        (within(rate(0.001), 2), 2),
        (within(bits(20.0), 1), 1),
        (within(bits(14.0), 2), 2),
    ] {
        let mut filter = Vec::new();
        let policy = policy.unwrap();
        policy.create_filter(0..50_000, &mut filter);
        assert_eq!(modules_of(&filter), n_modules, "{policy:?}: {} bytes", filter.len());
    }
}

#[test]
fn damaged_modules_are_an_error_and_possibly_present() {
    let (policy, mut filter) = (FilterPolicy::with_fpr(0.0001).unwrap(), Vec::new());
    policy.create_filter(0..3_000, &mut filter);
    let [.., n_modules, trailer] = filter[..] else { panic!("no filter") };
    assert_eq!((n_modules, trailer >> 4), (2, 3));
    let with_end = |end: [u8; 2]| [&filter[..filter.len() - 2], &end].concat();
    for (bytes, error) in [
        (with_end([2, trailer ^ 0x10]), error!(DecodeError::Trailer { found: trailer ^ 0x10 })),
        (with_end([1, trailer]), error!(DecodeError::Footer { field: "number of modules", found: 1 })),
        (with_end([17, trailer]), error!(DecodeError::Footer { field: "number of modules", found: 17 })),
        (with_end([2, trailer])[64..].to_vec(), error!(DecodeError::Length { found: filter.len() - 64 })),
        (filter[..filter.len() - 1].to_vec(), error!(DecodeError::Trailer { found: 2 })),
        (filter[1..].to_vec(), error!(DecodeError::Trailer { found: trailer })),
        (vec![2, trailer], error!(DecodeError::Length { found: 2 })),
    ] {
        assert_eq!(policy.try_key_may_match(7, &bytes), error);
        assert!(policy.key_may_match("absent", &bytes));
    }
}

/// An index may own its bytes, beside the table that they are a part of.
#[test]
fn an_index_of_any_bytes_finds_the_same_places() {
    fn places<B: AsRef<[u8]>>(bytes: B) -> Vec<Option<std::ops::Range<u64>>> {
        let index = PartitionIndex::new(bytes).unwrap();
        assert_eq!(format!("{index:?}"), format!("PartitionIndex {{ len: {}, .. }}", index.len()));
        (0..500).map(|i| index.partition_of(mix(i).to_be_bytes())).collect()
    }
    struct Table {
        bytes: Arc<[u8]>,
        index: PartitionIndex<Arc<[u8]>>,
    }
    let (_, bytes) = write(&partitions(&keys(200), 10));
    let expected = places(&bytes[..]);
    assert_eq!(places(&bytes), expected);
    assert_eq!(places(bytes.clone().into_boxed_slice()), expected);
    let bytes: Arc<[u8]> = bytes.into();
    let table = Table { index: PartitionIndex::new(Arc::clone(&bytes)).unwrap(), bytes };
    let table = std::thread::spawn(|| table).join().unwrap();
    let copy = table.index.clone();
    drop(table.index);
    assert_eq!(Arc::strong_count(&table.bytes), 2);
    assert_eq!(places(&table.bytes), expected);
    assert!((0..500).all(|i| copy.partition_of(mix(i).to_be_bytes()) == expected[i as usize]));
    let borrowed = PartitionIndex::new(&table.bytes[..]).unwrap();
    let copied = borrowed;
    assert_eq!(borrowed.partition_of("x"), copied.partition_of("x"));
}

/// Bytes that are different each time, because `AsRef` promises nothing.
struct Fickle {
    versions: Vec<Vec<u8>>,
    reads: Cell<usize>,
}

impl AsRef<[u8]> for Fickle {
    fn as_ref(&self) -> &[u8] {
        let reads = self.reads.replace(self.reads.get() + 1);
        &self.versions[reads % self.versions.len()]
    }
}

#[test]
fn an_index_whose_bytes_change_does_not_panic() {
    let (_, good) = write(&partitions(&keys(200), 10));
    let mut versions = vec![good.clone()];
    versions.extend((0..good.len()).map(|length| good[..length].to_vec()));
    versions.extend((0..good.len()).map(|at| {
        let mut changed = good.clone();
        changed[at] ^= 0xff;
        changed
    }));
    versions.extend([vec![0xff; good.len()], vec![0; good.len()]]);
    let n_versions = versions.len();
    let index = PartitionIndex::new(Fickle { versions, reads: Cell::new(0) }).unwrap();
    for i in 0..3 * n_versions as u64 {
        _ = index.partition_of(mix(i).to_be_bytes());
        assert_eq!(index.len(), 18);
    }
}

#[test]
fn every_key_is_found_in_its_partition() {
    let (keys, policy) = (keys(1_000), policy());
    for keys_per_partition in [1, 2, 7, 64, 1_000] {
        let (table, index) = write(&partitions(&keys, keys_per_partition));
        let index = PartitionIndex::new(&index).unwrap();
        for key in &keys {
            let place = index.partition_of(key).unwrap();
            let filter = &table[place.start as usize..place.end as usize];
            assert_eq!(policy.try_key_may_match(key, filter), Ok(true));
        }
        // Absent keys below, between and above the present ones.
        for absent in 1_000..1_500 {
            let place = index.partition_of(mix(absent).to_be_bytes()).unwrap();
            BloomView::from_compact(&table[place.start as usize..place.end as usize]).unwrap();
        }
    }
}

/// A prefix, inserted once before its first key, is a key like any other.
#[test]
fn every_prefix_is_found_in_its_partition() {
    let (keys, policy) = (keys(1_000), policy());
    for length in 1..=4 {
        let prefixes = || keys.iter().filter_map(|key| key.get(..length));
        let mut inserted: Vec<Vec<u8>> = prefixes().map(<[u8]>::to_vec).chain(keys.clone()).collect();
        inserted.sort();
        for keys_per_partition in [1, 2, 7, 64] {
            let (table, index) = write(&partitions(&inserted, keys_per_partition));
            let index = PartitionIndex::new(&index).unwrap();
            for key in prefixes().chain(keys.iter().map(|key| &**key)) {
                let place = index.partition_of(key).unwrap();
                let filter = &table[place.start as usize..place.end as usize];
                assert_eq!(policy.try_key_may_match(key, filter), Ok(true));
            }
        }
    }
}

#[test]
fn the_bytes_of_an_index_never_change() {
    let mut index = PartitionIndexBuilder::new();
    index.add("ant", 100, 9).unwrap();
    index.add("cat", 200, 17).unwrap();
    let bytes = index.finish();
    let (body, checksum) = bytes.split_last_chunk::<8>().unwrap();
    let words = [3, 100, 109, 6, 200, 217, 2, 1_u64].map(u64::to_le_bytes);
    assert_eq!(body, [b"antcat", words.as_flattened()].concat());
    assert_eq!(u64::from_le_bytes(*checksum), xxhash_rust::xxh64::xxh64(body, 0));

    let index = PartitionIndex::new(&bytes).unwrap();
    assert_eq!((index.len(), index.is_empty()), (2, false));
    for (key, place) in
        [("", 100..109), ("ant", 100..109), ("bee", 100..109), ("cat", 200..217), ("d", 200..217)]
    {
        assert_eq!(index.partition_of(key), Some(place), "{key}");
    }

    let empty = PartitionIndexBuilder::new().finish();
    let index = PartitionIndex::new(&empty).unwrap();
    assert!(index.is_empty() && index.partition_of("ant").is_none());
}

#[test]
fn a_damaged_index_is_an_error() {
    let (_, good) = write(&partitions(&keys(200), 10));
    PartitionIndex::new(&good).unwrap();
    for at in 0..good.len() {
        let mut damaged = good.clone();
        damaged[at] ^= 0x20;
        PartitionIndex::new(&damaged).unwrap_err();
        PartitionIndex::new(&good[..at]).unwrap_err();
        PartitionIndex::new(&good[at + 1..]).unwrap_err();
    }
    // Under a correct checksum, keys out of order, repeated keys, and impossible offsets are errors.
    let mut index = PartitionIndexBuilder::new();
    index.add("a", 100, 9).unwrap();
    index.add("b", 109, 9).unwrap();
    let good = index.finish();
    PartitionIndex::new(&good).unwrap();
    let entry = good.len() - 24 - 24;
    let changes: [(usize, &[u8]); 8] = [
        (0, b"ba"),
        (0, b"aa"),
        (entry, &[0; 8]),
        (entry, &[1, 0, 0, 0, 0, 0, 0, 0]),
        (entry, &[3, 0, 0, 0, 0, 0, 0, 0]),
        (entry, &[255; 8]),
        (entry + 8, &[119, 0, 0, 0, 0, 0, 0, 0]),
        (entry + 16, &[108, 0, 0, 0, 0, 0, 0, 0]),
    ];
    let forged = |good: &[u8], at: usize, change: &[u8]| {
        let mut bytes = good.to_vec();
        bytes[at..at + change.len()].copy_from_slice(change);
        let body = bytes.len() - 8;
        let checksum = xxhash_rust::xxh64::xxh64(&bytes[..body], 0).to_le_bytes();
        bytes[body..].copy_from_slice(&checksum);
        PartitionIndex::new(&bytes).map(|_| ()).unwrap_err()
    };
    for (at, change) in changes {
        let error = forged(&good, at, change);
        assert_eq!(
            error,
            error!(DecodeError::Footer { field: "number of entries", found: 2 }),
            "{change:?} at {at}"
        );
    }
    // A byte that belongs to no key.
    let mut index = PartitionIndexBuilder::new();
    index.add("a", 100, 9).unwrap();
    index.add("bc", 109, 9).unwrap();
    let good = index.finish();
    assert_eq!(
        forged(&good, 3 + 24, &[2]),
        error!(DecodeError::Footer { field: "number of entries", found: 2 })
    );
}

#[test]
fn partitions_out_of_order_are_an_error_and_change_nothing() {
    let mut index = PartitionIndexBuilder::new();
    index.add("", 0, 9).unwrap();
    index.add("bc", 9, 9).unwrap();
    for (key, at) in [("", 0), ("a", 0), ("b", 1), ("ba", 1), ("bc", 2)] {
        assert_eq!(index.add(key, 18, 9), error!(BuildError::KeyOrder { at }), "{key}");
    }
    let (offset, bytes) = (u64::MAX - 8, 9);
    assert_eq!(index.add("c", offset, bytes), error!(BuildError::FilterEnd { offset, bytes }));
    index.add("c", offset, 8).unwrap();

    let mut same = PartitionIndexBuilder::new();
    for (key, offset, bytes) in [("", 0, 9), ("bc", 9, 9), ("c", u64::MAX - 8, 8)] {
        same.add(key, offset, bytes).unwrap();
    }
    assert_eq!(index.finish(), same.finish());
}

/// With a different order of the keys, such as a comparator's, lookups would probe the wrong partition.
#[test]
fn keys_out_of_order_are_an_error_and_lose_no_other_key() {
    let mut builder = PartitionedFilterBuilder::new(&policy(), 2).unwrap();
    let (mut buffer, mut first_keys) = (Vec::new(), Vec::new());
    let mut ended = |ended: Ended<'_>| {
        if let Ended::Partition(first_key) = ended {
            first_keys.push(first_key.to_vec());
        }
    };
    // Before a key, its partition is empty, has room or is full.
    for (key, wrong) in [
        ("bat", &[][..]),
        ("bee", &[("", 0), ("Bat", 0), ("ba", 2), ("baT", 2)]),
        ("cat", &[("bat", 1), ("be", 2)]),
        ("dog", &[("bat", 0), ("caT", 2)]),
        ("elk", &[("doG", 2)]),
    ] {
        for &(wrong, at) in wrong {
            assert_eq!(builder.insert(wrong, &mut buffer), error!(BuildError::KeyOrder { at }), "{wrong}");
        }
        ended(builder.insert(key, &mut buffer).unwrap());
    }
    ended(builder.finish(&mut buffer).unwrap());
    let expected = [filter(&["bat", "bee"]), filter(&["cat", "dog"]), filter(&["elk"])].concat();
    assert_eq!((buffer, first_keys), (expected, [b"bat", b"cat", b"elk"].map(Vec::from).into()));
}

#[test]
fn a_partition_needs_a_key() {
    let error = PartitionedFilterBuilder::new(&policy(), 0).map(|_| ());
    assert_eq!(error, error!(BuildError::KeysPerPartition { value: 0 }));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: common::cases(500), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_data_block_loses_a_key(
        data_blocks in prop::collection::vec((0..6_000_u64, prop::collection::vec(any::<u16>(), 0..40)), 0..40),
            ) {
        let mut builder = FilterBlockBuilder::new(&policy());
        let (mut offset, mut expected) = (0, BTreeMap::new());
        for (bytes, keys) in data_blocks {
            builder.start_block(offset);
            for key in &keys {
                builder.insert(key.to_be_bytes());
            }
            expected.insert(offset, keys);
            offset += bytes + 1;
        }
        let block = builder.finish().unwrap();
        let reader = FilterBlockReader::new(&block).unwrap();
        for (offset, keys) in expected {
            for key in keys {
                prop_assert_eq!(reader.try_key_may_match(offset, key.to_be_bytes()), Ok(true));
            }
        }
    }

    #[test]
    fn damaged_blocks_are_read_without_harm(
        at in any::<prop::sample::Index>(), change in 1..=255_u8, cut in 0..30_usize, key in prop::collection::vec(any::<u8>(), 0..4),
    ) {
        let mut block = block(&[(0, &["a", "b"]), (3_000, &["c"]), (9_000, &["d", "e", "f"])]);
        let at = at.index(block.len());
        block[at] ^= change;
        common::decode::filter_block_survives(&block, &key);
        block.truncate(block.len() - cut);
        common::decode::filter_block_survives(&block, &key);
    }
}

#[test]
fn finished_builders_are_empty_and_can_be_used_again() {
    let (mut blocks, mut index) = (FilterBlockBuilder::new(&policy()), PartitionIndexBuilder::new());
    let mut made = [(); 2].map(|()| {
        for data_block in [0, 4_096] {
            blocks.start_block(data_block);
            blocks.insert("ant");
        }
        index.add("ant", 3, 9).unwrap();
        (blocks.finish().unwrap(), index.finish())
    });
    assert_eq!(made[0], made[1]);
    made[0] = (blocks.finish().unwrap(), index.finish());
    assert_eq!(
        made[0],
        (FilterBlockBuilder::new(&policy()).finish().unwrap(), PartitionIndexBuilder::new().finish())
    );
}
