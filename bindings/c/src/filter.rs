//! `bloomline_filter_t`: owned and mutable.

use core::ffi::c_void;
use core::mem::{self, MaybeUninit};
use core::ptr;
use std::io;

use bloomline_core::{BloomFilter, Sizing};

use crate::buffer::{allocated_with_length, borrowed, boxed, fill, not_null, overwritten, with_key};
use crate::error::{Error, Status, or_record, status_of};

/// A set of keys. A lookup answers "definitely absent" or "possibly present", and touches one cache line.
///
/// At false-positive rates below 0.05%, filters are divided into two modules, which must both have a key, because they
/// then need fewer bits. Lookups still touch one cache line for nearly all absent keys, but two for present keys.
///
/// Keys cannot be removed. Memory is fixed at construction. With more keys than it was sized for, the filter stays
/// correct, but its false-positive rate rises.
pub struct Filter(pub(crate) BloomFilter);

/// Creates an empty filter whose false-positive rate is at most `fpr` once it holds `expected_keys` distinct keys. A
/// rate of 1% needs 9.9 bits per key. The size is rounded up, by at most 1% or one block, to a number of blocks that
/// has many divisors, so that `bloomline_filter_fold` can at least halve it.
///
/// Returns null if `fpr` is not in [5.432e-13, 1) or the filter is larger than the address space (BLOOMLINE_SIZING).
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_filter_with_fpr(expected_keys: usize, fpr: f64) -> Option<Box<Filter>> {
    or_record(None, || boxed(|| Ok(Filter(BloomFilter::with_fpr(expected_keys as u64, fpr)?))))
}

/// `bloomline_filter_with_fpr` with at most `most_modules` modules, 1 to 16. Pass 1 if most lookups are of present keys,
/// so that each touches one cache line, or 4 for the fewest bits.
///
/// Also returns null if `most_modules` is not 1 to 16, or `fpr` is out of reach for as few modules, which is below
/// 1.263e-8 for one (BLOOMLINE_SIZING).
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_filter_with_fpr_within(
    expected_keys: usize,
    fpr: f64,
    most_modules: usize,
) -> Option<Box<Filter>> {
    let sizing = || Sizing::for_fpr_within(expected_keys as u64, fpr, most_modules);
    or_record(None, || boxed(|| Ok(Filter(BloomFilter::with_sizing(sizing()?.rounded_to_fold())?))))
}

/// Creates an empty filter with `bits_per_key` for each of `expected_keys` distinct keys, rounded up to whole blocks of
/// 64 bytes, and the best k for that size.
///
/// Returns null if `bits_per_key` is not in (0, 64] or the filter is larger than the address space (BLOOMLINE_SIZING).
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_filter_with_bits_per_key(
    expected_keys: usize,
    bits_per_key: f64,
) -> Option<Box<Filter>> {
    or_record(None, || {
        boxed(|| Ok(Filter(BloomFilter::with_bits_per_key(expected_keys as u64, bits_per_key)?)))
    })
}

/// Creates an empty filter of `n_blocks` blocks of 64 bytes in one module, with `k` probes per key, from 1 to 16.
///
/// Returns null if `n_blocks` or `k` is out of range (BLOOMLINE_SIZING).
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_filter_with_blocks(n_blocks: usize, k: u32) -> Option<Box<Filter>> {
    or_record(None, || boxed(|| Ok(Filter(BloomFilter::with_blocks(n_blocks, k)?))))
}

/// Sets the seed of an empty filter, 0 by default. Filters with different seeds place keys differently, which makes
/// their false positives independent.
///
/// Returns BLOOMLINE_NOT_EMPTY if keys have been inserted since the filter was created or cleared, or
/// BLOOMLINE_OUT_OF_MEMORY if a little memory cannot be allocated. The filter is then unchanged.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_filter_set_seed(filter: Option<&mut Filter>, seed: u64) -> Status {
    status_of(|| {
        let Filter(filter) = not_null(filter, "filter")?;
        if filter.known_keys() != Some(0) {
            return Err(Error::NotEmpty);
        }
        let stand_in = BloomFilter::with_blocks(1, 1)?;
        *filter = mem::replace(filter, stand_in).with_seed(seed)?;
        Ok(())
    })
}

/// Returns a copy of the filter, which you free separately.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_filter_clone(filter: Option<&Filter>) -> Option<Box<Filter>> {
    or_record(None, || boxed(|| Ok(Filter(not_null(filter, "filter")?.0.as_view().to_filter()?))))
}

/// Frees a filter. Does nothing if `filter` is null.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_filter_free(filter: Option<Box<Filter>>) {
    drop(filter);
}

/// Returns the hash of the key of `length` bytes under the filter's seed, for the functions that end in `_hash` and
/// `_batch`. `bloomline_hash_key` is for many filters with one seed.
///
/// Returns 0 for a null filter, and for a null key whose length is not 0. `bloomline_last_status` is then
/// BLOOMLINE_INVALID_ARGUMENT.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bloomline_filter_hash_key(
    filter: Option<&Filter>,
    key: *const c_void,
    length: usize,
) -> u64 {
    // SAFETY: this function's contract is the same.
    unsafe { with_key(0, key, length, |key| Ok(not_null(filter, "filter")?.0.hash_key(key))) }
}

/// Inserts the key of `length` bytes. Returns whether that changed a bit. If not, the key was possibly present before.
///
/// Pass an integer as a key of 8 bytes, its value as a little-endian uint64_t, negative ones in two's complement. The
/// interfaces for Rust, Python and other languages hash the same bytes, whatever the integer's type.
///
/// With a null filter, or a null key whose length is not 0, inserts nothing, returns false, and
/// `bloomline_last_status` is then BLOOMLINE_INVALID_ARGUMENT. Lookups with such arguments return true.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bloomline_filter_insert(
    filter: Option<&mut Filter>,
    key: *const c_void,
    length: usize,
) -> bool {
    // SAFETY: this function's contract is the same.
    unsafe { with_key(false, key, length, |key| Ok(not_null(filter, "filter")?.0.insert(key))) }
}

/// `bloomline_filter_insert` by the key's hash, as `bloomline_filter_hash_key` returns it. Any other 64-bit hash works
/// if all its bits are well mixed and every insert and lookup uses the same hash. `bloomline_mix` makes a weak hash
/// good enough.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_filter_insert_hash(filter: Option<&mut Filter>, hash: u64) -> bool {
    or_record(false, || Ok(not_null(filter, "filter")?.0.insert_hash(hash)))
}

/// Inserts `n` keys by their hashes, faster than one by one. `hashes` may be null if `n` is 0.
///
/// Returns BLOOMLINE_INVALID_ARGUMENT if a pointer is null or misaligned. Nothing is then inserted.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bloomline_filter_insert_batch(
    filter: Option<&mut Filter>,
    hashes: *const u64,
    n: usize,
) -> Status {
    status_of(|| {
        // SAFETY: the caller keeps `n` hashes readable and unchanged during the call, and any bits are valid.
        let hashes = unsafe { borrowed(hashes, n, "hashes") }?;
        not_null(filter, "filter")?.0.insert_batch(hashes);
        Ok(())
    })
}

/// Returns whether the key of `length` bytes is possibly present. False means definitely absent.
///
/// For a key never inserted, returns true with the probability that `bloomline_filter_estimated_fpr` returns. Returns
/// true for a null filter, and for a null key whose length is not 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bloomline_filter_contains(
    filter: Option<&Filter>,
    key: *const c_void,
    length: usize,
) -> bool {
    // SAFETY: this function's contract is the same.
    unsafe { with_key(true, key, length, |key| Ok(not_null(filter, "filter")?.0.contains(key))) }
}

/// `bloomline_filter_contains` by the key's hash. See `bloomline_filter_insert_hash`.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_filter_contains_hash(filter: Option<&Filter>, hash: u64) -> bool {
    or_record(true, || Ok(not_null(filter, "filter")?.0.contains_hash(hash)))
}

/// Looks up `n` keys by their hashes and sets `found[i]` to whether the key of `hashes[i]` is possibly present. This is
/// faster than one by one from about 16 keys on. `found` must not overlap `hashes`. Both may be null if `n` is 0.
///
/// Returns BLOOMLINE_INVALID_ARGUMENT if a pointer is null or misaligned. All of `found`, unless it is null, is then
/// true.
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
    unsafe { look_up_batch(not_null(filter, "filter"), (hashes, "hashes"), n, found) }
}

/// # Safety
///
/// `asked`, hashes or views, is null or points to `n` valid ones, `found` is null or points to room for `n` bools, and
/// they do not overlap.
pub(crate) unsafe fn look_up_batch<T>(
    contains_batch: Result<impl FnOnce(&[T], &mut [bool]), Error>,
    (asked, what): (*const T, &'static str),
    n: usize,
    found: *mut bool,
) -> Status {
    status_of(|| {
        if n > isize::MAX as usize / size_of::<T>() {
            return Err(Error::TooLong(what));
        }
        // True first, so that an error below hides no key.
        // SAFETY: `found` has room for `n` bools by this function's contract.
        let found = unsafe { overwritten(found, n, true, "found") }?;
        // SAFETY: the caller keeps what is asked readable and unchanged during the call, and it is valid.
        let asked = unsafe { borrowed(asked, n, what) }?;
        contains_batch?(asked, found);
        Ok(())
    })
}

/// Starts loading the first cache line of a hash that you will look up or insert a little later. Prefetching in many
/// filters before probing them overlaps their cache misses. Does nothing for a null filter.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_filter_prefetch(filter: Option<&Filter>, hash: u64) {
    if let Some(Filter(filter)) = filter {
        filter.prefetch(hash);
    }
}

/// Inserts all keys of `other` into `filter`. If both have as many blocks, the bits are the same as if the keys had been
/// inserted one by one. If `other` has fewer, its blocks are repeated, so its keys fill `filter` as many times as it is
/// larger. `filter` and `other` may be the same.
///
/// Returns BLOOMLINE_MISMATCH if the number of blocks of `other` does not divide the number of `filter`, or the filters
/// differ in modules, k or seed. `filter` is then unchanged.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bloomline_filter_union_with(filter: *mut Filter, other: *const Filter) -> Status {
    // SAFETY: this function's contract is the same.
    unsafe { combine(filter, other, |filter, other| Ok(filter.union_with(other)?)) }
}

/// Keeps in `filter` the keys that are possibly present in both filters. A key inserted into both is never lost.
/// `filter` and `other` may be the same.
///
/// Returns BLOOMLINE_MISMATCH as bloomline_filter_union_with does.
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
/// Each pointer is null or points to a filter, and during the call nothing else uses the first or changes the second.
unsafe fn combine(
    filter: *mut Filter,
    other: *const Filter,
    combine: impl FnOnce(&mut BloomFilter, &BloomFilter) -> Result<(), Error>,
) -> Status {
    status_of(|| {
        if filter.is_null() || other.is_null() {
            return Err(Error::Null("filter"));
        }
        // Combining a filter with itself changes nothing, and would need two references to it, one of them mutable.
        if ptr::eq(filter, other) {
            return Ok(());
        }
        // SAFETY: two filters, each valid by this function's contract.
        let (Filter(filter), Filter(other)) = unsafe { (&mut *filter, &*other) };
        combine(filter, other)
    })
}

/// Makes the filter `factor` times smaller. It is then, bit for bit, the filter that would have been built with
/// `factor` times fewer blocks. So you can size a filter for the worst case, then fold it to what was needed.
///
/// Returns BLOOMLINE_SIZING if `factor` does not divide the number of blocks of each module, or BLOOMLINE_OUT_OF_MEMORY
/// if memory for the folded filter cannot be allocated. The filter is then unchanged.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_filter_fold(filter: Option<&mut Filter>, factor: usize) -> Status {
    status_of(|| Ok(not_null(filter, "filter")?.0.fold(factor)?))
}

/// Folds the filter as far as its estimated false-positive rate stays at or below `fpr`. Does nothing if the rate is
/// already above `fpr`. How far a filter can be folded depends on the divisors of a module's number of blocks, so a
/// power of two leaves the most choice.
///
/// Returns BLOOMLINE_SIZING if `fpr` is not in (0, 1), or BLOOMLINE_OUT_OF_MEMORY if memory for the folded filter
/// cannot be allocated. The filter is then unchanged.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_filter_shrink_to_fpr(filter: Option<&mut Filter>, fpr: f64) -> Status {
    status_of(|| Ok(not_null(filter, "filter")?.0.shrink_to_fpr(fpr)?))
}

/// Removes all keys. Size, k and seed stay.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_filter_clear(filter: Option<&mut Filter>) -> Status {
    status_of(|| {
        not_null(filter, "filter")?.0.clear();
        Ok(())
    })
}

/// Returns the number of probes per key in each module, 1 to 16, or 0 for a null filter.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_filter_k(filter: Option<&Filter>) -> u32 {
    or_record(0, || Ok(not_null(filter, "filter")?.0.k()))
}

/// Returns the number of modules, 1 to 16, or 0 for a null filter. A lookup of a present key touches one cache line of
/// each module.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_filter_n_modules(filter: Option<&Filter>) -> usize {
    or_record(0, || Ok(not_null(filter, "filter")?.0.n_modules()))
}

/// Returns the number of blocks of 64 bytes of all modules, or 0 for a null filter.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_filter_n_blocks(filter: Option<&Filter>) -> usize {
    or_record(0, || Ok(not_null(filter, "filter")?.0.n_blocks()))
}

/// Returns the bytes of memory that the blocks need, or 0 for a null filter.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_filter_byte_len(filter: Option<&Filter>) -> usize {
    or_record(0, || Ok(not_null(filter, "filter")?.0.byte_len()))
}

/// Returns the seed that keys are hashed with, 0 unless it was set or read from standalone bytes. Returns 0 for a null
/// filter.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_filter_seed(filter: Option<&Filter>) -> u64 {
    or_record(0, || Ok(not_null(filter, "filter")?.0.seed()))
}

/// Returns the fraction of bits that are set, 0 to 1. With the best k and the keys that the filter was sized for, it is
/// a little below one half. Reads the whole filter. Returns 1 for a null filter, because lookups in it return true.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_filter_fill_ratio(filter: Option<&Filter>) -> f64 {
    or_record(1.0, || Ok(not_null(filter, "filter")?.0.fill_ratio()))
}

/// Returns the number of distinct keys inserted, estimated from the bits. The estimate is within 1% from a few thousand
/// keys on, while the filter is less than half full. Returns UINT64_MAX if the filter is too full for an estimate, and
/// for a null filter. Reads the whole filter.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_filter_estimated_keys(filter: Option<&Filter>) -> u64 {
    or_record(u64::MAX, || {
        let estimate = not_null(filter, "filter")?.0.estimated_keys();
        Ok(estimate.map_or(u64::MAX, |estimate| estimate.keys))
    })
}

/// Returns the probability that a lookup of a key never inserted returns true, exact for the bits as they are. Reads the
/// whole filter. Returns 1 for a null filter.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_filter_estimated_fpr(filter: Option<&Filter>) -> f64 {
    or_record(1.0, || Ok(not_null(filter, "filter")?.0.estimated_fpr()))
}

/// Returns the length in bytes of the filter's compact form, or 0 for a null filter. An insert can change it in a filter
/// of fewer than 64 blocks.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_filter_compact_len(filter: Option<&Filter>) -> usize {
    or_record(0, || Ok(not_null(filter, "filter")?.0.compact_len()))
}

/// Writes the filter's compact form to `buffer`, and its length to `length`. The compact form is the blocks and one
/// byte, for use inside a container that has lengths and checksums of its own, such as an SSTable. The seed is not
/// stored in it. `bloomline_view_from_compact` reads it in place.
///
/// Returns BLOOMLINE_BUFFER_TOO_SMALL if `capacity` is less than that length. `length` is then the capacity needed, and
/// the buffer is unchanged. `buffer` may be null if `capacity` is 0. Returns BLOOMLINE_INVALID_ARGUMENT if `filter` or
/// `length` is null, or BLOOMLINE_OUT_OF_MEMORY if temporary memory of the filter's size cannot be allocated. `length`
/// is then 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bloomline_filter_write_compact(
    filter: Option<&Filter>,
    buffer: *mut c_void,
    capacity: usize,
    length: Option<&mut MaybeUninit<usize>>,
) -> Status {
    // SAFETY: the caller passes a `buffer` that is null or has room for `capacity` bytes.
    status_of(|| unsafe { fill(buffer, capacity, length, || compact(&not_null(filter, "filter")?.0)) })
}

/// Returns the filter's compact form in memory that you free with `bloomline_free`, and writes its length to `length`.
/// See `bloomline_filter_write_compact`.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_filter_to_compact(
    filter: Option<&Filter>,
    length: Option<&mut MaybeUninit<usize>>,
) -> *mut c_void {
    or_record(ptr::null_mut(), || allocated_with_length(length, || compact(&not_null(filter, "filter")?.0)))
}

/// Returns the length in bytes of the filter's standalone form, or 0 for a null filter. An insert can change it in a
/// filter of fewer than 64 blocks.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_filter_standalone_len(filter: Option<&Filter>) -> usize {
    or_record(0, || Ok(not_null(filter, "filter")?.0.standalone_len()))
}

/// Writes the filter's standalone form to `buffer`, and its length to `length`. The standalone form is the blocks and a
/// footer of 64 bytes with version, k, seed and checksums, for files and networks. `bloomline_view_from_standalone`
/// reads it in place.
///
/// Returns the errors of `bloomline_filter_write_compact`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bloomline_filter_write_standalone(
    filter: Option<&Filter>,
    buffer: *mut c_void,
    capacity: usize,
    length: Option<&mut MaybeUninit<usize>>,
) -> Status {
    // SAFETY: the caller passes a `buffer` that is null or has room for `capacity` bytes.
    status_of(|| unsafe { fill(buffer, capacity, length, || standalone(&not_null(filter, "filter")?.0)) })
}

/// Returns the filter's standalone form in memory that you free with `bloomline_free`, and writes its length to
/// `length`. See `bloomline_filter_write_standalone`.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_filter_to_standalone(
    filter: Option<&Filter>,
    length: Option<&mut MaybeUninit<usize>>,
) -> *mut c_void {
    or_record(ptr::null_mut(), || {
        allocated_with_length(length, || standalone(&not_null(filter, "filter")?.0))
    })
}

fn compact(filter: &BloomFilter) -> Result<Vec<u8>, Error> {
    written(filter.compact_len(), |bytes| filter.write_compact(bytes))
}

fn standalone(filter: &BloomFilter) -> Result<Vec<u8>, Error> {
    written(filter.standalone_len(), |bytes| filter.write_standalone(bytes))
}

/// Returns what `write` writes, which is at most `room` bytes.
pub(crate) fn written(
    room: usize,
    write: impl FnOnce(&mut Vec<u8>) -> io::Result<()>,
) -> Result<Vec<u8>, Error> {
    let mut bytes = with_room(room)?;
    write(&mut bytes)?;
    Ok(bytes)
}

/// Returns an empty `Vec` with room for as many bytes. A `Vec` that cannot grow aborts the process, so reserve first.
pub(crate) fn with_room(bytes: usize) -> Result<Vec<u8>, Error> {
    let mut vec = Vec::new();
    vec.try_reserve_exact(bytes).map_err(|_| Error::OutOfMemory { bytes })?;
    Ok(vec)
}
