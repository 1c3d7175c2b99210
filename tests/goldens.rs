//! The crate produces the hashes, masks and bytes of `docs/format.md`, bit for bit.
//!
//! `tests/golden/make.py` generates the values. It was written from `docs/format.md` in a different language, without
//! reading the crate, so a mistake goes unnoticed only if both make the same one. If a test here fails, stored filters
//! would be misread, so change the crate, not the values.

#[path = "golden/banks.rs"]
mod banks;
#[path = "golden/table.rs"]
mod table;

use std::fmt::Debug;
use std::str::FromStr;

use bloomline::bank::{BankFooter, BankView, FilterBank, SlotBitmap};
use bloomline::sstable::FilterPolicy;
use bloomline::{
    BloomFilter, BloomView, FilterBuilder, Kernel, Key, OwnedView, Sizing, StandaloneKind, hash_key,
};
use table::{hex, rows};

const ANIMALS: [&str; 3] = ["ant", "bee", "cat"];
const FOOTER_BYTES: usize = 64;

fn numbers() -> Vec<String> {
    (0..1000).map(|number: u32| number.to_string()).collect()
}

fn empty(n_blocks: usize, k: u32) -> BloomFilter {
    BloomFilter::with_blocks(n_blocks, k).expect("a small filter")
}

fn filled<K: Key>(mut filter: BloomFilter, keys: &[K]) -> BloomFilter {
    for key in keys {
        filter.insert(key);
    }
    filter
}

fn compact(filter: &BloomFilter) -> Vec<u8> {
    let mut bytes = Vec::new();
    filter.write_compact(&mut bytes).unwrap();
    assert_eq!((filter.to_compact(), filter.compact_len()), (bytes.clone(), bytes.len()));
    bytes
}

/// The eight lanes of a filter of one block. Compact bytes store repeated lanes once, so this repeats them.
fn lanes_of_one_block(filter: &BloomFilter) -> [u64; 8] {
    let bytes = compact(filter);
    let (written, trailer) = bytes.as_chunks::<8>();
    assert_eq!(trailer.len(), 1);
    core::array::from_fn(|i| u64::from_le_bytes(written[i % written.len()]))
}

/// Reports only the lengths and the first difference, because the bytes themselves would fill the screen.
fn assert_same_bytes(ours: &[u8], golden: &[u8], what: &str) {
    let difference = ours.iter().zip(golden).position(|(ours, golden)| ours != golden);
    assert_eq!((ours.len(), difference), (golden.len(), None), "{what}: (length, first byte that differs)");
}

fn assert_contains_all<K: Key>(view: &BloomView<'_>, keys: &[K]) {
    let owned = view.to_filter().unwrap();
    for kernel in Kernel::available() {
        let (view, owned) = (view.with_kernel(kernel), owned.clone().with_kernel(kernel));
        for key in keys {
            assert!(view.contains(key), "{kernel}, in place");
            assert!(owned.contains(key), "{kernel}, owned");
        }
    }
}

#[test]
fn hashes_match_the_format() {
    let table = include_str!("golden/hashes.tsv");
    let names = table.lines().next().unwrap().split('\t').skip(1);
    let seeds: Vec<u64> = names.map(|name| hex(name.trim_start_matches("hash, seed "))).collect();
    assert_eq!((seeds.len(), rows(table).count()), (4, 155));
    for row in rows(table) {
        let length: usize = row[0].parse().unwrap();
        if cfg!(miri) && length > 150 {
            continue; // minutes under miri
        }
        let key: Vec<u8> = (0..length).map(|i| (131 * i + length) as u8).collect();
        for (&seed, hash) in seeds.iter().zip(&row[1..]) {
            assert_eq!(hash_key(&key, seed), hex(hash), "key of {length} bytes, seed {seed:#x}");
        }
    }
}

/// For each row of keys.tsv, its type and value, the key that they make here, and the golden key, hash, and hash with
/// seed 0x5eed.
fn typed_keys() -> impl Iterator<Item = (String, Vec<u8>, [&'static str; 3])> {
    rows(include_str!("golden/keys.tsv")).map(|row| {
        let [type_, value, golden @ ..] = &row[..] else { panic!("{row:?}") };
        let key = match *type_ {
            "text" => bytes_of(&value.replace("\\0", "\0")),
            "binary" => bytes_of(&value.as_bytes().chunks(2).map(from_hex).collect::<Vec<u8>>()),
            "int8" => integer::<i8>(value),
            "int16" => integer::<i16>(value),
            "int32" => integer::<i32>(value),
            "int64" => integer::<i64>(value),
            "uint8" => integer::<u8>(value),
            "uint16" => integer::<u16>(value),
            "uint32" => integer::<u32>(value),
            "uint64" => integer::<u64>(value),
            // An integer beyond 64 bits is not a key today, but it was when the files were made.
            "int" => bytes_of(&(value.parse::<i128>().unwrap() as u64)),
            other => panic!("{other}"),
        };
        (format!("{type_} {value}"), key, golden.try_into().unwrap())
    })
}

fn integer<T: Key + FromStr<Err: Debug>>(value: &str) -> Vec<u8> {
    bytes_of(&value.parse::<T>().unwrap())
}

fn bytes_of(key: &impl Key) -> Vec<u8> {
    key.key_bytes().as_ref().to_vec()
}

fn from_hex(digits: &[u8]) -> u8 {
    u8::from_str_radix(str::from_utf8(digits).unwrap(), 16).unwrap()
}

#[test]
fn keys_of_other_types_match_the_format() {
    assert_eq!(typed_keys().count(), 70);
    for (value, key, [golden, hash, seeded]) in typed_keys() {
        assert_eq!(key.iter().map(|byte| format!("{byte:02x}")).collect::<String>(), golden, "{value}");
        assert_eq!(hash_key(&key, 0), hex(hash), "{value}");
        assert_eq!(hash_key(&key, 0x5eed), hex(seeded), "{value}");
    }

    let golden = include_bytes!("golden/standalone-keys.bin");
    let keys: Vec<_> = typed_keys().map(|(_, key, _)| key).collect();
    assert_same_bytes(&filled(empty(2, 6), &keys).to_standalone(), golden, "typed keys");
    let view = BloomView::from_standalone(golden).unwrap();
    view.verify().unwrap();
    assert_contains_all(&view, &keys);
}

#[test]
fn masks_of_every_kernel_match_the_format() {
    let masks = include_str!("golden/masks.tsv");
    assert_eq!(rows(masks).count(), 12 * 16);
    for row in rows(masks) {
        let (hash, k) = (hex(row[0]), row[1].parse().unwrap());
        let mask: Vec<u64> = row[2..].iter().map(|lane| hex(lane)).collect();
        for kernel in Kernel::available() {
            let mut filter = empty(1, k).with_kernel(kernel);
            filter.insert_hash(hash);
            assert_eq!(lanes_of_one_block(&filter), *mask, "{kernel}: hash {hash:#x}, k {k}");

            let mut batch = empty(1, k).with_kernel(kernel);
            batch.insert_batch(&[hash]);
            assert_eq!(lanes_of_one_block(&batch), *mask, "{kernel}: batch of hash {hash:#x}, k {k}");
        }
    }
}

#[test]
fn blocks_match_the_format() {
    let table = include_str!("golden/blocks.tsv");
    let names = table.lines().next().unwrap().split('\t').skip(1);
    let sizes: Vec<usize> = names.map(|name| name.trim_start_matches("block of ").parse().unwrap()).collect();
    assert_eq!((sizes.len(), rows(table).count()), (7, 14));
    for row in rows(table) {
        let hash = hex(row[0]);
        for (&n_blocks, block) in sizes.iter().zip(&row[1..]) {
            if cfg!(miri) && n_blocks > 100 {
                continue; // minutes under miri
            }
            let mut filter = empty(n_blocks, 8);
            filter.insert_hash(hash);
            let bytes = compact(&filter);
            let lanes = &bytes[..bytes.len() - 1];
            let changed =
                lanes.chunks(64).enumerate().filter(|(_, block)| block.iter().any(|byte| *byte != 0));
            let changed: Vec<usize> = changed.map(|(i, _)| i).collect();
            assert_eq!(changed, [block.parse().unwrap()], "hash {hash:#x} in {n_blocks} blocks");
        }
    }
}

#[test]
fn compact_bytes_match_the_format() {
    let golden = include_bytes!("golden/compact-1-block.bin");
    assert_same_bytes(&compact(&filled(empty(1, 6), &ANIMALS)), golden, "1 block");

    let golden = include_bytes!("golden/compact-100-blocks.bin");
    assert_same_bytes(&compact(&filled(empty(100, 11), &numbers())), golden, "100 blocks");

    let golden = include_bytes!("golden/compact-empty.bin");
    assert_same_bytes(&compact(&empty(1, 6)), golden, "empty");
}

#[test]
fn golden_compact_bytes_are_read() {
    let view = BloomView::from_compact(include_bytes!("golden/compact-1-block.bin")).unwrap();
    assert_eq!((view.n_blocks(), view.k(), view.seed(), view.known_keys()), (1, 6, 0, None));
    assert_contains_all(&view, &ANIMALS);
    assert!(view.to_filter().unwrap() == filled(empty(1, 6), &ANIMALS));

    let view = BloomView::from_compact(include_bytes!("golden/compact-100-blocks.bin")).unwrap();
    assert_eq!((view.n_blocks(), view.k(), view.seed(), view.known_keys()), (100, 11, 0, None));
    assert_contains_all(&view, &numbers());
    assert!(view.to_filter().unwrap() == filled(empty(100, 11), &numbers()));

    let view = BloomView::from_compact(include_bytes!("golden/compact-empty.bin")).unwrap();
    assert_eq!((view.n_blocks(), view.k(), view.seed()), (1, 6, 0));
    assert!(!numbers().iter().any(|key| view.contains(key)));
    assert!(view.to_filter().unwrap() == empty(1, 6));
}

#[test]
fn compact_bytes_are_read_with_the_given_seed() {
    // Compact bytes made from the lanes of a standalone filter with a seed.
    let standalone = include_bytes!("golden/standalone-100-blocks.bin");
    let mut bytes = standalone[..standalone.len() - FOOTER_BYTES].to_vec();
    bytes.push(0x2a);
    assert_same_bytes(
        &compact(&filled(empty(100, 11).with_seed(0x5eed).unwrap(), &numbers())),
        &bytes,
        "100 blocks with a seed",
    );

    let view = BloomView::from_compact_with_seed(&bytes, 0x5eed).unwrap();
    assert_eq!((view.n_blocks(), view.k(), view.seed(), view.known_keys()), (100, 11, 0x5eed, None));
    assert_contains_all(&view, &numbers());
}

#[test]
fn golden_short_compact_bytes_round_trip() {
    let (animals, numbers) = (ANIMALS.map(String::from).to_vec(), numbers());
    let golden: [(&[u8], usize, u32, &[String]); 10] = [
        (include_bytes!("golden/compact-short-1.bin"), 1, 6, &animals),
        (include_bytes!("golden/compact-short-2.bin"), 1, 6, &animals),
        (include_bytes!("golden/compact-short-3.bin"), 3, 7, &numbers[..18]),
        (include_bytes!("golden/compact-short-4.bin"), 1, 6, &animals),
        (include_bytes!("golden/compact-short-5.bin"), 5, 7, &numbers[..30]),
        (include_bytes!("golden/compact-short-6.bin"), 3, 7, &numbers[..36]),
        (include_bytes!("golden/compact-short-7.bin"), 7, 7, &numbers[..42]),
        (include_bytes!("golden/compact-short-12.bin"), 3, 7, &numbers[..72]),
        (include_bytes!("golden/compact-short-37.bin"), 37, 7, &numbers[..222]),
        (include_bytes!("golden/compact-short-63.bin"), 63, 7, &numbers[..378]),
    ];
    for (golden, n_blocks, k, keys) in golden {
        let n_lanes = golden.len() / 8;
        let view = BloomView::from_compact(golden).unwrap();
        assert_eq!((view.n_blocks(), view.k(), view.seed()), (n_blocks, k, 0), "{n_lanes} lanes");
        assert_contains_all(&view, keys);
        assert_same_bytes(&compact(&view.to_filter().unwrap()), golden, &format!("{n_lanes} lanes"));
        if k == 7 {
            // With this many bits per key the builder chooses k = 7.
            let mut builder = FilterBuilder::with_bits_per_key(64.0 / 6.0).unwrap();
            builder.extend(keys);
            let mut built = Vec::new();
            builder.finish_compact(&mut built).unwrap();
            assert_same_bytes(&built, golden, &format!("{n_lanes} lanes, built"));
        }
    }
}

#[test]
fn standalone_bytes_match_the_format() {
    let golden = include_bytes!("golden/standalone-empty.bin");
    assert_same_bytes(&empty(1, 6).to_standalone(), golden, "empty");

    let golden = include_bytes!("golden/standalone-100-blocks.bin");
    let filter = filled(empty(100, 11).with_seed(0x5eed).unwrap(), &numbers());
    assert_same_bytes(&filter.to_standalone(), golden, "100 blocks");
    let mut file = Vec::new();
    filter.write_standalone(&mut file).unwrap();
    assert_same_bytes(&file, golden, "100 blocks, without a copy");
}

#[test]
fn golden_standalone_bytes_round_trip() {
    let golden = include_bytes!("golden/standalone-empty.bin");
    let view = BloomView::from_standalone(golden).unwrap();
    view.verify().unwrap();
    assert_eq!((view.n_blocks(), view.k(), view.seed(), view.known_keys()), (1, 6, 0, Some(0)));
    assert!(!numbers().iter().any(|key| view.contains(key)));
    assert_same_bytes(&view.to_filter().unwrap().to_standalone(), golden, "empty");

    let golden = include_bytes!("golden/standalone-100-blocks.bin");
    let view = BloomView::from_standalone(golden).unwrap();
    view.verify().unwrap();
    assert_eq!((view.n_blocks(), view.k(), view.seed(), view.known_keys()), (100, 11, 0x5eed, None));
    assert_contains_all(&view, &numbers());
    assert_same_bytes(&view.to_filter().unwrap().to_standalone(), golden, "100 blocks");

    let golden = include_bytes!("golden/standalone-short-2.bin");
    let view = BloomView::from_standalone(golden).unwrap();
    view.verify().unwrap();
    assert_eq!((view.n_blocks(), view.k(), view.seed(), view.known_keys()), (1, 6, 0, Some(3)));
    assert_contains_all(&view, &ANIMALS);
    assert_same_bytes(&view.to_filter().unwrap().to_standalone(), golden, "2 lanes");

    let golden = include_bytes!("golden/standalone-short-9.bin");
    let view = BloomView::from_standalone(golden).unwrap();
    view.verify().unwrap();
    assert_eq!((view.n_blocks(), view.k(), view.seed(), view.known_keys()), (9, 11, 0x5eed, Some(50)));
    assert_contains_all(&view, &numbers()[..50]);
    assert_same_bytes(&view.to_filter().unwrap().to_standalone(), golden, "9 lanes");
}

/// The filter of a slot of the goldens.
fn golden_filter(slot: usize, n_blocks: usize, k: u32, seed: u64) -> BloomFilter {
    let mut filter = BloomFilter::with_blocks(n_blocks, k).unwrap().with_seed(seed).unwrap();
    filter.extend((0..slot % 7).map(|i| format!("{slot}-{i}")));
    filter
}

#[test]
fn golden_banks_are_read_and_written() {
    for &(golden, slots, n_blocks, k, seed) in banks::BANKS {
        let view = BankView::from_standalone(golden).unwrap();
        assert_eq!(
            (view.slots(), view.sizing().n_blocks(), view.sizing().k(), view.seed()),
            (slots, n_blocks, k, seed)
        );
        assert_eq!(StandaloneKind::of(golden), Some(StandaloneKind::Bank));
        let footer = BankFooter::read(golden).unwrap();
        let mut found = SlotBitmap::new();
        for slot in 0..slots {
            let filter = view.to_filter(slot).unwrap();
            assert!(filter == golden_filter(slot, n_blocks, k, seed), "slot {slot} of {slots}");
            assert_eq!(filter.known_keys(), Some(slot as u64 % 7).filter(|&keys| keys != 4));
            for key in (0..slot % 7).map(|i| format!("{slot}-{i}")) {
                for kernel in Kernel::available() {
                    assert!(view.with_kernel(kernel).find(&key, &mut found) && found.contains(slot));
                }
                let hash = footer.hash_key(&key);
                let range = footer.range(hash);
                let region = &golden[range.start as usize..range.end as usize];
                assert!(footer.find_in_range(region, hash, &mut found).unwrap() && found.contains(slot));
            }
        }
        let bank = FilterBank::from_standalone(golden).unwrap();
        assert!(bank.to_standalone() == golden);

        // Pushed one by one into a larger bank, with the numbers of keys that the standalone bytes have.
        let sizing = Sizing::new(n_blocks, k).unwrap();
        let mut bank = FilterBank::with_capacity(sizing, slots + 70).unwrap().with_seed(seed).unwrap();
        for slot in 0..slots {
            let filter = view.to_filter(slot).unwrap();
            assert_eq!(bank.push(&filter), Ok(slot));
        }
        assert!(bank.to_standalone() == golden, "{slots} slots");
    }
}

#[test]
fn the_worked_example_of_a_bank_is_read() {
    let golden = include_bytes!("golden/bank-3-slots.bin");
    let view = BankView::from_standalone(golden).unwrap();
    let keys: Vec<_> = (0..3).map(|slot| view.to_filter(slot).unwrap().known_keys()).collect();
    assert_eq!(keys, [Some(0), Some(1), Some(2)]);
    let mut found = SlotBitmap::new();
    for (key, slots) in [("boa", &[1, 2][..]), ("bee", &[2]), ("cat", &[])] {
        assert_eq!(view.find(key, &mut found), !slots.is_empty());
        assert!(found.iter().eq(slots.iter().copied()), "{key}: {found:?}");
    }
}

#[test]
fn golden_filters_of_several_modules_are_read_and_written() {
    let (animals, numbers) = (ANIMALS.map(String::from), numbers());
    type Golden<'a> = (&'a [u8], [usize; 2], u32, u64, &'a [String], Option<u64>);
    let goldens: [Golden<'_>; 4] = [
        (include_bytes!("golden/standalone-modules-empty.bin"), [1, 1], 6, 0, &[], Some(0)),
        (
            include_bytes!("golden/standalone-2-modules.bin"),
            [2, 1],
            3,
            0,
            &["boa".into(), "bee".into()],
            Some(2),
        ),
        (include_bytes!("golden/standalone-3-modules.bin"), [3, 7], 6, 0x5eed, &numbers[..500], None),
        (include_bytes!("golden/standalone-16-modules.bin"), [16, 2], 16, u64::MAX, &animals, Some(3)),
    ];
    for (golden, [n_modules, module_blocks], k, seed, keys, known_keys) in goldens {
        let what = format!("{n_modules} modules");
        assert_eq!(StandaloneKind::of(golden), Some(StandaloneKind::Blocked));
        let view = BloomView::from_standalone(golden).unwrap();
        let sizing = Sizing::new(n_modules * module_blocks, k).unwrap().with_modules(n_modules).unwrap();
        assert_eq!((view.sizing(), view.seed(), view.known_keys()), (sizing, seed, known_keys));
        let empty = BloomFilter::with_sizing(sizing).unwrap().with_seed(seed).unwrap();
        assert!(view == filled(empty, keys).as_view(), "{what}");
        assert_contains_all(&view, keys);
        let copy = BloomFilter::from_standalone(golden).unwrap().to_standalone();
        // One module is written in the form of one.
        let written = if n_modules == 1 { include_bytes!("golden/standalone-empty.bin") } else { golden };
        assert_same_bytes(&copy, written, &what);
        assert_same_bytes(&view.to_filter().unwrap().to_standalone(), written, &what);
    }
}

#[test]
fn golden_compact_bytes_of_two_modules_are_read_and_written() {
    let golden = include_bytes!("golden/compact-2-modules.bin");
    let (policy, mut filter) = (FilterPolicy::with_bits_per_key(20.0).unwrap(), Vec::new());
    policy.create_filter(numbers(), &mut filter);
    assert_same_bytes(&filter, golden, "2 modules");
    let view = BloomView::from_compact(golden).unwrap();
    assert_eq!((view.n_modules(), view.n_blocks(), view.k(), view.seed()), (2, 40, 7, 0));
    assert_contains_all(&view, &numbers());
    assert!(OwnedView::from_compact(golden).unwrap().as_view() == view);
    assert_same_bytes(&BloomFilter::from_compact(golden).unwrap().to_compact(), golden, "2 modules, copied");
    assert!(numbers().iter().all(|key| policy.key_may_match(key, golden)));
    assert!(!policy.key_may_match("absent", golden));
}

/// Tables store the name. A database silently ignores the filters of a table if the name differs.
#[test]
fn the_policy_name_never_changes() {
    assert_eq!(bloomline::sstable::FilterPolicy::NAME, "bloomline.BlockedBloom2");
}

#[test]
fn mix_is_one_step_of_splitmix64() {
    // The generator's first outputs from state 0, as published. Its state grows by this constant.
    const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;
    let outputs = [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4, 0x06c4_5d18_8009_454f];
    for (i, output) in (0..).zip(outputs) {
        assert_eq!(bloomline::mix(GAMMA.wrapping_mul(i)), output);
    }
}
