//! Damaged, truncated, forged and foreign bytes give an error or "possibly present", but never "definitely absent", a
//! panic or a large allocation.

mod common;

use std::io::{self, BufWriter, Write};
use std::string::FromUtf8Error;

use bloomline::bank::{FileVersion, FilterBank, IndexBuilder, IndexFooter, IndexView, SlotBitmap};
use bloomline::sstable::FilterPolicy;
use bloomline::variants::{CountingBloomFilter, Frontier, ScalableBloomFilter, StandardBloomFilter};
use bloomline::{
    AtomicBloomFilter, BloomFilter, BloomView, ErrorKind, FilterBuilder, Key, OwnedView, StandaloneFooter,
    StandaloneKind, mix,
};
use common::allocations::{allocated, kept};
use common::decode::{
    decoders_survive, every_change_and_truncation_is_detected, forge_footer as forge, forge_index,
    forge_loads, index_decoder_survives, sign_index,
};
use common::error_texts::*;
use common::{counting_programs, standard_programs};
use proptest::prelude::*;

fn sample() -> BloomFilter {
    sample_of(1)
}

/// A filter of this many modules.
fn sample_of(n_modules: usize) -> BloomFilter {
    let mut filter = common::of_modules(n_modules, 3, 6).with_seed(99).unwrap();
    filter.extend(["ant", "bee", "cat"]);
    filter
}

proptest! {
    #![proptest_config(ProptestConfig { cases: common::cases(2_000), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_bytes_are_an_error_or_a_filter(
        bytes in prop::collection::vec(any::<u8>(), 0..200), key in prop::collection::vec(any::<u8>(), 0..20),
    ) {
        decoders_survive(&bytes, &key);
    }

    #[test]
    fn bytes_of_the_right_length_are_an_error_or_a_filter(
        lanes in prop_oneof![1..=64_usize, (1..20_usize).prop_map(|n| 8 * n)],
        n_modules in prop::option::of(0..20_u8), byte in any::<u8>(), trailer in 0..=0x3f_u8, seed in any::<u64>(),
    ) {
        let mut bytes: Vec<u8> = (0..8 * lanes as u64).map(|i| mix(seed ^ i) as u8 & byte).collect();
        bytes.extend(n_modules);
        bytes.push(trailer);
        decoders_survive(&bytes, b"key");
    }

    #[test]
    fn forged_footers_are_an_error_or_a_filter(
        offset in 0..48_usize, bytes in prop::collection::vec(any::<u8>(), 1..9), filter in 0..4_usize, cut in 0..400_usize,
    ) {
        let short = || FilterBuilder::with_bits_per_key(10.0).unwrap().finish().unwrap();
        let standalone = if filter == 0 { short() } else { sample_of(filter) }.to_standalone();
        let bytes = &bytes[..bytes.len().min(48 - offset)];
        decoders_survive(&forge(&standalone, offset, bytes), b"key");
        decoders_survive(&forge(&standalone[cut.min(standalone.len() - 64)..], offset, bytes), b"key");
    }

    #[test]
    fn forged_indexes_are_an_error_or_an_index(
        changes in prop::collection::vec((0..500_usize, any::<u8>()), 0..4), footer in prop::option::of((0..48_usize, any::<u8>())),
    ) {
        let changed = |changes: &[(usize, u8)]| {
            let mut bytes = vec![0; changes.iter().map(|(at, _)| at + 1).max().unwrap_or(0)];
            changes.iter().for_each(|&(at, change)| bytes[at] = change);
            bytes
        };
        index_decoder_survives(&forge_index(&changed(&changes), &changed(footer.as_slice())));
    }
}

/// The end of an index of banks with these numbers of blocks and slots, and files with these banks and numbers of
/// blocks.
fn end_of_index(banks: &[[u64; 2]], files: &[(u8, u32)]) -> Vec<u8> {
    let (bank, index) =
        (include_bytes!("golden/bank-3-slots.bin"), include_bytes!("golden/index-0-files.bin"));
    let mut listed: Vec<u8> = banks
        .iter()
        .flat_map(|sizes| forge(&bank[bank.len() - 64..], 0, sizes.map(u64::to_le_bytes).as_flattened()))
        .collect();
    for &(bank, n_blocks) in files {
        listed.extend([0, bank, 2, 0]);
        listed.extend(n_blocks.to_le_bytes());
    }
    listed.extend((0..files.len() as u16).flat_map(u16::to_be_bytes));
    let len = listed.len();
    listed.extend(&index[index.len() - 64..]);
    let footer = listed.last_chunk_mut::<64>().unwrap();
    footer[..16].copy_from_slice([files.len() as u64, len as u64].map(u64::to_le_bytes).as_flattened());
    footer[41] = banks.len() as u8;
    sign_index(&mut listed, len);
    listed
}

/// Few bytes can claim many slots and blocks, but a lookup without their ranges costs neither memory nor time for these.
#[test]
fn the_end_of_an_index_can_claim_no_large_memory() {
    let most = u32::MAX;
    let slots = 1 << 24;
    for (banks, files) in [
        (vec![[1, slots]], vec![(0, slots as u32)]),
        (vec![[1, slots]; 255], (0..255).map(|bank| (bank, slots as u32)).collect()),
        (vec![[most.into(), 1]], vec![(0, most)]),
        (vec![[u64::from(most) << 16, 1], [1 << 50, 0]], vec![(0, most), (9, 0)]),
        (vec![[1, 4_000]], vec![(0, 1); 4_000]),
        (vec![], vec![(0, 0); 9_000]),
        (vec![], vec![]),
    ] {
        if cfg!(target_pointer_width = "32") && banks.iter().any(|[n_blocks, _]| *n_blocks > most.into()) {
            continue;
        }
        let end = end_of_index(&banks, &files);
        let footer = IndexFooter::read(&end).unwrap();
        index_decoder_survives(&end);
        let (hash, mut found) = (footer.hash_key("ant"), SlotBitmap::new());
        let (bytes, any) = allocated(|| footer.find_in_ranges(hash, [[]; 0], &mut found));
        assert_eq!((any.is_err(), footer.ranges(hash).count()), (!banks.is_empty(), banks.len()));
        assert_eq!(found.count(), files.iter().filter(|(_, n_blocks)| *n_blocks > 0).count());
        assert!(bytes <= files.len() / 8 + 32, "{bytes}");
        assert!(IndexView::from_standalone_unverified(&end).is_err() || banks.is_empty());
    }
    for (banks, files) in [
        (vec![[1, slots]], vec![(0, most)]),
        (vec![[1, slots]], vec![(0, slots as u32), (0, 1)]),
        (vec![[1, slots + 1]], vec![(0, slots as u32 + 1)]),
        (vec![[1 << 32, 1]], vec![(0, most)]),
        (vec![[1 << 57, 0], [1 << 57, 0]], vec![]),
        (vec![[u64::MAX, 0]], vec![]),
        (vec![[1, 1]], vec![]),
        (vec![], vec![(0, 1)]),
    ] {
        assert_eq!(IndexFooter::read(&end_of_index(&banks, &files)).kind(), Some(ErrorKind::Damaged));
    }
    let old = forge(&end_of_index(&[], &[]), 44, &[0]);
    assert_eq!(IndexFooter::read_len(&old).kind(), Some(ErrorKind::Unsupported));
    // A length that `usize` cannot hold.
    for len in [1 << 32, 1 << 63, u64::MAX] {
        let end = forge(&end_of_index(&[], &[]), 8, &u64::to_le_bytes(len));
        assert_eq!(IndexFooter::read_len(&end), Ok(len.saturating_add(64)));
        let (bytes, refused) = allocated(|| IndexFooter::read(&end));
        assert_eq!((refused.kind(), bytes), (Some(ErrorKind::Unrecognized), 0));
    }
}

#[test]
#[cfg_attr(miri, ignore = "hours under miri")]
fn every_changed_byte_of_an_index_is_detected() {
    every_change_and_truncation_is_detected(&small_index().to_standalone().unwrap(), |bytes| {
        IndexView::from_standalone(bytes).map(drop)
    });
}

fn small_index() -> IndexBuilder {
    let mut index = IndexBuilder::with_fpr(0.01).unwrap().with_rule("lines").unwrap();
    let mut keys = index.filter_builder();
    for (name, words) in
        [("monday.log", &["ant", "bee"][..]), ("tuesday.log", &["cat"]), ("wednesday.log", &[])]
    {
        keys.extend(words);
        index.insert(name, FileVersion::default(), keys.finish().unwrap()).unwrap();
    }
    index
}

#[test]
#[cfg_attr(miri, ignore = "hours under miri")]
fn every_changed_byte_of_a_standalone_filter_is_detected() {
    for (filter, n_modules) in [1, 3].map(|n_modules| (sample_of(n_modules), n_modules)) {
        let (standalone, lanes) = (filter.to_standalone(), filter.byte_len());
        assert_eq!(standalone.len() - lanes, if n_modules == 1 { 64 } else { 64 + 8 * n_modules });
        for (position, change) in
            (0..standalone.len()).flat_map(|at| (1..=255).map(move |change| (at, change)))
        {
            let mut damaged = standalone.clone();
            damaged[position] ^= change;
            let verified = BloomView::from_standalone(&damaged).map(|_| ()).unwrap_err();
            let unverified = BloomView::from_standalone_unverified(&damaged);
            assert_eq!(unverified.is_ok(), position < lanes, "byte {position}, changed by {change:#x}");
            assert_eq!(unverified.and_then(|view| view.verify()), Err(verified));
            assert_eq!(OwnedView::from_standalone(&damaged).map(|_| ()), Err(verified));
            let unverified = OwnedView::from_standalone_unverified(&damaged);
            assert_eq!(unverified.and_then(|view| view.as_view().verify()), Err(verified));
            assert_eq!(BloomFilter::from_standalone(&damaged), Err(verified));
        }
    }
}

#[test]
fn every_truncated_standalone_filter_is_an_error() {
    for filter in [sample(), FilterBuilder::with_bits_per_key(10.0).unwrap().finish().unwrap(), sample_of(2)]
    {
        let standalone = filter.to_standalone();
        for length in 0..standalone.len() {
            assert!(BloomView::from_standalone(&standalone[..length]).is_err(), "the first {length} bytes");
            assert!(
                BloomView::from_standalone(&standalone[standalone.len() - length..]).is_err(),
                "the last {length}"
            );
        }
        let longer = [standalone.clone(), vec![0]].concat();
        assert!(BloomView::from_standalone(&longer).is_err());
        let joined = [standalone.clone(), standalone].concat();
        assert!(BloomView::from_standalone(&joined).is_err());
    }
}

/// `with_seed` is allowed only on an empty filter, so a footer must not make a filter with bits look empty.
#[test]
fn a_forged_count_of_zero_keys_is_ignored() {
    let filter = |keys: &[&str]| {
        let mut builder = FilterBuilder::with_bits_per_key(10.0).unwrap();
        builder.extend(keys);
        builder.finish().unwrap().to_standalone()
    };
    let owned = |bytes: &[u8]| BloomFilter::from_standalone(bytes).unwrap();
    assert_eq!(owned(&filter(&["ant"])).known_keys(), Some(1));
    for bytes in [filter(&["ant"]), sample_of(2).to_standalone()] {
        let forged = owned(&forge(&bytes, 8, &[0; 8]));
        assert_eq!(forged.known_keys(), None);
        assert!(forged.contains("ant"));
    }
    let empty = owned(&filter(&[]));
    assert_eq!((empty.known_keys(), empty.with_seed(5).unwrap().seed()), (Some(0), 5));
}

#[test]
fn compact_bytes_need_a_valid_length_and_version() {
    let open = |bytes: &[u8]| BloomView::from_compact(bytes).map(|view| (view.n_blocks(), view.k()));
    for length in 0..=1100 {
        let mut bytes = vec![0; length];
        if let Some(trailer) = bytes.last_mut() {
            *trailer = 0x25;
        }
        match (length / 8, length % 8) {
            (1..64, 1) => {
                let n_blocks = (length / 8) >> (length / 8).trailing_zeros().min(3);
                assert_eq!(open(&bytes), Ok((n_blocks, 6)));
            }
            (64.., 1) if length % 64 == 1 => assert_eq!(open(&bytes), Ok((length / 64, 6))),
            // The length of several modules.
            (8.., 2) if length % 64 == 2 => {
                assert_eq!(open(&bytes).text(), wrong_trailer(0x25))
            }
            _ => assert_eq!(open(&bytes).text(), wrong_length(length)),
        }
    }
    for trailer in 0..=255_u8 {
        let mut bytes = [0; 9];
        bytes[8] = trailer;
        match trailer {
            0x20..=0x2f => assert_eq!(open(&bytes), Ok((1, u32::from(trailer) - 31))),
            _ => assert_eq!(open(&bytes).text(), wrong_trailer(trailer)),
        }
    }
}

#[test]
fn a_policy_answers_may_match_for_malformed_filters() {
    let policy = FilterPolicy::with_bits_per_key(10.0).unwrap();
    let mut filter = Vec::new();
    policy.create_filter(["ant", "bee"], &mut filter);
    assert!(!policy.key_may_match("elk", &filter));
    for bytes in [&[][..], &[0], &[0x25], &[0; 8], &[0; 9], &[0xff; 9], &[0; 64], &[0; 65], &filter[..8]] {
        assert!(policy.key_may_match("elk", bytes), "{bytes:?}");
    }

    let trailer = filter.last_mut().unwrap();
    *trailer = 0x10 | *trailer & 0xf;
    assert!(policy.key_may_match("elk", &filter), "a filter of a development build, with version 1's hash");
}

#[test]
fn opening_and_lookups_allocate_nothing() {
    [1, 2].map(sample_of).into_iter().for_each(opens_without_memory);
}

fn opens_without_memory(filter: BloomFilter) {
    let standalone = filter.to_standalone();
    let mut compact = Vec::new();
    filter.write_compact(&mut compact).unwrap();
    let policy = FilterPolicy::with_bits_per_key(10.0).unwrap();
    let huge = forge(&standalone, 0, &(1_u64 << 50).to_le_bytes());

    let (bytes, found) = allocated(|| {
        let view = BloomView::from_standalone(&standalone).unwrap();
        let compact = BloomView::from_compact_with_seed(&compact, 99).unwrap();
        view.verify().unwrap();
        assert!(policy.key_may_match("ant", b"no filter"));
        view.contains("ant") && compact.contains("ant") && BloomView::from_standalone(&huge).is_err()
    });
    assert!(found);
    assert_eq!(bytes, 0);
    let view = OwnedView::from_standalone(&standalone).unwrap();
    assert_eq!(allocated(|| view.as_view().contains("ant") && view.as_view().verify().is_ok()), (0, true));

    let (bytes, copy) = allocated(|| BloomFilter::from_standalone(&standalone).unwrap());
    assert!(copy == filter);
    assert!(bytes <= standalone.len(), "{bytes} bytes for a copy of {}", standalone.len());
}

/// The standalone bytes of a scalable filter made of these filters, all full, before the filter of this index is added.
fn scalable(filters: &[Vec<u8>], next: usize) -> Vec<u8> {
    let written = ScalableBloomFilter::with_fpr(1, 0.5).unwrap().to_standalone();
    let (n, tail) = (filters.len(), &written[written.len() - 64 - 8..]);
    let bytes = [&filters.concat()[..], &vec![0; 16 * n], tail].concat();
    let bytes = forge(&bytes, 0, &(n as u64).to_le_bytes());
    forge_loads(&forge(&bytes, 42, &[next as u8]), n, |loads| loads.fill([1, 1]))
}

/// Forged filters cost no memory before they are refused. This holds for many filters, and for short filters, because a
/// copy of these has up to eight times their bytes.
#[test]
fn a_scalable_filter_is_checked_before_memory_is_allocated() {
    let filter = |lanes: usize, k: u8| {
        let bytes = [vec![0x11; 8 * lanes], vec![0x20 | (k - 1)]].concat();
        let mut standalone = Vec::new();
        BloomFilter::from_compact(&bytes).unwrap().write_standalone(&mut standalone).unwrap();
        standalone
    };
    let k = 3;
    let sizes = [filter(1, k).len(), filter(63, k).len(), filter(1 << 11, k).len()];
    assert_eq!(sizes, [8 + 64, 63 * 8 + 64, (1 << 14) + 64]);

    let refused = |filters: &[Vec<u8>]| {
        let bytes = scalable(filters, filters.len());
        let (allocated, refused) = allocated(|| ScalableBloomFilter::from_standalone(&bytes));
        assert_eq!(allocated, 0, "for {} bytes", bytes.len());
        refused.text()
    };
    for lanes in [1, 63, 64] {
        let error = refused(&vec![filter(lanes, k); 200]);
        assert!(error.starts_with("the footer's initial capacity cannot be"), "{error}");
    }
    // The oldest filter is read last.
    let newest = filter(1 << 11, k);
    let mut damaged = filter(64, k);
    damaged[0] ^= 1;
    assert!(refused(&[damaged, newest.clone()]).starts_with(DAMAGED));
    let error = refused(&[filter(64, k + 1), newest.clone()]);
    assert_eq!(error, impossible("k", u64::from(k) + 1));
    assert_eq!(refused(&[vec![1], newest.clone()]), too_short(1, 72));

    // The most memory that short filters can cost.
    for (filters, next) in [(vec![filter(63, k); 9], 10), (vec![filter(63, k); 200], 1)] {
        let n_filters = filters.len();
        let bytes = scalable(&[filters, vec![newest.clone()]].concat(), next);
        let (allocated, accepted) = allocated(|| ScalableBloomFilter::from_standalone(&bytes).unwrap());
        assert_eq!(accepted.byte_len(), n_filters * 63 * 64 + (1 << 14));
        assert!(allocated < bytes.len() + (n_filters + 1) * 4096, "{allocated}");
    }
}

/// An item that needs more memory than most.
struct Large(String, #[expect(dead_code, reason = "only its size matters")] [u8; 256]);

impl Key for Large {
    fn key_bytes(&self) -> impl AsRef<[u8]> {
        &self.0
    }
}

impl TryFrom<Vec<u8>> for Large {
    type Error = FromUtf8Error;

    fn try_from(bytes: Vec<u8>) -> Result<Self, FromUtf8Error> {
        String::from_utf8(bytes).map(|text| Self(text, [0; 256]))
    }
}

/// A queue costs the memory of its items, however large an item is, but none if their number is forged.
#[test]
fn a_decoded_queue_takes_no_more_memory_than_its_items() {
    let mut frontier = Frontier::with_fpr(1_000, 0.001).unwrap();
    frontier.extend((0..1_000).map(|i| format!("{i:04}")));
    assert_eq!(frontier.len(), 1_000);
    let bytes = frontier.to_standalone();
    let (bytes_allocated, copy) = allocated(|| Frontier::<Large>::from_standalone(&bytes).unwrap());
    assert!(bytes_allocated <= 1_000 * (size_of::<Large>() + 4) + copy.byte_len() + 64, "{bytes_allocated}");
    for forged in [0, 999, 1_001, 1 << 60] {
        let bytes = forge(&bytes, 0, &u64::to_le_bytes(forged));
        let (bytes_allocated, refused) = allocated(|| Frontier::<Large>::from_standalone(&bytes));
        assert_eq!((refused.kind(), bytes_allocated), (Some(ErrorKind::Damaged), 0));
    }
}

#[test]
fn writing_allocates_only_its_output() {
    [1, 2].map(sample_of).into_iter().for_each(writes_without_a_copy);
}

fn writes_without_a_copy(filter: BloomFilter) {
    let (bytes, standalone) = allocated(|| filter.to_standalone());
    assert_eq!(bytes, standalone.len());
    let mut file = standalone.clone();
    let (bytes, ()) = allocated(|| filter.write_standalone(&mut file[..]).unwrap());
    assert_eq!(bytes, 0);
    assert_eq!(file[..], standalone[..]);
    let (bytes, compact) = allocated(|| filter.to_compact());
    assert_eq!(bytes, compact.len());
    let mut table = Vec::with_capacity(compact.len());
    let (bytes, ()) = allocated(|| filter.write_compact(&mut table).unwrap());
    assert_eq!((bytes, table), (0, compact));
}

type Writes<'a> = &'a dyn Fn(&mut dyn Write) -> io::Result<()>;

/// A `BufWriter` reports the bytes that do not fit on its disk only when it is flushed, and never when it is dropped.
#[test]
fn a_writer_that_is_too_small_is_an_error() {
    let [filter, modules] = [1, 2].map(sample_of);
    let atomic = AtomicBloomFilter::from(filter.clone());
    let standard = StandardBloomFilter::with_fpr(100, 0.01).unwrap();
    let counting = CountingBloomFilter::with_fpr(100, 0.01).unwrap();
    let growing = ScalableBloomFilter::with_fpr(100, 0.01).unwrap();
    let frontier = Frontier::<String>::with_fpr(100, 0.01).unwrap();
    let bank = FilterBank::from_filters([&filter]).unwrap();
    let index = small_index();
    let writers: [Writes<'_>; 11] = [
        &|out| filter.write_standalone(out),
        &|out| filter.write_compact(out),
        &|out| modules.write_standalone(out),
        &|out| modules.write_compact(out),
        &|out| atomic.write_standalone(out),
        &|out| standard.write_standalone(out),
        &|out| counting.write_standalone(out),
        &|out| growing.write_standalone(out),
        &|out| frontier.write_standalone(out),
        &|out| bank.write_standalone(out),
        &|out| index.clone().write_standalone(out),
    ];
    for (number, write) in writers.into_iter().enumerate() {
        let mut disk = Vec::new();
        write(&mut disk).unwrap();
        for room in 0..disk.len() {
            let error = write(&mut &mut disk[..room]).map_err(|error| error.kind());
            assert_eq!(error, Err(io::ErrorKind::WriteZero), "{number}: {room} bytes");
            let mut buffered = BufWriter::with_capacity(1 << 14, &mut disk[..room]);
            let error = write(&mut buffered).map_err(|error| error.kind());
            assert_eq!(error, Err(io::ErrorKind::WriteZero), "{number}: {room} bytes, buffered");
        }
    }
}

#[test]
fn filters_free_their_memory() {
    let bytes = kept(|| {
        for filter in [1, 2].map(sample_of) {
            drop(filter.clone());
            BloomFilter::from_standalone(&filter.to_standalone()).unwrap().fold(3).unwrap();
        }
    });
    assert_eq!(bytes, 0);
}

#[test]
fn a_footer_describes_each_kind_of_filter_without_opening_it() {
    let [blocked, modules] = [1, 2].map(|n_modules| sample_of(n_modules).to_standalone());
    let standard = standard_programs::with_bits(1_000, 7).unwrap().with_seed(5).unwrap().to_standalone();
    let counting = counting_programs::with_blocks(3, 6).unwrap().to_standalone();
    for (bytes, kind, size, n_modules, k) in [
        (&blocked, StandaloneKind::Blocked, 8 * 3, 1, 6),
        (&modules, StandaloneKind::Blocked, 8 * 6, 2, 6),
        (&standard, StandaloneKind::Standard, 1_000, 1, 7),
        (&counting, StandaloneKind::Counting, 3, 1, 6),
    ] {
        assert_eq!(StandaloneKind::of(bytes), Some(kind));
        let footer = StandaloneFooter::read(bytes).unwrap();
        assert_eq!(
            (footer.kind, footer.size, footer.n_modules, footer.k, footer.version, footer.hash_id),
            (kind, size, n_modules, k, 2, 2)
        );
        assert_eq!(footer.standalone_len(), Some(bytes.len()));
        // The last bytes suffice.
        assert_eq!(StandaloneFooter::read(&bytes[bytes.len() - StandaloneFooter::LEN..]), Ok(footer));
        let mut damaged = bytes.clone();
        damaged[bytes.len() - 30] ^= 1;
        assert!(StandaloneFooter::read(&damaged).text().starts_with(FOOTER_DAMAGED));
    }
    // Lengths beyond the address space do not wrap around.
    for bytes in [&blocked, &modules, &counting] {
        let forged = StandaloneFooter::read(&forge(bytes, 0, &[0xff; 8])).unwrap();
        assert_eq!((forged.size, forged.standalone_len()), (u64::MAX, None));
    }
    let footer = StandaloneFooter::read(&standard).unwrap();
    assert_eq!((footer.seed, footer.known_keys), (5, Some(0)));

    let scalable = ScalableBloomFilter::with_fpr(9, 0.1).unwrap().to_standalone();
    let frontier = Frontier::<String>::with_fpr(9, 0.1).unwrap().to_standalone();
    let bank = FilterBank::from_filters([&sample()]).unwrap().to_standalone();
    for (bytes, kind) in [
        (scalable, StandaloneKind::Scalable),
        (frontier, StandaloneKind::Frontier),
        (bank, StandaloneKind::Bank),
        (small_index().to_standalone().unwrap(), StandaloneKind::Index),
    ] {
        assert_eq!(StandaloneKind::of(&bytes), Some(kind));
        assert_eq!(StandaloneFooter::read(&bytes).text(), of_kind(kind));
    }
    assert_eq!(StandaloneKind::of(b"bloom\r\n"), None);
}

#[test]
fn an_owned_filter_is_verified_before_it_is_made() {
    let standalone = sample().to_standalone();
    assert!(BloomFilter::from_standalone(&standalone).unwrap() == sample());
    let mut damaged = standalone.clone();
    damaged[0] ^= 1;
    let (bytes, copy) = allocated(|| BloomFilter::from_standalone(&damaged));
    assert!(copy.text().starts_with(DAMAGED));
    assert_eq!(bytes, 0);

    let mut compact = Vec::new();
    sample().write_compact(&mut compact).unwrap();
    let copy = BloomView::from_compact_with_seed(&compact, sample().seed()).unwrap().to_filter().unwrap();
    assert!(copy == sample());
    assert_eq!(BloomFilter::from_compact(&compact).unwrap().seed(), 0);
    assert_eq!(BloomFilter::from_compact(&compact[1..]).text(), wrong_length(compact.len() - 1));
}
