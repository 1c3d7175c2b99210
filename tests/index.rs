//! Indexes over files: the answers are those of each file's filter, also by ranges and in damaged bytes.

#[allow(dead_code, reason = "other tests measure what is kept")]
#[path = "common/allocations.rs"]
mod allocations;

use std::collections::BTreeMap;

use allocations::allocated;
use bloomline::bank::{FileVersion, IndexBuilder, IndexFooter, IndexView, SlotBitmap};
use bloomline::{BloomFilter, ErrorKind, FilterBuilder, Sizing};
use proptest::prelude::*;

type Files = BTreeMap<Vec<u8>, Vec<u64>>;

/// Names that often share much with the name before them, and from no keys to more than a thousand.
fn files() -> impl Strategy<Value = Files> {
    let name = prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..5),
        "logs/2026/host-[0-9]{1,3}/app-[a-c]{0,300}".prop_map(String::into_bytes),
    ];
    let keys = (prop_oneof![Just(0_u64), 1..30_u64, 30..1_500_u64], 0..1_000_000_u64);
    let keys = keys.prop_map(|(n, first)| (first..first + n).collect());
    proptest::collection::btree_map(name, keys, 0..90)
}

fn index_of(files: &Files) -> (Vec<u8>, Vec<BloomFilter>) {
    let mut builder = IndexBuilder::with_fpr(0.001).unwrap().with_rule("lines").unwrap();
    let mut keys = builder.filter_builder();
    let mut filters = Vec::new();
    for (i, (name, of_file)) in files.iter().enumerate() {
        keys.extend(of_file.iter().copied());
        let filter = keys.finish().unwrap();
        builder.insert(name, version(i), filter.clone()).unwrap();
        filters.push(filter);
    }
    (builder.to_standalone().unwrap(), filters)
}

fn version(file: usize) -> FileVersion {
    let mut version = FileVersion::new(file as u64 * 1_000, Some(-(file as i64)).filter(|_| file % 5 != 4));
    version.changed = Some(file as i64 - 40).filter(|_| file % 3 != 2);
    version.inode = Some(u64::MAX - file as u64).filter(|_| file % 4 != 3);
    version
}

fn by_ranges(footer: &IndexFooter, bytes: &[u8], key: u64, found: &mut SlotBitmap) -> bool {
    let hash = footer.hash_key(key);
    let ranges = footer.ranges(hash).map(|range| &bytes[range.start as usize..range.end as usize]);
    footer.find_in_ranges(hash, ranges, found).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn an_index_answers_as_each_filter(files in files(), absent in any::<[u64; 20]>()) {
        let (bytes, filters) = index_of(&files);
        let index = IndexView::from_standalone(&bytes).unwrap();
        let unverified = IndexView::from_standalone_unverified(&bytes).unwrap();
        let footer = index.footer();
        prop_assert_eq!((footer.files(), footer.rule(), footer.fpr()), (files.len(), "lines", 0.001));
        prop_assert!(files.keys().enumerate().all(|(i, name)| footer.name(i) == Some(name)));
        let last = IndexFooter::read_len(&bytes[bytes.len() - 64..]).unwrap() as usize;
        let elsewhere = IndexFooter::read(&bytes[bytes.len() - last..]).unwrap();
        let range = elsewhere.versions_range();
        prop_assert_eq!(range.end as usize, bytes.len() - last);
        let mut stored = bytes[range.start as usize..range.end as usize].to_vec();
        let versions = elsewhere.versions(&stored).unwrap();
        prop_assert!(versions.into_iter().eq((0..files.len()).map(version)));
        if let Some(byte) = stored.first_mut() {
            *byte ^= 1;
            prop_assert_eq!(elsewhere.versions(&stored).unwrap_err().kind(), ErrorKind::Damaged);
            prop_assert!(elsewhere.versions(&stored[1..]).is_err());
        }
        let (mut found, mut in_ranges) = (SlotBitmap::new(), SlotBitmap::new());
        let present = files.values().flat_map(|keys| keys.iter().copied().take(5));
        for key in present.chain(absent) {
            let any = index.find(key, &mut found).unwrap();
            prop_assert_eq!(any, found.count() > 0);
            for (i, filter) in filters.iter().enumerate() {
                prop_assert_eq!(found.contains(i), filter.contains(key), "file {}", i);
            }
            prop_assert_eq!(unverified.find_hash(footer.hash_key(key), &mut in_ranges).unwrap(), any);
            prop_assert_eq!(&in_ranges, &found);
            prop_assert_eq!(by_ranges(&elsewhere, &bytes, key, &mut in_ranges), any);
            prop_assert_eq!(&in_ranges, &found);
        }
        let mut again = IndexBuilder::with_fpr(0.001).unwrap().with_rule("lines").unwrap();
        for (i, filter) in filters.iter().enumerate() {
            let kept = index.to_filter(i).unwrap();
            prop_assert_eq!(kept.as_ref(), Some(filter).filter(|filter| filter.known_keys() != Some(0)));
            prop_assert_eq!(index.known_keys(i), filter.known_keys());
            prop_assert_eq!(index.version(i), Some(version(i)));
            let kept = kept.unwrap_or_else(|| filter.clone());
            again.insert(footer.name(i).unwrap(), version(i), kept).unwrap();
        }
        prop_assert_eq!(again.to_standalone().unwrap(), &bytes[..]);
        let none = filters.len();
        prop_assert_eq!((footer.name(none), index.version(none), index.known_keys(none)), (None, None, None));
    }
}

#[test]
fn filters_of_any_size_are_found() {
    let mut builder = IndexBuilder::with_fpr(0.01).unwrap();
    let k = builder.filter_builder().finish().unwrap().k();
    let mut filters = Vec::new();
    for (i, n_blocks) in [1, 2, 3, 5, 7, 8, 35, 36, 37, 64, 97, 100, 4_096].into_iter().enumerate() {
        let mut filter = BloomFilter::with_sizing(Sizing::new(n_blocks, k).unwrap()).unwrap();
        filter.extend((0..20 * n_blocks as u64).map(|key| key << 8 | i as u64));
        builder.insert(format!("{n_blocks:05}"), FileVersion::default(), filter.clone()).unwrap();
        filters.push(filter);
    }
    let bytes = builder.to_standalone().unwrap();
    let index = IndexView::from_standalone(&bytes).unwrap();
    let mut found = SlotBitmap::new();
    for key in (0..5_000).flat_map(|key| (0..14).map(move |i| key << 8 | i)) {
        index.find(key, &mut found).unwrap();
        assert!(filters.iter().enumerate().all(|(i, filter)| found.contains(i) == filter.contains(key)));
    }
}

#[test]
fn every_changed_byte_is_an_error_or_loses_no_file() {
    let files: Files = (0..9_u8).map(|i| (vec![b'n', i], (0..u64::from(i) * 20).collect())).collect();
    let (bytes, filters) = index_of(&files);
    let mut found = SlotBitmap::new();
    for at in 0..bytes.len() {
        let mut bytes = bytes.clone();
        bytes[at] ^= 1 << (at % 8);
        assert!(IndexView::from_standalone(&bytes).is_err(), "byte {at}");
        let Ok(index) = IndexView::from_standalone_unverified(&bytes) else { continue };
        for key in 0..180_u64 {
            let answer = index.find(key, &mut found);
            let lost = (0..9).any(|i| filters[i].contains(key) && !found.contains(i));
            assert!(!lost, "byte {at}: {answer:?}");
        }
    }
    for len in 0..bytes.len() {
        assert!(IndexView::from_standalone_unverified(&bytes[..len]).is_err());
    }
}

#[test]
fn a_range_of_another_index_is_an_error() {
    let files = |first: u64| (0..70).map(|i| (vec![i], (first..first + 40).collect())).collect::<Files>();
    let [(ours, _), (others, _)] = [0, 1].map(|first| index_of(&files(first)));
    let footer = IndexFooter::read(&ours).unwrap();
    let hash = footer.hash_key(7_u64);
    let mut found = SlotBitmap::new();
    let ranges = footer.ranges(hash).map(|range| &others[range.start as usize..range.end as usize]);
    let error = footer.find_in_ranges(hash, ranges, &mut found).unwrap_err();
    assert_eq!((error.kind(), found.count()), (ErrorKind::Damaged, 70));
    assert!(footer.find_in_ranges(hash, [[]; 0], &mut found).is_err());
    assert_eq!(found.count(), 70, "without a range every file is found");
}

/// Whichever bank is damaged. The files of the others are those that possibly have the key.
#[test]
fn each_damaged_range_is_an_error() {
    let bytes = include_bytes!("golden/index-6-files.bin");
    let footer = IndexFooter::read(bytes).unwrap();
    let hash = footer.hash_key("absent");
    let ranges: Vec<_> = footer.ranges(hash).map(|range| range.start as usize..range.end as usize).collect();
    let mut found = SlotBitmap::new();
    let intact = ranges.iter().map(|range| &bytes[range.clone()]);
    assert_eq!(footer.find_in_ranges(hash, intact, &mut found), Ok(false));
    for (damaged, files) in [&[1][..], &[2, 5], &[0, 3]].into_iter().enumerate() {
        let mut bytes = bytes.to_vec();
        bytes[ranges[damaged].start] ^= 1;
        let ranges = ranges.iter().map(|range| &bytes[range.clone()]);
        assert!(footer.find_in_ranges(hash, ranges, &mut found).is_err());
        assert!(found.iter().eq(files.iter().copied()), "bank {damaged}: {found:?}");
    }
}

#[test]
fn only_the_first_lookup_allocates() {
    let files: Files = (0..200_u8).map(|i| (vec![i], (0..1 << (i % 11)).collect())).collect();
    let (bytes, _) = index_of(&files);
    let verified = IndexView::from_standalone(&bytes).unwrap();
    let unverified = IndexView::from_standalone_unverified(&bytes).unwrap();
    assert!(verified.footer().ranges(0).count() > 1, "several banks");
    let mut found = SlotBitmap::new();
    for first in [true, false] {
        let (of_lookups, ()) = allocated(|| {
            for key in 0..100_u64 {
                assert_eq!(verified.find(key, &mut found), Ok(true));
                assert_eq!(unverified.find(key, &mut found), Ok(true));
                assert!(by_ranges(verified.footer(), &bytes, key, &mut found));
            }
        });
        assert_eq!(of_lookups > 0, first, "{of_lookups} bytes");
    }
}

#[test]
fn unknown_times_and_inodes_are_none() {
    let mut builder = IndexBuilder::with_fpr(0.01).unwrap();
    let mut version = FileVersion::new(1, Some(i64::MIN));
    (version.changed, version.inode) = (Some(i64::MIN), Some(0));
    builder.insert("f", version, builder.filter_builder().finish().unwrap()).unwrap();
    let bytes = builder.to_standalone().unwrap();
    let index = IndexView::from_standalone(&bytes).unwrap();
    assert_eq!(index.version(0), Some(FileVersion::new(1, None)));
}

/// Whatever the sizes of the others, and also in the next version of the index.
#[test]
fn a_file_that_could_not_be_read_is_always_found() {
    for (n_files, keys_of) in [(0, 0), (1, 10), (3, 2_000), (100, 300)] {
        let files: Files =
            (0..n_files).map(|i| (vec![b'n', i], (0..keys_of * u64::from(i)).collect())).collect();
        let mut builder = IndexBuilder::with_fpr(0.001).unwrap();
        let mut keys = builder.filter_builder();
        for (name, of_file) in &files {
            keys.extend(of_file.iter().copied());
            builder.insert(name, FileVersion::default(), keys.finish().unwrap()).unwrap();
        }
        let mut next = builder.clone();
        builder.insert("z", version(4), None).unwrap();
        let bytes = builder.to_standalone().unwrap();
        let index = IndexView::from_standalone(&bytes).unwrap();
        let unverified = IndexView::from_standalone_unverified(&bytes).unwrap();
        let unread = files.len();
        let mut found = SlotBitmap::new();
        for key in 0..2_000_u64 {
            assert!(index.find(key, &mut found) == Ok(true) && found.contains(unread));
            assert!(unverified.find(key, &mut found) == Ok(true) && found.contains(unread));
            assert!(by_ranges(index.footer(), &bytes, key, &mut found) && found.contains(unread));
        }
        assert_eq!((index.known_keys(unread), index.version(unread)), (None, Some(version(4))));
        let filter = index.to_filter(unread).unwrap().unwrap();
        assert_eq!((filter.n_blocks(), filter.fill_ratio(), filter.known_keys()), (1, 1.0, None));
        next.insert("z", version(4), filter).unwrap();
        assert_eq!(next.to_standalone().unwrap(), bytes);
    }
}

/// It has one slot. 9,984 are a multiple of 64, so one more makes each row of its bank longer.
#[test]
fn a_file_that_could_not_be_read_needs_few_bytes() {
    for blocks in [[1, 1], [1, 8], [3, 3], [7, 96]] {
        let mut builder = IndexBuilder::with_fpr(0.0001).unwrap();
        let k = builder.filter_builder().finish().unwrap().k();
        for i in 0..9_984_u32 {
            let mut filter = BloomFilter::with_blocks(blocks[i as usize % 2], k).unwrap();
            filter.insert(i);
            builder.insert(i.to_be_bytes(), FileVersion::default(), filter).unwrap();
        }
        let without = builder.clone().to_standalone().unwrap().len();
        builder.insert("unread", FileVersion::default(), None).unwrap();
        let with = builder.to_standalone().unwrap().len();
        assert!(with - without < without / 100, "{with} instead of {without}");
    }
}

#[test]
fn long_names_share_what_a_byte_can_say() {
    let names = [250, 255, 256, 300, 2_000].map(|n| ["a", "b"].map(|end| "n".repeat(n) + end));
    let files: Files = names.concat().into_iter().map(|name| (name.into_bytes(), vec![])).collect();
    let footer = IndexFooter::read(&index_of(&files).0).unwrap();
    assert!((0..footer.files()).map(|file| footer.name(file)).eq(files.keys().map(|name| Some(&name[..]))));
}

#[test]
fn arguments_out_of_range_are_errors() {
    let mut builder = IndexBuilder::with_fpr(0.01).unwrap();
    let long = "n".repeat(65_536);
    let filter = builder.filter_builder().finish().unwrap();
    assert!(builder.insert(&long[1..], FileVersion::default(), filter.clone()).is_ok());
    assert!(builder.insert(&long, FileVersion::default(), filter.clone()).is_err());
    assert!(builder.clone().with_rule(&long).is_err());
    assert!(builder.insert("seed", FileVersion::default(), filter.with_seed(1).unwrap()).is_err());
    let other_k = BloomFilter::with_blocks(1, 1).unwrap();
    assert!(builder.insert("k", FileVersion::default(), other_k).is_err());
    let modules = BloomFilter::with_fpr(1_000, 1e-6).unwrap();
    assert!(builder.insert("modules", FileVersion::default(), modules).is_err());
    let of_index = IndexBuilder::with_fpr(1e-6).unwrap().filter_builder();
    let [in_modules, ordinary] = [of_index, FilterBuilder::with_fpr(1e-6).unwrap()].map(|keys| {
        let mut keys = keys.with_most_modules(2).unwrap();
        keys.extend(0..10_000_u64);
        keys.finish().unwrap()
    });
    assert!(in_modules == ordinary && in_modules.n_modules() == 2, "no filter of an index");
    assert!(IndexBuilder::with_fpr(0.0).is_err());
}

/// About as large as the filters, in at most eight banks of which a lookup reads little more than a block of each file.
#[test]
fn an_index_is_about_as_large_as_its_filters() {
    let sizes = (0..2_000_u64).map(|i| (i.to_le_bytes().to_vec(), (0..10 + i * i / 500).collect()));
    let files: Files = sizes.collect();
    let (bytes, filters) = index_of(&files);
    let rounded: usize = filters.iter().map(BloomFilter::byte_len).sum();
    assert!(bytes.len() < rounded * 21 / 20, "{} of {rounded}", bytes.len());
    let needed = files.values().map(|keys| Sizing::for_fpr(keys.len() as u64, 0.001).unwrap().byte_len());
    let needed: usize = needed.sum();
    assert!(bytes.len() < needed * 7 / 5, "{} of {needed}", bytes.len());
    let footer = IndexFooter::read(&bytes).unwrap();
    let read: u64 = footer.ranges(footer.hash_key("ant")).map(|range| range.end - range.start).sum();
    assert!(footer.ranges(0).count() <= 8 && read < 3 * 64 * 2_000, "{read}");
}

/// With at most half as many blocks again as the rate needs, but for k, which is that of many keys.
#[test]
fn each_filter_has_the_requested_rate() {
    for fpr in [0.1, 0.01, 0.001, 1e-6] {
        let mut keys = IndexBuilder::with_fpr(fpr).unwrap().filter_builder();
        for n in (1..200).chain([1_000, 10_000, 54_321]) {
            keys.extend(0..n);
            let sizing = keys.finish().unwrap().sizing();
            assert!(sizing.expected_fpr(n) <= fpr, "{n} keys, {fpr}: {sizing:?}");
            let needed = Sizing::for_fpr_within(n, fpr, 1).unwrap();
            assert!(needed.n_blocks() <= sizing.n_blocks(), "{n} keys, {fpr}");
            assert!(2 * sizing.n_blocks() <= 3 * needed.n_blocks(), "{n} keys, {fpr}");
        }
    }
}
