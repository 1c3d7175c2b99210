//! `bloomline_filter_t`: owned and mutable.

use core::ffi::c_void;
use core::mem::{self, MaybeUninit};
use core::ptr;

use bloomline_core::BloomFilter;

use crate::buffer::{allocated_with_length, fill, given, lent, lent_bytes};
use crate::error::{Error, Status, or_record, status_of};

/// A set of keys that answers "certainly not in" or "may be in", with one cache line touched per lookup.
///
/// Keys cannot be taken out. Memory is fixed at construction: with more keys than it was sized for, the filter stays
/// correct and answers "may be in" more often.
pub struct Filter(BloomFilter);

impl Filter {
    pub(crate) fn boxed(filter: BloomFilter) -> Option<Box<Self>> {
        Some(Box::new(Self(filter)))
    }
}

/// An empty filter that answers "may be in" for at most a share `fpr` of missing keys, once it holds `expected_keys`
/// distinct keys. 1 % takes 9.9 bits per key.
///
/// Null if `fpr` is not between 1.263e-8 and 1 (BLOOMLINE_SIZING), or memory cannot be had (BLOOMLINE_OUT_OF_MEMORY).
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_filter_with_fpr(expected_keys: usize, fpr: f64) -> Option<Box<Filter>> {
    or_record(None, || Ok(Filter::boxed(BloomFilter::with_fpr(expected_keys, fpr)?)))
}

/// An empty filter with `bits_per_key` for each of `expected_keys` distinct keys, rounded up to whole blocks of 64
/// bytes, and the k that is best for it.
///
/// Null if `bits_per_key` is not above 0 and at most 64 (BLOOMLINE_SIZING), or memory cannot be had
/// (BLOOMLINE_OUT_OF_MEMORY).
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_filter_with_bits_per_key(
    expected_keys: usize,
    bits_per_key: f64,
) -> Option<Box<Filter>> {
    or_record(None, || Ok(Filter::boxed(BloomFilter::with_bits_per_key(expected_keys, bits_per_key)?)))
}

/// An empty filter of `n_blocks` blocks of 64 bytes, with `k` probes per key, 1 to 16.
///
/// Null if `n_blocks` or `k` is out of range (BLOOMLINE_SIZING), or memory cannot be had (BLOOMLINE_OUT_OF_MEMORY).
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_filter_with_blocks(n_blocks: usize, k: u32) -> Option<Box<Filter>> {
    or_record(None, || Ok(Filter::boxed(BloomFilter::with_blocks(n_blocks, k)?)))
}

/// Gives an empty filter another seed than 0: its keys are then placed differently, so that what one filter takes for
/// present another does not.
///
/// BLOOMLINE_NOT_EMPTY if keys have been inserted since the filter was made or cleared; nothing is changed then.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_filter_set_seed(filter: Option<&mut Filter>, seed: u64) -> Status {
    status_of(|| {
        let Filter(filter) = given(filter, "filter")?;
        if filter.known_keys() != Some(0) {
            return Err(Error::NotEmpty);
        }
        let stand_in = BloomFilter::with_blocks(1, 1)?;
        *filter = mem::replace(filter, stand_in).with_seed(seed);
        Ok(())
    })
}

/// A copy, to be freed on its own. Null if `filter` is null.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_filter_clone(filter: Option<&Filter>) -> Option<Box<Filter>> {
    or_record(None, || Ok(Filter::boxed(given(filter, "filter")?.0.clone())))
}

/// Frees a filter. Null is fine.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_filter_free(filter: Option<Box<Filter>>) {
    drop(filter);
}

/// Inserts the key of `length` bytes; whether that changed a bit. If not, `bloomline_filter_contains` was true already.
///
/// With a null filter, or a null key whose length is not 0, nothing is inserted: false, and `bloomline_last_status` is
/// then BLOOMLINE_INVALID_ARGUMENT. Lookups with such arguments are true.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bloomline_filter_insert(
    filter: Option<&mut Filter>,
    key: *const c_void,
    length: usize,
) -> bool {
    or_record(false, || {
        // SAFETY: the caller lends the bytes of a key for the call.
        let key = unsafe { lent_bytes(key, length, "key") }?;
        Ok(given(filter, "filter")?.0.insert(key))
    })
}

/// `bloomline_filter_insert` by the key's hash, from `bloomline_hash_key` with the filter's seed. Any other hash will
/// do if all its 64 bits are well mixed and it is the same for every insert and lookup; `bloomline_mix` repairs weak
/// ones.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_filter_insert_hash(filter: Option<&mut Filter>, hash: u64) -> bool {
    or_record(false, || Ok(given(filter, "filter")?.0.insert_hash(hash)))
}

/// Inserts `n` keys by their hashes: faster than one by one. `hashes` may be null if `n` is 0.
///
/// BLOOMLINE_INVALID_ARGUMENT if a pointer is null or not aligned; nothing is inserted then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bloomline_filter_insert_batch(
    filter: Option<&mut Filter>,
    hashes: *const u64,
    n: usize,
) -> Status {
    status_of(|| {
        // SAFETY: the caller lends `n` hashes for the call, and any bits are one.
        let hashes = unsafe { lent(hashes, n, "hashes") }?;
        given(filter, "filter")?.0.insert_batch(hashes);
        Ok(())
    })
}

/// Whether the key of `length` bytes may have been inserted: false is certain.
///
/// For a key never inserted it is true with the probability that `bloomline_filter_estimated_fpr` tells. True for a
/// null filter, and for a null key whose length is not 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bloomline_filter_contains(
    filter: Option<&Filter>,
    key: *const c_void,
    length: usize,
) -> bool {
    or_record(true, || {
        // SAFETY: the caller lends the bytes of a key for the call.
        let key = unsafe { lent_bytes(key, length, "key") }?;
        Ok(given(filter, "filter")?.0.contains(key))
    })
}

/// `bloomline_filter_contains` by the key's hash. See `bloomline_filter_insert_hash`.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_filter_contains_hash(filter: Option<&Filter>, hash: u64) -> bool {
    or_record(true, || Ok(given(filter, "filter")?.0.contains_hash(hash)))
}

/// Looks up `n` keys by their hashes: `found[i]` becomes whether the key of `hashes[i]` may have been inserted. Faster
/// than one by one from about eight keys on. `found` must not overlap `hashes`; both may be null if `n` is 0.
///
/// BLOOMLINE_INVALID_ARGUMENT if a pointer is null or not aligned; all of `found`, if it is there, is then true.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bloomline_filter_contains_batch(
    filter: Option<&Filter>,
    hashes: *const u64,
    n: usize,
    found: *mut bool,
) -> Status {
    let filter =
        filter.map(|filter| |hashes: &[u64], found: &mut [bool]| filter.0.contains_batch(hashes, found));
    // SAFETY: this function's contract is the same.
    unsafe { look_up_batch(given(filter, "filter"), hashes, n, found) }
}

/// # Safety
///
/// `hashes` is null or lends `n` hashes, `found` is null or room for `n` answers, and they do not overlap.
pub(crate) unsafe fn look_up_batch(
    contains_batch: Result<impl FnOnce(&[u64], &mut [bool]), Error>,
    hashes: *const u64,
    n: usize,
    found: *mut bool,
) -> Status {
    status_of(|| {
        if n > isize::MAX as usize / size_of::<u64>() {
            return Err(Error::TooLong("hashes"));
        }
        let found = if n == 0 {
            &mut []
        } else if found.is_null() {
            return Err(Error::Null("found"));
        } else {
            // True until known better, and a slice has no room for what C left unset.
            // SAFETY: room for `n` bytes.
            unsafe { ptr::write_bytes(found, 1, n) };
            // SAFETY: `n` bools, written just now, that nothing else refers to during the call.
            unsafe { core::slice::from_raw_parts_mut(found, n) }
        };
        // SAFETY: the caller lends `n` hashes for the call, and any bits are one.
        let hashes = unsafe { lent(hashes, n, "hashes") }?;
        contains_batch?(hashes, found);
        Ok(())
    })
}

/// Starts loading the cache line of a hash, to be looked up or inserted a little later: with many filters to ask, the
/// waits for memory then overlap. Nothing for a null filter.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_filter_prefetch(filter: Option<&Filter>, hash: u64) {
    if let Some(Filter(filter)) = filter {
        filter.prefetch(hash);
    }
}

/// Inserts all keys of `other` into `filter`, bit for bit as if one by one. They may be the same.
///
/// BLOOMLINE_MISMATCH if the filters differ in blocks, k or seed; nothing is changed then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bloomline_filter_union_with(filter: *mut Filter, other: *const Filter) -> Status {
    // SAFETY: this function's contract is the same.
    unsafe { combine(filter, other, |filter, other| Ok(filter.union_with(other)?)) }
}

/// Keeps in `filter` what both may contain. Keys that are in both stay. They may be the same.
///
/// BLOOMLINE_MISMATCH if the filters differ in blocks, k or seed; nothing is changed then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bloomline_filter_intersect_with(
    filter: *mut Filter,
    other: *const Filter,
) -> Status {
    // SAFETY: this function's contract is the same.
    unsafe { combine(filter, other, |filter, other| Ok(filter.intersect_with(other)?)) }
}

/// # Safety
///
/// Both are null or filters, and during the call nothing else uses the first or changes the other.
unsafe fn combine(
    filter: *mut Filter,
    other: *const Filter,
    combine: impl FnOnce(&mut BloomFilter, &BloomFilter) -> Result<(), Error>,
) -> Status {
    status_of(|| {
        if filter.is_null() || other.is_null() {
            return Err(Error::Null("filter"));
        }
        // With itself nothing changes, and there must not be two references.
        if ptr::eq(filter, other) {
            return Ok(());
        }
        // SAFETY: two filters, each valid by this function's contract.
        let (Filter(filter), Filter(other)) = unsafe { (&mut *filter, &*other) };
        combine(filter, other)
    })
}

/// Makes the filter `factor` times smaller: bit for bit the filter that would have been built with so many fewer
/// blocks. Size for the worst case, then fold to what was needed.
///
/// BLOOMLINE_SIZING if `factor` does not divide the number of blocks, BLOOMLINE_OUT_OF_MEMORY if memory for the folded
/// filter cannot be had; nothing is changed then.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_filter_fold(filter: Option<&mut Filter>, factor: usize) -> Status {
    status_of(|| Ok(given(filter, "filter")?.0.fold(factor)?))
}

/// Folds as far as the estimated false-positive rate stays at or below `fpr`: not at all if it is above that already.
/// How far depends on the divisors of the number of blocks; a power of two leaves the most choice.
///
/// BLOOMLINE_SIZING if `fpr` is not between 0 and 1, BLOOMLINE_OUT_OF_MEMORY if memory for the folded filter cannot be
/// had; nothing is changed then.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_filter_shrink_to_fpr(filter: Option<&mut Filter>, fpr: f64) -> Status {
    status_of(|| Ok(given(filter, "filter")?.0.shrink_to_fpr(fpr)?))
}

/// Takes out all keys; size, k and seed stay.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_filter_clear(filter: Option<&mut Filter>) -> Status {
    status_of(|| {
        given(filter, "filter")?.0.clear();
        Ok(())
    })
}

/// Probes per key, 1 to 16. 0 for a null filter.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_filter_k(filter: Option<&Filter>) -> u32 {
    or_record(0, || Ok(given(filter, "filter")?.0.k()))
}

/// Blocks of 64 bytes. 0 for a null filter.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_filter_n_blocks(filter: Option<&Filter>) -> usize {
    or_record(0, || Ok(given(filter, "filter")?.0.n_blocks()))
}

/// Bytes that the blocks take in memory. 0 for a null filter.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_filter_size_bytes(filter: Option<&Filter>) -> usize {
    or_record(0, || Ok(given(filter, "filter")?.0.size_bytes()))
}

/// What keys are hashed with: 0 unless `bloomline_filter_set_seed` or standalone bytes said otherwise. 0 for a null
/// filter.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_filter_seed(filter: Option<&Filter>) -> u64 {
    or_record(0, || Ok(given(filter, "filter")?.0.seed()))
}

/// Share of bits that are set, 0 to 1. Best filters are a little below one half full. Reads the whole filter. 1 for a
/// null filter, as it contains everything.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_filter_fill_ratio(filter: Option<&Filter>) -> f64 {
    or_record(1.0, || Ok(given(filter, "filter")?.0.fill_ratio()))
}

/// How many distinct keys were inserted, estimated from the bits: within 1 % from some thousand keys on, while the
/// filter is less than half full. UINT64_MAX where the filter is too full to tell, and for a null filter. Reads the
/// whole filter.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_filter_estimated_keys(filter: Option<&Filter>) -> u64 {
    or_record(u64::MAX, || Ok(given(filter, "filter")?.0.estimated_keys().keys().unwrap_or(u64::MAX)))
}

/// The probability that a key never inserted is taken for present: exact for the bits as they are. Reads the whole
/// filter. 1 for a null filter.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_filter_estimated_fpr(filter: Option<&Filter>) -> f64 {
    or_record(1.0, || Ok(given(filter, "filter")?.0.estimated_fpr()))
}

/// Bytes of the filter's compact form. 0 for a null filter.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_filter_compact_size(filter: Option<&Filter>) -> usize {
    or_record(0, || Ok(given(filter, "filter")?.0.compact_size()))
}

/// Writes the filter's compact form to `buffer`, and its length to `length`: the blocks and one byte, for use inside a
/// container that has lengths and checksums of its own, as an SSTable has. The seed is not in it.
/// `bloomline_view_from_compact` reads it in place.
///
/// BLOOMLINE_BUFFER_TOO_SMALL if `capacity` is less than that length: `length` is then what is needed, and the buffer
/// as it was. `buffer` may be null if `capacity` is 0. BLOOMLINE_INVALID_ARGUMENT if another pointer is null,
/// BLOOMLINE_OUT_OF_MEMORY if memory cannot be had, as much as the filter has; `length` is then 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bloomline_filter_write_compact(
    filter: Option<&Filter>,
    buffer: *mut c_void,
    capacity: usize,
    length: Option<&mut MaybeUninit<usize>>,
) -> Status {
    // SAFETY: the caller says that `buffer` is null or has room for `capacity` bytes.
    status_of(|| unsafe { fill(buffer, capacity, length, || compact(&given(filter, "filter")?.0)) })
}

/// The filter's compact form in memory from malloc, for the caller to free; its length goes to `length`. See
/// `bloomline_filter_write_compact`.
///
/// Null if a pointer is null (BLOOMLINE_INVALID_ARGUMENT), or memory cannot be had (BLOOMLINE_OUT_OF_MEMORY); `length`
/// is then 0.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_filter_to_compact(
    filter: Option<&Filter>,
    length: Option<&mut MaybeUninit<usize>>,
) -> *mut c_void {
    or_record(ptr::null_mut(), || allocated_with_length(length, || compact(&given(filter, "filter")?.0)))
}

/// Bytes of the filter's standalone form. 0 for a null filter.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_filter_standalone_size(filter: Option<&Filter>) -> usize {
    or_record(0, || Ok(given(filter, "filter")?.0.compact_size() + MORE_BYTES))
}

/// Writes the filter's standalone form to `buffer`, and its length to `length`: the blocks and a footer of 64 bytes
/// with version, k, seed and checksums, for files and networks. `bloomline_view_from_standalone` reads it in place.
///
/// Errors are those of `bloomline_filter_write_compact`, and BLOOMLINE_HASH_CHANGED if the library was built with
/// another hash than the format's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bloomline_filter_write_standalone(
    filter: Option<&Filter>,
    buffer: *mut c_void,
    capacity: usize,
    length: Option<&mut MaybeUninit<usize>>,
) -> Status {
    // SAFETY: the caller says that `buffer` is null or has room for `capacity` bytes.
    status_of(|| unsafe { fill(buffer, capacity, length, || standalone(&given(filter, "filter")?.0)) })
}

/// The filter's standalone form in memory from malloc, for the caller to free; its length goes to `length`. See
/// `bloomline_filter_write_standalone`.
///
/// Null if a pointer is null (BLOOMLINE_INVALID_ARGUMENT), memory cannot be had (BLOOMLINE_OUT_OF_MEMORY), or the
/// library was built with another hash than the format's (BLOOMLINE_HASH_CHANGED); `length` is then 0.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_filter_to_standalone(
    filter: Option<&Filter>,
    length: Option<&mut MaybeUninit<usize>>,
) -> *mut c_void {
    or_record(ptr::null_mut(), || allocated_with_length(length, || standalone(&given(filter, "filter")?.0)))
}

/// What the format's standalone form has more than the compact one.
const MORE_BYTES: usize = 64 - 1;

fn compact(filter: &BloomFilter) -> Result<Vec<u8>, Error> {
    let mut bytes = with_room(filter.compact_size())?;
    filter.write_compact(&mut bytes);
    Ok(bytes)
}

fn standalone(filter: &BloomFilter) -> Result<Vec<u8>, Error> {
    let mut bytes = with_room(filter.compact_size() + MORE_BYTES)?;
    filter.write_standalone(&mut bytes)?;
    Ok(bytes)
}

/// Rust aborts where a vector cannot grow, C is told.
pub(crate) fn with_room(bytes: usize) -> Result<Vec<u8>, Error> {
    let mut vec = Vec::new();
    vec.try_reserve_exact(bytes).map_err(|_| Error::OutOfMemory { bytes })?;
    Ok(vec)
}
