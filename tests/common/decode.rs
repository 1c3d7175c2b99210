//! Any bytes decode to an error or a working filter, never a panic, a read past the end or a large allocation.

use arbitrary::Arbitrary;
use bloomline::bank::{IndexFooter, IndexView, SlotBitmap};
use bloomline::sstable::FilterPolicy;
use bloomline::variants::{CountingBloomFilter, Frontier, ScalableBloomFilter, StandardBloomFilter};
use bloomline::{AlignedBytes, AtomicBloomFilter, BloomFilter, BloomView, Error, OwnedView, hash_key};
use xxhash_rust::xxh64::xxh64;

use super::allocations::allocated as allocated_by;
use super::error_texts::{DAMAGED, Refusal};
use super::format::Reference;

#[derive(Arbitrary, Debug)]
pub struct Input<'a> {
    key: &'a [u8],
    bytes: &'a [u8],
}

pub fn check(input: Input<'_>) {
    let Input { key, bytes } = input;
    // An allocation of exactly these bytes, so that the address sanitizer detects a read past their end.
    let bytes: Box<[u8]> = bytes.into();
    decoders_survive(&bytes, key);
    decoders_survive(&forge_compact_modules(&bytes, key), key);
    // No fuzzer guesses the checksums or the check value of the hash. Setting them reaches the code behind these
    // checks.
    if let Some(mut forged) = forge(&bytes) {
        decoders_survive(&forged, key);
        scalable_decoder_survives(&forge_scalable(&forged, 1, key));
        scalable_decoder_survives(&forge_scalable(&forged, 2, key));
        forged.last_chunk_mut::<64>().expect("a footer")[56..].copy_from_slice(b"\x89blstd\r\n");
        standard_decoder_survives(&forged);
        decoders_survive(&forge_modules(&forged, key), key);
        forge_counting(&mut forged);
        counting_decoder_survives(&forged);
    }
    standard_decoder_survives(&bytes);
    counting_decoder_survives(&bytes);
    scalable_decoder_survives(&bytes);
    frontier_decoder_survives(&bytes);
    frontier_decoder_survives(&forge_frontier(&bytes, key.len() as u64));
    index_decoder_survives(&bytes);
    index_decoder_survives(&forge_index(&bytes, key));
}

fn forge(bytes: &[u8]) -> Option<Box<[u8]>> {
    let written = include_bytes!("../golden/standalone-empty.bin").last_chunk::<64>()?;
    let mut forged: Box<[u8]> = bytes.into();
    let (lanes, footer) = forged.split_last_chunk_mut::<64>()?;
    footer[32..40].copy_from_slice(&xxh64(lanes, 0).to_le_bytes());
    footer[24..32].copy_from_slice(&written[24..32]);
    footer[56..].copy_from_slice(&written[56..]);
    sign(footer);
    Some(forged)
}

/// The bytes of a frontier with this queue of `items` items, whose filter has every bit set and so contains any item.
pub fn forge_frontier(queue: &[u8], items: u64) -> Vec<u8> {
    let full = [0xff; 8];
    let mut filter =
        [&full[..], include_bytes!("../golden/standalone-empty.bin").last_chunk::<64>().expect("a footer")]
            .concat();
    let checksum = xxh64(&full, 0).to_le_bytes();
    filter = forge_footer(&forge_footer(&filter, 8, &[0xff; 8]), 32, &checksum);
    let body = [queue, &filter].concat();
    let fields = [items, queue.len() as u64, u64::MAX / 2, 1000, xxh64(&body, 0), 2, 0];
    let mut bytes = [&body[..], fields.map(u64::to_le_bytes).as_flattened(), b"\x89blsiv\r\n"].concat();
    sign(bytes.last_chunk_mut().expect("a footer"));
    bytes
}

/// An index in which `bytes` flip bits of the end, and `key` those of its footer, with all checksums corrected.
pub fn forge_index(bytes: &[u8], key: &[u8]) -> Vec<u8> {
    let mut forged = include_bytes!("../golden/index-6-files.bin").to_vec();
    let len = IndexFooter::read_len(&forged).expect("an index") as usize;
    let start = forged.len() - len;
    let flip = |at: &mut [u8], by: &[u8]| at.iter_mut().zip(by).for_each(|(byte, change)| *byte ^= change);
    flip(&mut forged[start..], bytes);
    let footer = forged.len() - 64;
    flip(&mut forged[footer..footer + 48], key);
    sign_index(&mut forged, len - 64);
    forged
}

/// Corrects the checksums of an index whose bank footers, rule, entries and suffixes are so long, but for those of the
/// banks' bits.
pub fn sign_index(index: &mut [u8], listed_len: usize) {
    let (before, footer) = index.split_last_chunk_mut::<64>().expect("a footer");
    let (files, listed) = before.split_at_mut(before.len() - listed_len);
    for bank in listed.as_chunks_mut::<64>().0.iter_mut().take(footer[41].into()) {
        sign(bank);
    }
    let n_files = u64::from_le_bytes(*footer.first_chunk().expect("64 bytes"));
    let files_len = usize::try_from(n_files).ok().and_then(|files| files.checked_mul(40));
    let files =
        files_len.and_then(|len| files.len().checked_sub(len)).map_or(&[][..], |start| &files[start..]);
    footer[16..24].copy_from_slice(&xxh64(files, 0).to_le_bytes());
    footer[32..40].copy_from_slice(&xxh64(listed, 0).to_le_bytes());
    sign(footer);
}

/// Any bytes are an error or an index that answers, at a cost in proportion to the bytes.
pub fn index_decoder_survives(bytes: &[u8]) {
    let (allocated, footer) = allocated_by(|| IndexFooter::read(bytes));
    // A file with keys needs 64 bytes of memory for 8, some of it in a list that grows. A name is up to nine times as
    // long as its suffix.
    assert!(allocated <= 24 * bytes.len() + 1024, "{allocated} bytes for {}", bytes.len());
    let unverified = IndexView::from_standalone_unverified(bytes);
    let Ok(footer) = footer else {
        assert!(unverified.is_err() && IndexView::from_standalone(bytes).is_err());
        return;
    };
    let (n_files, mut found) = (footer.files(), SlotBitmap::new());
    assert!(n_files <= bytes.len() / 8 && footer.rule().len() < bytes.len());
    assert!((1..n_files).all(|file| footer.name(file - 1) < footer.name(file)));
    assert!(footer.name(n_files).is_none() && (0.0..1.0).contains(&footer.fpr()));
    for hash in [0, bloomline::mix(1)] {
        let mut end = 0;
        for range in footer.ranges(hash) {
            assert!(range.start >= end && range.end >= range.start + 64);
            end = range.end;
        }
        // Without their ranges, all files with keys are found.
        let found_any = footer.find_in_ranges(hash, [[]; 0], &mut found);
        assert_eq!(found_any.is_err(), footer.ranges(hash).count() > 0);
        assert!(found.iter().all(|file| file < n_files));
    }
    let with_keys = found.clone();
    let Ok(unverified) = unverified else { return };
    let verified = IndexView::from_standalone(bytes);
    assert_eq!(verified.is_ok(), unverified.verify().is_ok());
    for key in 0..8_u64 {
        let hash = footer.hash_key(key);
        let ranges = footer.ranges(hash).map(|range| &bytes[range.start as usize..range.end as usize]);
        let any = footer.find_in_ranges(hash, ranges, &mut found);
        assert!(found.iter().all(|file| with_keys.contains(file)) && any != Ok(found.count() == 0));
        let mut again = SlotBitmap::new();
        for view in [Ok(&unverified), verified.as_ref()].into_iter().flatten() {
            assert_eq!(view.find(key, &mut again), any);
            assert_eq!(again, found);
        }
    }
    for file in 0..=n_files {
        let (allocated, filter) = allocated_by(|| unverified.to_filter(file).expect("enough memory"));
        assert!(allocated <= bytes.len() + 128, "{allocated} bytes for {}", bytes.len());
        assert_eq!(filter.is_some(), with_keys.contains(file));
        assert!(unverified.known_keys(file).is_none() || file < n_files);
        assert_eq!(unverified.version(file).is_some(), file < n_files);
    }
}

pub fn every_change_and_truncation_is_detected<F>(
    standalone: &[u8],
    read: impl Fn(&[u8]) -> Result<F, Error>,
) {
    for position in 0..standalone.len() {
        for change in 1..=255 {
            let mut damaged = standalone.to_vec();
            damaged[position] ^= change;
            assert!(read(&damaged).is_err(), "byte {position}, {change:#x}");
        }
        let (first, last) = standalone.split_at(position);
        assert!(read(first).is_err(), "the first {position} bytes");
        assert!(position == 0 || read(last).is_err(), "from {position} on");
    }
    assert!(read(&standalone.repeat(2)).is_err());
}

/// `standalone` with the footer's bytes replaced from `offset` on, and its checksum corrected.
pub fn forge_footer(standalone: &[u8], offset: usize, bytes: &[u8]) -> Vec<u8> {
    let mut forged = standalone.to_vec();
    let footer = forged.last_chunk_mut().expect("a footer");
    footer[offset..][..bytes.len()].copy_from_slice(bytes);
    sign(footer);
    forged
}

/// The filter as modules, with their checksums and the checksums of the footer. The first byte of the key is the number
/// of modules.
fn forge_modules(filter: &[u8], key: &[u8]) -> Vec<u8> {
    let (body, footer) = filter.split_last_chunk::<64>().expect("a footer");
    let n_modules = key.first().map_or(2, |n_modules| usize::from(n_modules % 20));
    let n_blocks = body.len() / 64 / n_modules.max(1);
    let modules = &body[..64 * n_blocks * n_modules];
    let checksums: Vec<u8> = modules
        .chunks(64 * n_blocks.max(1))
        .zip(0..)
        .flat_map(|(module, j)| xxh64(module, j).to_le_bytes())
        .collect();
    let mut forged = [modules, &checksums, footer].concat();
    let footer = forged.last_chunk_mut::<64>().expect("a footer");
    footer[..8].copy_from_slice(&(n_blocks as u64).to_le_bytes());
    footer[32..40].copy_from_slice(&xxh64(&checksums, 0).to_le_bytes());
    footer[43] = n_modules as u8;
    footer[56..].copy_from_slice(b"\x89blmod\r\n");
    sign(footer);
    forged
}

/// The bytes that fill whole blocks, with a number of modules and a trailer from the key.
fn forge_compact_modules(bytes: &[u8], key: &[u8]) -> Vec<u8> {
    let [n_modules, k] = [0, 1].map(|at| key.get(at).copied().unwrap_or(2));
    [bytes.as_chunks::<64>().0.as_flattened(), &[n_modules % 20, 0x30 | k & 15]].concat()
}

/// Sets the number of blocks that matches the length, which no fuzzer guesses either, and the magic of a counting
/// filter.
fn forge_counting(bytes: &mut [u8]) {
    let n_blocks = (bytes.len() - 64) as u64 / 256;
    let footer = bytes.last_chunk_mut::<64>().expect("a footer");
    footer[..8].copy_from_slice(&n_blocks.to_le_bytes());
    footer[56..].copy_from_slice(b"\x89blcnt\r\n");
    sign(footer);
}

/// The filter as each module, followed by its keys and capacity and the footer of a scalable filter in which `key` flips
/// bits.
fn forge_scalable(filter: &[u8], n_modules: u8, key: &[u8]) -> Vec<u8> {
    let written = include_bytes!("../golden/scalable-empty.bin").last_chunk::<88>().expect("a footer");
    let mut forged = *written;
    forged[..16].copy_from_slice(&[1_u64, 1].map(u64::to_le_bytes).concat());
    forged[24 + 16] = 1;
    forged[24 + 43] = n_modules - 1;
    let changed =
        forged.iter_mut().enumerate().filter(|(at, _)| !(16..24).contains(at)).map(|(_, byte)| byte);
    changed.zip(key).for_each(|(byte, change)| *byte ^= change);
    forged[80..].copy_from_slice(&written[80..]);
    forge_loads(&[&filter.repeat(n_modules.into())[..], &forged].concat(), 1, |_| ())
}

/// The keys and the capacity of each filter in the bytes of a scalable one.
pub fn loads_of(scalable: &[u8], n_filters: usize) -> Vec<[u64; 2]> {
    let mut loads = Vec::new();
    forge_loads(scalable, n_filters, |found| loads = found.to_vec());
    loads
}

/// `scalable` with other keys and capacities, and their checksum and the footer's corrected.
pub fn forge_loads(scalable: &[u8], n_filters: usize, change: impl FnOnce(&mut [[u64; 2]])) -> Vec<u8> {
    let end = scalable.len() - 64 - 8;
    let (filters, loads) = scalable[..end].split_at(end - 16 * n_filters);
    let words: Vec<u64> = loads.as_chunks().0.iter().copied().map(u64::from_le_bytes).collect();
    let mut loads = words.as_chunks().0.to_vec();
    change(&mut loads);
    let loads: Vec<u8> = loads.as_flattened().iter().flat_map(|word| word.to_le_bytes()).collect();
    let checksum = xxh64(&loads, 0).to_le_bytes();
    forge_footer(&[filters, &loads, &checksum, &scalable[end + 8..]].concat(), 0, &[])
}

/// Corrects the checksum of a footer.
fn sign(footer: &mut [u8; 64]) {
    let checksum = xxh64(&footer[..48], 0);
    footer[48..56].copy_from_slice(&checksum.to_le_bytes());
}

/// Bytes that decode are written back unchanged, unless they have a shorter form, because they are whole blocks that can
/// share lanes, or one module in the form of several.
pub fn decoders_survive(bytes: &[u8], key: &[u8]) {
    let hash = hash_key(key, 0);
    let may_match = FilterPolicy::with_bits_per_key(10.0).expect("10 is in range").key_may_match(key, bytes);
    let (allocated, aligned) = allocated_by(|| AlignedBytes::copy_of(bytes).expect("enough memory"));
    // Whole blocks, plus the padding that aligns them to a cache line.
    assert!(allocated <= bytes.len().next_multiple_of(64).max(64) + 64 && aligned[..] == *bytes);
    let owned = OwnedView::from_compact(&aligned);
    match opened(bytes, BloomView::from_compact) {
        Err(error) => {
            assert!(may_match, "malformed bytes must not hide a key");
            assert_eq!(BloomView::compact_contains_hash(bytes, hash), Err(error));
            assert_eq!(owned.err(), Some(error));
        }
        Ok(view) => {
            let owned = owned.expect("the view opened");
            assert_eq!(owned.as_view().contains(key), may_match);
            assert!(*owned.as_view() == view);
            assert_eq!(view.contains(key), may_match);
            assert_eq!(BloomView::compact_contains_hash(bytes, hash), Ok(may_match));
            assert_eq!((view.seed(), view.known_keys()), (0, None));
            let filter = check_view(&view);
            let again = filter.to_compact();
            assert_same_or_shorter(&again, bytes, 1);
            assert!(BloomFilter::from_compact(&again).expect("our own bytes") == filter);
        }
    }
    let verified = opened(bytes, BloomView::from_standalone);
    match opened(bytes, BloomView::from_standalone_unverified) {
        Err(error) => assert_eq!(verified.err(), Some(error)),
        Ok(view) if view.verify().is_err() => {
            check_view(&view);
            assert!(verified.text().starts_with(DAMAGED));
            assert!(OwnedView::from_standalone(bytes).is_err());
            let (allocated, filter) = allocated_by(|| BloomFilter::from_standalone(bytes));
            assert!(allocated == 0 && filter.is_err());
        }
        Ok(view) => {
            let filter = check_view(&view);
            assert!(verified.expect("it is verified") == view && filter.as_view() == view);
            if filter.known_keys() == view.known_keys() {
                assert_same_or_shorter(&filter.to_standalone(), bytes, 64);
            }
            let without_keys = forge_footer(&filter.to_standalone(), 8, &[0xff; 8]);
            let copy = BloomFilter::from_standalone(bytes).expect("it is verified");
            assert_eq!(AtomicBloomFilter::from(copy).to_standalone(), without_keys);
        }
    }
}

/// Bytes that decode are written back unchanged. Only a successful decode allocates memory.
pub fn standard_decoder_survives(bytes: &[u8]) {
    let (allocated, filter) = allocated_by(|| StandardBloomFilter::from_standalone(bytes));
    let Ok(mut filter) = filter else {
        assert_eq!(allocated, 0);
        return;
    };
    // Whole blocks, plus the padding that aligns them to a cache line.
    assert!(allocated < filter.byte_len() + 64 && filter.byte_len() < bytes.len() + 64);
    assert!(filter.to_standalone() == bytes || filter.known_keys().is_none());
    assert!((0.0..=1.0).contains(&filter.fill_ratio()) && (0.0..=1.0).contains(&filter.estimated_fpr()));
    assert!(filter.fill_ratio() > 0.0 || filter.estimated_keys().map(|estimate| estimate.keys) == Some(0));
    let mut united = filter.clone();
    assert!(united.union_with(&filter).is_ok() && united == filter);
    for hash in (0..64).map(bloomline::mix) {
        let found = filter.contains_hash(hash);
        assert_eq!(filter.insert_hash(hash), !found);
        assert!(filter.contains_hash(hash));
    }
}

/// Bytes that decode are written back unchanged. Only a successful decode allocates memory.
pub fn counting_decoder_survives(bytes: &[u8]) {
    let (allocated, filter) = allocated_by(|| CountingBloomFilter::from_standalone(bytes));
    let Ok(mut filter) = filter else {
        assert_eq!(allocated, 0);
        return;
    };
    // Counters and bits, plus the padding that aligns each to a cache line.
    assert!(allocated < filter.byte_len() + 2 * 64);
    assert_eq!(4 * filter.byte_len(), 5 * (bytes.len() - 64));
    assert!(filter.to_standalone() == bytes || filter.as_filter().known_keys().is_none());
    let before = filter.clone();
    for hash in (0..64).map(bloomline::mix) {
        let count = filter.count_hash(hash);
        assert_eq!(filter.contains_hash(hash), count != 0);
        assert_eq!(filter.insert_hash(hash), count == 0);
        assert_eq!(filter.count_hash(hash), (count + 1).min(15));
    }
    for hash in (0..64).map(bloomline::mix) {
        assert!(filter.remove_hash(hash));
    }
    assert!(filter == before || filter.saturated_counters() > before.saturated_counters());
}

/// Only a successful decode allocates memory. Bytes that decode are written back, and the filter can grow.
pub fn scalable_decoder_survives(bytes: &[u8]) {
    let (allocated, filter) = allocated_by(|| ScalableBloomFilter::from_standalone(bytes));
    let Ok(mut filter) = filter else {
        assert_eq!(allocated, 0);
        return;
    };
    let n_filters = filter.filters().len();
    let n_modules = n_filters * filter.filters()[0].n_modules();
    // The blocks, the padding that aligns them to a cache line, and the lists of filters and of their keys, which have room
    // for four at least.
    let of_filter = 80 + 2 * size_of::<BloomFilter>();
    assert!(
        allocated < filter.byte_len() + of_filter * n_filters.max(4),
        "{allocated} bytes for {}",
        filter.byte_len()
    );
    // Lanes that the blocks of short filters share are stored up to eight times.
    assert!(n_modules * 72 + n_filters * 16 <= bytes.len());
    assert!(filter.byte_len() < bytes.len() + n_modules * 4096);
    let again = filter.to_standalone();
    assert!(again.len() <= bytes.len());
    assert!(ScalableBloomFilter::from_standalone(&again).expect("our own bytes") == filter);
    assert!((0.0..=1.0).contains(&filter.estimated_fpr()));

    let byte_len = filter.byte_len();
    for hash in (0..64).map(bloomline::mix) {
        let (found, keys) = (filter.contains_hash(hash), filter.inserted_keys());
        assert_eq!(filter.insert_hash(hash), !found);
        assert_eq!(filter.inserted_keys(), keys.saturating_add((!found).into()));
        assert!(filter.contains_hash(hash));
        if filter.filters().len() > n_filters {
            // Up to 16 times the keys, and slightly more bits per key.
            assert!(filter.byte_len() <= 40 * (byte_len + 64));
            break;
        }
    }
}

/// A frontier that decodes is written back, and its items are popped in the order of the bytes.
pub fn frontier_decoder_survives(bytes: &[u8]) {
    let (allocated, frontier) = allocated_by(|| Frontier::<Vec<u8>>::from_standalone(bytes));
    // An item has at least 8 bytes encoded and 24 in memory. The lanes of a short filter are stored up to eight times.
    assert!(allocated <= 8 * bytes.len() + 256, "{allocated} bytes for {}", bytes.len());
    let Ok(mut frontier) = frontier else { return };
    assert!(frontier.accepted() >= frontier.len() as u64 && frontier.len() <= bytes.len() / 8);
    let again = frontier.to_standalone();
    assert!(again.len() <= bytes.len());
    assert!(Frontier::<Vec<u8>>::from_standalone(&again).expect("our own bytes").iter().eq(frontier.iter()));
    let mut at = 0;
    while let Some(item) = frontier.pop() {
        assert!(bytes[at..].starts_with(&(item.len() as u64).to_le_bytes()));
        assert!(bytes[at + 8..].starts_with(&item));
        at += 8 + item.len();
        assert!(!frontier.insert(item), "visited twice");
    }
}

/// Opens a view and asserts that this allocates nothing.
fn opened<'a, E>(
    bytes: &'a [u8],
    open: impl FnOnce(&'a [u8]) -> Result<BloomView<'a>, E>,
) -> Result<BloomView<'a>, E> {
    let (allocated, view) = allocated_by(|| open(bytes));
    assert_eq!(allocated, 0);
    view
}

/// Checks the view, and returns the filter that it shows.
fn check_view(view: &BloomView<'_>) -> BloomFilter {
    let (allocated, filter) = allocated_by(|| view.to_filter().unwrap());
    // The blocks, plus the padding that aligns them to a cache line.
    assert!(allocated < filter.byte_len() + 64, "{allocated} bytes for {}", filter.byte_len());
    assert_eq!((filter.sizing(), filter.seed()), (view.sizing(), view.seed()));
    let fill = view.fill_ratio();
    assert_eq!((fill, view.estimated_fpr()), (filter.fill_ratio(), filter.estimated_fpr()));
    assert_eq!(view.estimated_keys(), filter.estimated_keys());
    // A count of zero keys is ignored if any bit is set.
    assert_eq!(filter.known_keys(), view.known_keys().filter(|&keys| keys != 0 || fill == 0.0));
    assert!((0.0..=1.0).contains(&fill) && (0.0..=1.0).contains(&filter.estimated_fpr()));
    assert!(fill > 0.0 || filter.estimated_keys().map(|estimate| estimate.keys) == Some(0));
    assert_eq!(filter.as_view().estimated_intersection(&filter), Ok(filter.estimated_keys()));
    let n_modules = view.n_modules();
    assert_eq!(view.to_folded(view.n_blocks() / n_modules).map(|folded| folded.n_blocks()), Ok(n_modules));

    let mut found = [false; 64];
    let hashes: [u64; 64] = core::array::from_fn(|i| bloomline::mix(i as u64));
    view.contains_batch(&hashes, &mut found);
    let mut bitmap = [0; 8];
    view.contains_bitmap(&hashes, &mut bitmap);
    assert!((0..64).all(|i| (bitmap[i / 8] >> (i % 8) & 1 == 1) == found[i]));
    for n_modules in 1..=n_modules {
        let first = view.first_modules(n_modules).expect("in range");
        assert!(hashes.iter().zip(&found).all(|(hash, found)| first.contains_hash(*hash) || !found));
        assert!(first.n_modules() == n_modules && first.to_filter().unwrap().as_view() == first);
        assert!(first.verify().is_ok() || view.verify().is_err());
    }
    let (mut grown, reference) = (filter.clone(), Reference::of(&filter));
    for (&hash, &found) in hashes.iter().zip(&found) {
        view.prefetch(hash);
        assert_eq!([view.contains_hash(hash), reference.contains(hash)], [found; 2]);
        assert!(grown.contains_hash(hash) || !found);
        assert_eq!(
            !grown.contains_hash(hash),
            grown.insert_hash(hash),
            "an insert changes bits exactly if the key was absent"
        );
        assert!(grown.contains_hash(hash));
    }
    filter
}

fn assert_same_or_shorter(again: &[u8], bytes: &[u8], trailer: usize) {
    let is_in_form_of_modules = bytes.ends_with(b"\x89blmod\r\n") && again.ends_with(b"\x89bloom\r\n");
    let has_shorter_form =
        (again.len() < 64 * 8 + trailer || is_in_form_of_modules) && again.len() < bytes.len();
    assert!(again == bytes || has_shorter_form, "{} bytes became {}", bytes.len(), again.len());
}
