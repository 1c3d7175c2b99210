//! A table of the `sstable` crate loses no key, and bloomline can read its filter block.
#![cfg(feature = "sstable")]

use bloomline::sstable::FilterPolicy;
use bloomline::{BloomView, mix};
use bloomline_adapters::Bloomline;
use sstable::{Options, Table, TableBuilder};

const KEYS: u64 = 20_000;

fn key(i: u64) -> Vec<u8> {
    format!("{i:06}/{:x}", mix(i)).into()
}

fn varint(bytes: &mut &[u8]) -> usize {
    let (mut value, mut shift) = (0, 0);
    while let [byte, rest @ ..] = bytes {
        *bytes = rest;
        value |= usize::from(byte & 127) << shift;
        shift += 7;
        if byte & 128 == 0 {
            break;
        }
    }
    value
}

/// The block of the table at a handle, which is an offset and a length.
fn at_handle<'a>(table: &'a [u8], handle: &mut &[u8]) -> &'a [u8] {
    let offset = varint(handle);
    &table[offset..][..varint(handle)]
}

/// The filter block, found through the only entry of the table's metaindex.
fn filter_block(table: &[u8]) -> &[u8] {
    let mut footer = table.last_chunk::<48>().unwrap().as_slice();
    let mut entry = at_handle(table, &mut footer);
    assert_eq!(varint(&mut entry), 0, "the first entry shares no prefix");
    let (name_bytes, _) = (varint(&mut entry), varint(&mut entry));
    let (name, mut handle) = entry.split_at(name_bytes);
    assert_eq!(name, format!("filter.{}", FilterPolicy::NAME).as_bytes());
    at_handle(table, &mut handle)
}

/// The filter for the data block at this offset, found as LevelDB's `doc/table_format.md` has it.
fn filter_of(filter_block: &[u8], data_block: usize) -> BloomView<'_> {
    let number = |at: usize| u32::from_le_bytes(*filter_block[at..].first_chunk().unwrap()) as usize;
    let [.., base_log2] = *filter_block else { panic!("an empty filter block") };
    let entry = number(filter_block.len() - 5) + 4 * (data_block >> base_log2);
    BloomView::from_compact(&filter_block[number(entry)..number(entry + 4)]).unwrap()
}

#[test]
fn no_key_is_lost_and_few_others_are_found() {
    let policy = Bloomline::with_bits_per_key(10.0).unwrap();
    let options = Options { filter_policy: policy.clone().into(), ..Options::default() };
    let mut bytes = Vec::new();
    let mut builder = TableBuilder::new(options.clone(), &mut bytes);
    for i in 0..KEYS {
        builder.add(&key(2 * i), &mix(i).to_le_bytes()).unwrap();
    }
    builder.finish().unwrap();

    let table = Table::new(options, Box::new(bytes.clone()), bytes.len()).unwrap();
    let filter_of = |key: &[u8]| filter_of(filter_block(&bytes), table.approx_offset_of(key));
    let mut positives = 0;
    // Without the last key, because the missing key after it lies in no data block.
    for i in 0..KEYS - 1 {
        let (present, missing) = (key(2 * i), key(2 * i + 1));
        assert_eq!(table.get(&present).unwrap().as_deref(), Some(&mix(i).to_le_bytes()[..]));
        assert_eq!(table.get(&missing).unwrap(), None);
        assert!(filter_of(&present).contains(&present));
        positives += usize::from(filter_of(&missing).contains(&missing));
    }
    // About 1%, or less, as filters of few keys are rounded up.
    assert!((60..=220).contains(&positives), "{positives} of {KEYS}");
    assert_eq!(policy.unusable_filters(), 0);
}

#[test]
fn bytes_that_are_not_a_filter_are_counted() {
    let policy = Bloomline::with_bits_per_key(10.0).unwrap();
    let boxed: std::sync::Arc<Box<dyn sstable::filter::FilterPolicy>> = policy.clone().into();
    let filter = boxed.create_filter(b"antbee", &[0, 3]);
    assert!(boxed.key_may_match(b"ant", &filter) && boxed.key_may_match(b"bee", &filter));
    assert!(!boxed.key_may_match(b"cat", &filter));
    assert_eq!(policy.unusable_filters(), 0);
    assert!(boxed.key_may_match(b"cat", &filter[1..]) && boxed.key_may_match(b"cat", b""));
    assert_eq!(policy.unusable_filters(), 2);
}
