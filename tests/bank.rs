//! A bank answers as its filters do, in memory and from the bytes of the format, whole or in part.

mod common;

use bloomline::bank::{BankFooter, BankView, FilterBank, SlotBitmap};
use bloomline::{BloomFilter, BloomView, FilterBuilder, Kernel, Sizing, StandaloneFooter, hash_key, mix};
use common::bank_programs::{Input, check, decoder_survives};
use common::decode::forge_footer as forge;
use common::error_texts::{DAMAGED, Refusal, impossible, of_kind, wrong_range, wrong_size};
use common::kernel_comparison::reference_kernel;
use proptest::prelude::*;
use xxhash_rust::xxh64::xxh64;

proptest! {
    #![proptest_config(ProptestConfig { cases: common::cases(100), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_bank_answers_as_its_filters(
        bank in prop::collection::vec(any::<u8>(), 11),
        operations in prop::collection::vec(prop::collection::vec(any::<u8>(), 28), 0..10),
    ) {
        check(Input::of(&bank, &operations));
    }

    #[test]
    fn one_line_answers_for_a_filter(
        keys in 0..300_u64, bits_per_key in 2.0..20.0, seed: u64, hashes in prop::collection::vec(any::<u64>(), 20),
    ) {
        let builder = FilterBuilder::with_bits_per_key(bits_per_key).unwrap().with_most_modules(1).unwrap();
        let mut builder = builder.with_seed(seed).unwrap();
        builder.extend(0..keys);
        // Compact bytes, since only they make filters of 9 to 63 lanes.
        let mut compact = Vec::new();
        builder.finish_compact(&mut compact).unwrap();
        let filter = BloomView::from_compact_with_seed(&compact, seed).unwrap().to_filter().unwrap();
        let bytes = filter.to_standalone();
        let footer = StandaloneFooter::read(&bytes).unwrap();
        for hash in (0..keys).map(|key| filter.hash_key(key)).chain(hashes) {
            let range = footer.range(hash).unwrap();
            prop_assert!(range.end <= bytes.len() as u64 - 64 && (range.end - range.start) <= 504);
            let line = &bytes[range.start as usize..range.end as usize];
            prop_assert_eq!(footer.contains_in_range(line, hash).unwrap(), filter.contains_hash(hash));
            let expected = line.len();
            for wrong in [&line[..expected - 1], &line[..0], &[line, &[0; 8]].concat()] {
                let text = footer.contains_in_range(wrong, hash).text();
                prop_assert_eq!(text, wrong_range(expected, wrong.len()));
            }
        }
    }
}

fn filter_of(n_blocks: usize, k: u32, keys: impl IntoIterator<Item = u64>) -> BloomFilter {
    let mut filter = BloomFilter::with_blocks(n_blocks, k).unwrap();
    filter.extend(keys);
    filter
}

/// A filter whose number of keys is known.
fn built_of(keys: std::ops::Range<u64>) -> BloomFilter {
    let mut builder = FilterBuilder::with_bits_per_key(10.0).unwrap();
    builder.extend(keys);
    builder.finish().unwrap()
}

/// Tests each arm of `kernel::find`, with none, one and two whole lines before it, and every k, on each kernel.
#[test]
#[cfg_attr(miri, ignore = "hours under miri")]
fn every_row_length_answers() {
    let widths = [1, 8, 9, 16, 17, 32, 33].into_iter().chain((1..=24).map(|words| 64 * words - 3));
    for (i, slots) in widths.enumerate() {
        let (n_blocks, k) = (i % 3 + 1, i as u32 % 16 + 1);
        let filters: Vec<_> =
            (0..slots as u64).map(|slot| filter_of(n_blocks, k, 10 * slot..11 * slot + 1)).collect();
        let mut bank = FilterBank::from_filters(&filters).unwrap();
        let bytes = bank.to_standalone();
        let view = BankView::from_standalone(&bytes).unwrap();
        bank.try_reserve(i * 20).unwrap();
        let mut found = SlotBitmap::new();
        for hash in (0..16).map(|i| hash_key(mix(i) % (11 * slots as u64), 0)) {
            let expected: Vec<usize> = (0..slots).filter(|&slot| filters[slot].contains_hash(hash)).collect();
            for kernel in Kernel::available() {
                bank = bank.with_kernel(kernel);
                bank.as_view().find_hash(hash, &mut found);
                assert!(found.iter().eq(expected.iter().copied()), "{slots} slots, {kernel}, capacity");
                view.with_kernel(kernel).find_hash(hash, &mut found);
                assert!(found.iter().eq(expected.iter().copied()), "{slots} slots, {kernel}");
            }
        }
    }
}

/// `reserve` and a failed `with_seed` or `push` keep everything that is not the rows.
#[test]
fn reserve_keeps_seed_kernel_and_known_keys() {
    let sizing = Sizing::new(2, 6).unwrap();
    let kernel = reference_kernel();
    let bank = FilterBank::with_capacity(sizing, 3).unwrap().with_kernel(kernel).with_seed(7);
    let mut bank = bank.unwrap();
    let mut filter = BloomFilter::with_blocks(2, 6).unwrap().with_seed(7).unwrap();
    filter.insert(1);
    bank.push_all([&BloomFilter::with_blocks(2, 6).unwrap().with_seed(7).unwrap(), &filter]).unwrap();
    bank.try_reserve(6).unwrap();
    let view = bank.as_view();
    assert_eq!((bank.capacity(), view.slots(), view.seed(), view.kernel()), (8, 2, 7, kernel));
    bank.try_reserve(7).unwrap();
    let view = bank.as_view();
    assert_eq!((bank.capacity(), view.slots(), view.seed(), view.kernel()), (16, 2, 7, kernel));
    assert_eq!(
        (view.to_filter(0).unwrap().known_keys(), view.to_filter(1).unwrap().known_keys()),
        (Some(0), None)
    );
    assert!(view.to_filter(1).unwrap() == filter);
}

/// The smallest filter decides, wherever it stands.
#[test]
fn from_filters_folds_to_the_smallest() {
    let filters = [6, 2, 4].map(|n_blocks| filter_of(n_blocks, 6, 0..9));
    let bank = FilterBank::from_filters(&filters).unwrap();
    assert_eq!(bank.as_view().sizing().n_blocks(), 2);
    assert!((0..3).all(|slot| bank.as_view().to_filter(slot).unwrap() == filters[1]));
}

/// A stored number of 0 keys is not believed if a bit is set.
#[test]
fn zero_known_keys_with_bits_are_unknown() {
    let mut bytes = FilterBank::from_filters([&filter_of(1, 6, 0..9)]).unwrap().to_standalone();
    let keys = bytes.len() - 64 - 8;
    bytes[keys..][..8].fill(0);
    let view = BankView::from_standalone_unverified(&bytes).unwrap();
    assert_eq!(view.to_filter(0).unwrap().known_keys(), None);
}

#[test]
fn every_changed_byte_is_detected() {
    let filters: Vec<_> = (0..9).map(|i| filter_of(2, 6, i * 40..i * 40 + 60)).collect();
    let bytes = FilterBank::from_filters(&filters).unwrap().to_standalone();
    let hashes: Vec<u64> = (0..20).map(mix).collect();
    for at in 0..bytes.len() {
        for change in [1, 0x80] {
            let mut damaged = bytes.clone();
            damaged[at] ^= change;
            let error = BankView::from_standalone(&damaged).unwrap_err();
            let expected = match at / (1024 + 64) {
                block @ (0 | 1) => &format!("the bank's region {block} is damaged, or these are other bytes"),
                _ if at < bytes.len() - 64 => DAMAGED,
                _ => "",
            };
            assert!(error.to_string().starts_with(expected), "byte {at}: {error}");
            assert_eq!(FilterBank::from_standalone(&damaged).unwrap_err(), error);
            decoder_survives(&damaged, &hashes);
        }
    }
    for length in 0..bytes.len() {
        assert!(BankView::from_standalone_unverified(&bytes[..length]).is_err());
        assert!(length == bytes.len() || BankView::from_standalone(&bytes[bytes.len() - length..]).is_err());
    }
    assert!(BankView::from_standalone(&[&bytes[..], &[0]].concat()).is_err());
    assert!(BankView::from_standalone(&bytes.repeat(2)).is_err());
}

#[test]
fn writers_take_the_same_bytes() {
    let filters: Vec<_> = (0..20).map(|i| filter_of(3, 6, i..i + 9)).collect();
    let bank = FilterBank::from_filters(&filters).unwrap();
    let mut file = Vec::new();
    bank.write_standalone(&mut file).unwrap();
    assert!(file == bank.to_standalone());
    assert!(FilterBank::from_standalone(&file).unwrap().to_standalone() == file);
    assert!(FilterBank::from_standalone(&file[1..]).is_err());
}

/// A footer that lies about the size gives ranges beyond the file, but nothing panics.
#[test]
fn ranges_of_forged_footers_do_not_overflow() {
    let bank = FilterBank::from_filters([&filter_of(3, 6, 0..9)]).unwrap().to_standalone();
    for (n_blocks, slots) in
        [(1 << 40, 1), (3, 1 << 24), (1 << 50, 1 << 3), (1 << 30, 1 << 24), (u64::MAX >> 12, 1)]
    {
        let forged = forge(&forge(&bank, 0, &u64::to_le_bytes(n_blocks)), 8, &u64::to_le_bytes(slots));
        if let Ok(footer) = BankFooter::read(&forged[forged.len() - 64..]) {
            let range = footer.range(u64::MAX);
            assert!(range.start < range.end && range.end < footer.standalone_len());
            let result = footer.find_in_range(&bank[..64], u64::MAX, &mut SlotBitmap::new());
            assert_eq!(result.text(), wrong_range((range.end - range.start) as usize, 64));
        }
    }
    // No block, and a length that wraps only with the footer.
    for (n_blocks, slots) in [(0, 0), (0, 1), ((1 << 58) - 1, 0)] {
        let forged = forge(&forge(&bank, 0, &u64::to_le_bytes(n_blocks)), 8, &u64::to_le_bytes(slots));
        let result = BankFooter::read(&forged[forged.len() - 64..]);
        assert_eq!(result.text(), wrong_size(n_blocks, "blocks of a bank", 0));
    }
    let filter = filter_of(3, 6, 0..9).to_standalone();
    let footer = |n_lanes: u64| StandaloneFooter::read(&forge(&filter, 0, &n_lanes.to_le_bytes())).unwrap();
    assert_eq!(footer(5).range(u64::MAX).unwrap(), 0..40);
    assert_eq!(footer(1 << 40).range(u64::MAX).unwrap(), (1 << 43) - 64..1 << 43);
    for n_lanes in [0, 65, 1 << 61, u64::MAX, u64::MAX - 7] {
        let expected = impossible("number of lanes", n_lanes);
        assert_eq!(footer(n_lanes).range(0).text(), expected);
        assert_eq!(footer(n_lanes).contains_in_range(&[0; 64], 0).text(), expected);
    }
    let k = StandaloneFooter::read(&forge(&filter, 41, &[17])).unwrap();
    assert_eq!(k.contains_in_range(&[0; 64], 0).text(), impossible("k", 17));
    let counting = include_bytes!("golden/counting-1-block.bin");
    let range = StandaloneFooter::read(counting).unwrap().range(0);
    assert_eq!(range.text(), of_kind("counting filter"));
}

#[test]
fn a_bank_that_refuses_stays_as_it_was() {
    let small = filter_of(4, 6, 0..9);
    let mut bank = FilterBank::from_filters([&small]).unwrap();
    assert_eq!(bank.capacity(), 8);
    bank.push_all([&small; 7]).unwrap();
    bank.push(&small).unwrap_err();
    let slot = bank.replace(8, &small).unwrap_err();
    assert_eq!(slot.to_string(), "slot 8 does not exist: the bank has 8");
    assert_eq!(bank.as_view().to_filter(8).unwrap_err(), slot);
    assert_eq!(bank.clear_slot(8).unwrap_err(), slot);
    assert!(bank.clone().with_seed(1).is_err());
    let too_many = FilterBank::with_capacity(Sizing::new(1, 6).unwrap(), usize::MAX).unwrap_err();
    assert_eq!(bank.try_reserve(usize::MAX).unwrap_err(), too_many);
    assert_eq!(bank.as_view().slots(), 8);
    let text = format!("{bank:?}");
    assert!(text.starts_with("FilterBank { slots: 8, n_blocks: 4, k: 6, seed: 0, kernel:"), "{text}");
    assert_eq!(hash_key("ant", 0), bank.as_view().hash_key("ant"));
}

/// A manifest does not go together with the file of a different bank, even if only seeds or numbers of keys differ.
#[test]
fn a_region_of_another_bank_is_an_error() {
    let bank_of = |seed: u64, known: bool| {
        let mut filter = BloomFilter::with_blocks(2, 6).unwrap().with_seed(seed).unwrap();
        filter.extend(if known { 0..0 } else { 0..9 });
        FilterBank::from_filters([&filter]).unwrap().to_standalone()
    };
    let (ours, hash) = (bank_of(0, false), 0);
    let footer = BankFooter::read(&ours).unwrap();
    let range = footer.range(hash);
    let range = range.start as usize..range.end as usize;
    let mut found = SlotBitmap::new();
    for (others, is_ours) in
        [(bank_of(0, false), true), (bank_of(1, false), false), (bank_of(0, true), false)]
    {
        let result = footer.find_in_range(&others[range.clone()], hash, &mut found);
        assert_eq!(result.is_ok(), is_ours);
        assert!(is_ours || found.contains(0));
    }
}

/// A file was overwritten under its name, by a bank of the same shape and numbers of keys.
#[test]
fn no_key_is_lost_in_the_ranges_of_another_bank() {
    let bank_of = |first: u64| {
        let filters = (0..8).map(|slot| built_of(first + 500 * slot..first + 500 * (slot + 1)));
        FilterBank::from_filters(&filters.collect::<Vec<_>>()).unwrap().to_standalone()
    };
    let (ours, others) = (bank_of(0), bank_of(1 << 20));
    assert_eq!(ours.len(), others.len());
    let footer = BankFooter::read(&ours).unwrap();
    let mut found = SlotBitmap::new();
    for key in 0..4000 {
        let hash = footer.hash_key(key);
        let range = footer.range(hash);
        let result =
            footer.find_in_range(&others[range.start as usize..range.end as usize], hash, &mut found);
        assert!(result.text().starts_with("the bank's region "), "key {key}: {result:?}");
        assert!(found.contains(key as usize / 500));
    }
}

/// A replaced filter's number of keys does not stay.
#[test]
fn a_slot_has_the_number_of_keys_of_its_last_filter() {
    let mut bank = FilterBank::from_filters([&built_of(0..9), &built_of(9..12)]).unwrap();
    bank.replace(0, &built_of(20..25)).unwrap();
    let known = |bank: &FilterBank| [0, 1].map(|slot| bank.as_view().known_keys(slot));
    assert_eq!(known(&bank), [Some(5), Some(3)]);
    bank.replace(1, &filter_of(1, bank.as_view().sizing().k(), 0..9)).unwrap();
    assert_eq!(known(&bank), [Some(5), None]);
    bank.clear_slot(1).unwrap();
    let bank = FilterBank::from_standalone(&bank.to_standalone()).unwrap();
    assert_eq!(known(&bank), [Some(5), Some(0)]);
}

/// Forged bits that belong to no slot are in no answer, and are not copied.
#[test]
fn bits_of_no_slot_are_ignored() {
    let filters: Vec<_> = (0..9).map(|i| filter_of(1, 6, i..i + 9)).collect();
    let bytes = FilterBank::from_filters(&filters).unwrap().to_standalone();
    let mut forged = bytes.clone();
    for row in 0..512 {
        forged[2 * row + 1] |= 0xfe;
    }
    let (hash, footer) = (xxh64(&forged[..1024], 0), forged.len() - 64);
    let contents = xxh64(&forged[1088..footer], hash);
    let mut forged = forge(&forged, 32, &contents.to_le_bytes());
    let checksum = hash.wrapping_add(xxh64(&forged[footer..][..48], 0));
    forged[1024..1032].copy_from_slice(&checksum.to_le_bytes());
    let view = BankView::from_standalone(&forged).unwrap();
    let mut found = SlotBitmap::new();
    for hash in (0..100).map(mix) {
        view.find_hash(hash, &mut found);
        let expected = (0..9).filter(|&slot| filters[slot].contains_hash(hash));
        assert!(found.iter().eq(expected));
        let mut words = [0];
        view.find_hash_in(hash, &mut words);
        assert_eq!(words, found.as_words());
    }
    assert!(FilterBank::from_standalone(&forged).unwrap().to_standalone() == bytes);
}

#[test]
fn bitmaps_of_banks_of_any_size_can_be_equal() {
    let mut found = [SlotBitmap::new(), SlotBitmap::new(), SlotBitmap::new()];
    let full = filter_of(1, 6, 0..1000);
    for (slots, found) in [1, 65].into_iter().zip(&mut found) {
        let mut bank = FilterBank::from_filters([&full]).unwrap();
        bank.try_reserve(slots).unwrap();
        bank.push_all(vec![&filter_of(1, 6, 0..0); slots - 1]).unwrap();
        assert!(bank.as_view().find(0, found));
    }
    assert!(found[0] == found[1] && found[0] != found[2]);
    assert_eq!(format!("{:?}", found[1]), "{0}");
    assert!([0].into_iter().eq(&found[1]) && found[2].iter().next().is_none());
}
