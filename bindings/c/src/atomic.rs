//! `bloomline_atomic_filter_t`: concurrent inserts and lookups.

use core::ffi::c_void;
use core::mem::{self, ManuallyDrop, MaybeUninit};
use core::ptr;

use bloomline_core::{AtomicBloomFilter, BloomFilter, StandaloneFooter};

use crate::buffer::{allocated_with_length, borrowed, borrowed_bytes, boxed, not_null, with_key};
use crate::error::{Error, Status, or_record, status_of};
use crate::filter::{Filter, look_up_batch, written};

/// A filter into which any number of threads insert while any number look up, without locks, for example one for each
/// memtable.
///
/// Once an insert has returned, lookups by the same thread find its key. So do lookups by threads that have
/// synchronised with it since, for example by a mutex, an atomic variable or a join. Other threads may miss the key for
/// a moment.
///
/// Estimates and bytes include all inserts that this thread has synchronised with, and perhaps some bits of inserts
/// that run at the same time. For functions that are missing here, such as `bloomline_filter_fold`, copy the filter
/// with `bloomline_atomic_filter_to_filter` while other threads continue, or convert it with
/// `bloomline_atomic_filter_into_filter` once they have finished.
pub struct AtomicFilter(AtomicBloomFilter);

/// Creates an empty filter, with the size, k and errors of `bloomline_filter_with_fpr`.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_atomic_filter_with_fpr(
    expected_keys: usize,
    fpr: f64,
) -> Option<Box<AtomicFilter>> {
    or_record(None, || boxed(|| Ok(AtomicFilter(AtomicBloomFilter::with_fpr(expected_keys as u64, fpr)?))))
}

/// Creates an empty filter, with the size, k and errors of `bloomline_filter_with_bits_per_key`.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_atomic_filter_with_bits_per_key(
    expected_keys: usize,
    bits_per_key: f64,
) -> Option<Box<AtomicFilter>> {
    let filter = || BloomFilter::with_bits_per_key(expected_keys as u64, bits_per_key);
    or_record(None, || boxed(|| Ok(AtomicFilter(filter()?.into()))))
}

/// Creates an empty filter, with the size, k and errors of `bloomline_filter_with_blocks`.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_atomic_filter_with_blocks(n_blocks: usize, k: u32) -> Option<Box<AtomicFilter>> {
    or_record(None, || boxed(|| Ok(AtomicFilter(BloomFilter::with_blocks(n_blocks, k)?.into()))))
}

/// Copies the `n` bytes of a filter's standalone form, as `bloomline_atomic_filter_to_standalone` or
/// `bloomline_filter_to_standalone` returns it, after comparing all of them with their checksums.
///
/// Returns null if the bytes are not a filter or are damaged (BLOOMLINE_DECODE).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bloomline_atomic_filter_from_standalone(
    bytes: *const c_void,
    n: usize,
) -> Option<Box<AtomicFilter>> {
    or_record(None, || {
        // SAFETY: the caller keeps the bytes readable and unchanged during the call.
        let bytes = unsafe { borrowed_bytes(bytes, n, "bytes") }?;
        boxed(|| Ok(AtomicFilter(BloomFilter::from_standalone(bytes)?.into())))
    })
}

/// Frees `filter` only if there is memory for what it becomes.
fn converted<A, B>(filter: Option<Box<A>>, convert: impl FnOnce(A) -> B) -> Option<Box<B>> {
    or_record(None, || {
        let filter = ManuallyDrop::new(not_null(filter, "filter")?);
        boxed(|| Ok(convert(*ManuallyDrop::into_inner(filter))))
    })
}

/// Converts a filter, with its keys and seed, without copying it, and frees `filter`.
///
/// If it returns null, `filter` is not freed.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_atomic_filter_from_filter(
    filter: Option<Box<Filter>>,
) -> Option<Box<AtomicFilter>> {
    converted(filter, |Filter(filter)| AtomicFilter(filter.into()))
}

/// Converts a filter back, without copying it, and frees `filter`, which no thread may be using.
///
/// If it returns null, `filter` is not freed.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_atomic_filter_into_filter(
    filter: Option<Box<AtomicFilter>>,
) -> Option<Box<Filter>> {
    converted(filter, |AtomicFilter(filter)| Filter(filter.into()))
}

/// Returns a copy, which you free separately. It has all keys of inserts that this thread has synchronised with, and
/// perhaps some bits of inserts that run at the same time.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_atomic_filter_to_filter(filter: Option<&AtomicFilter>) -> Option<Box<Filter>> {
    or_record(None, || boxed(|| Ok(Filter(not_null(filter, "filter")?.0.to_filter()?))))
}

/// Frees a filter, which no thread may be using. Does nothing if `filter` is null.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_atomic_filter_free(filter: Option<Box<AtomicFilter>>) {
    drop(filter);
}

/// Sets the seed of an empty filter, 0 by default. No thread may be using it. Reads the whole filter.
///
/// Returns the errors of `bloomline_filter_set_seed`.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_atomic_filter_set_seed(filter: Option<&mut AtomicFilter>, seed: u64) -> Status {
    status_of(|| {
        let AtomicFilter(filter) = not_null(filter, "filter")?;
        let stand_in = BloomFilter::with_blocks(1, 1)?.into();
        let mut plain = BloomFilter::from(mem::replace(filter, stand_in));
        let is_empty = plain.fill_ratio() == 0.0;
        if is_empty {
            // Only a filter that is known to be empty accepts a seed.
            plain.clear();
            plain = plain.with_seed(seed)?;
        }
        *filter = plain.into();
        if is_empty { Ok(()) } else { Err(Error::NotEmpty) }
    })
}

/// Returns the hash of the key of `length` bytes under the filter's seed. See `bloomline_filter_hash_key`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bloomline_atomic_filter_hash_key(
    filter: Option<&AtomicFilter>,
    key: *const c_void,
    length: usize,
) -> u64 {
    // SAFETY: this function's contract is the same.
    unsafe { with_key(0, key, length, |key| Ok(not_null(filter, "filter")?.0.hash_key(key))) }
}

/// Inserts the key of `length` bytes. Returns whether that changed a bit. If several threads insert the same new key at
/// once, at least one of them gets true.
///
/// Reports errors as `bloomline_filter_insert` does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bloomline_atomic_filter_insert(
    filter: Option<&AtomicFilter>,
    key: *const c_void,
    length: usize,
) -> bool {
    // SAFETY: this function's contract is the same.
    unsafe { with_key(false, key, length, |key| Ok(not_null(filter, "filter")?.0.insert(key))) }
}

/// `bloomline_atomic_filter_insert` by the key's hash. See `bloomline_filter_insert_hash`.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_atomic_filter_insert_hash(filter: Option<&AtomicFilter>, hash: u64) -> bool {
    or_record(false, || Ok(not_null(filter, "filter")?.0.insert_hash(hash)))
}

/// Inserts `n` keys by their hashes, and reports errors, as `bloomline_filter_insert_batch` does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bloomline_atomic_filter_insert_batch(
    filter: Option<&AtomicFilter>,
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

/// Returns whether the key of `length` bytes is possibly present. False means definitely absent, unless a different
/// thread inserted the key and this thread has not synchronised with it since. Returns true for a null filter, and for
/// a null key whose length is not 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bloomline_atomic_filter_contains(
    filter: Option<&AtomicFilter>,
    key: *const c_void,
    length: usize,
) -> bool {
    // SAFETY: this function's contract is the same.
    unsafe { with_key(true, key, length, |key| Ok(not_null(filter, "filter")?.0.contains(key))) }
}

/// `bloomline_atomic_filter_contains` by the key's hash. See `bloomline_filter_insert_hash`.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_atomic_filter_contains_hash(filter: Option<&AtomicFilter>, hash: u64) -> bool {
    or_record(true, || Ok(not_null(filter, "filter")?.0.contains_hash(hash)))
}

/// Looks up `n` keys by their hashes, and reports errors, as `bloomline_filter_contains_batch` does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bloomline_atomic_filter_contains_batch(
    filter: Option<&AtomicFilter>,
    hashes: *const u64,
    n: usize,
    found: *mut bool,
) -> Status {
    let filter =
        filter.map(|filter| |hashes: &[u64], found: &mut [bool]| filter.0.contains_batch(hashes, found));
    // SAFETY: this function's contract is the same.
    unsafe { look_up_batch(not_null(filter, "filter"), (hashes, "hashes"), n, found) }
}

/// Starts loading the first cache line of a hash that you will look up or insert a little later. Does nothing for a
/// null filter.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_atomic_filter_prefetch(filter: Option<&AtomicFilter>, hash: u64) {
    if let Some(AtomicFilter(filter)) = filter {
        filter.prefetch(hash);
    }
}

/// Inserts all keys of `other`. Meanwhile, threads may insert and look up.
///
/// Returns BLOOMLINE_MISMATCH as bloomline_filter_union_with does.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_atomic_filter_union_with(
    filter: Option<&AtomicFilter>,
    other: Option<&Filter>,
) -> Status {
    status_of(|| {
        let (AtomicFilter(filter), Filter(other)) = (not_null(filter, "filter")?, not_null(other, "filter")?);
        Ok(filter.union_with(other)?)
    })
}

/// Removes all keys. Size, k and seed stay. No other thread may be using the filter.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_atomic_filter_clear(filter: Option<&mut AtomicFilter>) -> Status {
    status_of(|| {
        not_null(filter, "filter")?.0.clear();
        Ok(())
    })
}

/// Returns the number of probes per key in each module, 1 to 16, or 0 for a null filter.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_atomic_filter_k(filter: Option<&AtomicFilter>) -> u32 {
    or_record(0, || Ok(not_null(filter, "filter")?.0.sizing().k()))
}

/// Returns the number of modules, 1 to 16, or 0 for a null filter. See `bloomline_filter_n_modules`.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_atomic_filter_n_modules(filter: Option<&AtomicFilter>) -> usize {
    or_record(0, || Ok(not_null(filter, "filter")?.0.sizing().n_modules()))
}

/// Returns the number of blocks of 64 bytes of all modules, or 0 for a null filter.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_atomic_filter_n_blocks(filter: Option<&AtomicFilter>) -> usize {
    or_record(0, || Ok(not_null(filter, "filter")?.0.sizing().n_blocks()))
}

/// Returns the bytes of memory that the blocks need, or 0 for a null filter.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_atomic_filter_byte_len(filter: Option<&AtomicFilter>) -> usize {
    or_record(0, || Ok(not_null(filter, "filter")?.0.sizing().byte_len()))
}

/// Returns the seed that keys are hashed with, or 0 for a null filter.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_atomic_filter_seed(filter: Option<&AtomicFilter>) -> u64 {
    or_record(0, || Ok(not_null(filter, "filter")?.0.seed()))
}

/// Returns the filter's standalone form, while other threads continue, in memory that you free with `bloomline_free`,
/// and writes its length to `length`. See `bloomline_filter_write_standalone`.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_atomic_filter_to_standalone(
    filter: Option<&AtomicFilter>,
    length: Option<&mut MaybeUninit<usize>>,
) -> *mut c_void {
    or_record(ptr::null_mut(), || {
        allocated_with_length(length, || {
            let AtomicFilter(filter) = not_null(filter, "filter")?;
            // Whole blocks, because inserts by other threads may turn a short form into whole blocks.
            let sizing = filter.sizing();
            let room = sizing.byte_len() + 8 * sizing.n_modules() + StandaloneFooter::LEN;
            written(room, |bytes| filter.write_standalone(bytes))
        })
    })
}
