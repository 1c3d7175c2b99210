//! `bloomline_builder_t`: builds a filter of the right size for keys whose number is not known in advance.

use core::ffi::c_void;
use core::mem::MaybeUninit;
use core::ptr;

use bloomline_core::sizing::MAX_BITS_PER_KEY;
use bloomline_core::{FilterBuilder, Sizing};

use crate::buffer::{Allocated, borrowed_bytes, boxed, not_null, with_key};
use crate::error::{Error, Status, or_record, status_of};
use crate::filter::Filter;

/// Collects keys, then builds a filter of the right size, for example while writing an SSTable.
///
/// Keeps 8 bytes per key until it is finished, and 9.3 at the peak, beyond the filter. You may insert a key any number
/// of times, because the filter's size follows from the number of distinct keys. A finished builder is empty and can be
/// reused.
pub struct Builder {
    builder: FilterBuilder,
    /// Bits per key in one module, which needs the most.
    most_bits_per_key: f64,
}

/// Creates a builder of filters with `bits_per_key` for each distinct key, rounded up.
///
/// Returns null if `bits_per_key` is not in (0, 64] (BLOOMLINE_SIZING).
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_builder_with_bits_per_key(bits_per_key: f64) -> Option<Box<Builder>> {
    or_record(None, || {
        let builder = FilterBuilder::with_bits_per_key(bits_per_key)?;
        boxed(|| Ok(Builder { builder, most_bits_per_key: bits_per_key }))
    })
}

/// Creates a builder of filters with a false-positive rate of at most `fpr`.
///
/// Returns null if `fpr` is not in [5.432e-13, 1) (BLOOMLINE_SIZING).
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_builder_with_fpr(fpr: f64) -> Option<Box<Builder>> {
    or_record(None, || {
        const KEYS: u32 = 1 << 20;
        let builder = FilterBuilder::with_fpr(fpr)?;
        let bits_of = |sizing: Sizing| 8.0 * sizing.byte_len() as f64 / f64::from(KEYS);
        // Where one module cannot reach the rate, several can.
        let most_bits_per_key = Sizing::for_fpr_within(KEYS.into(), fpr, 1).map_or(MAX_BITS_PER_KEY, bits_of);
        boxed(|| Ok(Builder { builder, most_bits_per_key }))
    })
}

/// Sets the seed of an empty builder, 0 by default. See `bloomline_filter_set_seed`.
///
/// Returns BLOOMLINE_NOT_EMPTY if keys have been inserted. The builder is then unchanged.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_builder_set_seed(builder: Option<&mut Builder>, seed: u64) -> Status {
    change(builder, |builder| builder.with_seed(seed))
}

/// Lets the filters of an empty builder have at most `most_modules` modules. See `bloomline_policy_set_most_modules`.
///
/// Returns BLOOMLINE_SIZING if `most_modules` is not 1 to 16, or the builder's false-positive rate is out of reach for
/// as few modules, or BLOOMLINE_NOT_EMPTY if keys have been inserted. The builder is then unchanged.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_builder_set_most_modules(
    builder: Option<&mut Builder>,
    most_modules: usize,
) -> Status {
    change(builder, |builder| builder.with_most_modules(most_modules))
}

/// Changes a copy, because a change that fails must not lose the builder. A copy of an empty builder does not allocate.
fn change(
    builder: Option<&mut Builder>,
    change: impl FnOnce(FilterBuilder) -> Result<FilterBuilder, bloomline_core::Error>,
) -> Status {
    status_of(|| {
        let Builder { builder, .. } = not_null(builder, "builder")?;
        if !builder.is_empty() {
            return Err(Error::NotEmpty);
        }
        *builder = change(builder.clone())?;
        Ok(())
    })
}

/// Frees a builder. Does nothing if `builder` is null.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_builder_free(builder: Option<Box<Builder>>) {
    drop(builder);
}

/// Returns the hash of the key of `length` bytes under the builder's seed. See `bloomline_filter_hash_key`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bloomline_builder_hash_key(
    builder: Option<&Builder>,
    key: *const c_void,
    length: usize,
) -> u64 {
    // SAFETY: this function's contract is the same.
    unsafe { with_key(0, key, length, |key| Ok(not_null(builder, "builder")?.builder.hash_key(key))) }
}

/// Inserts the key of `length` bytes. Keys may repeat.
///
/// Returns BLOOMLINE_INVALID_ARGUMENT if the builder is null, or if the key is null and its length is not 0. Returns
/// BLOOMLINE_OUT_OF_MEMORY if memory for the key's hash cannot be allocated. Nothing is then inserted, so a filter
/// built without the key reports it as definitely absent.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bloomline_builder_insert(
    builder: Option<&mut Builder>,
    key: *const c_void,
    length: usize,
) -> Status {
    status_of(|| {
        // SAFETY: the caller keeps the bytes of a key readable and unchanged during the call.
        let key = unsafe { borrowed_bytes(key, length, "key") }?;
        insert_hash(builder, |builder| builder.hash_key(key))
    })
}

/// `bloomline_builder_insert` by the key's hash. See `bloomline_filter_insert_hash`.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_builder_insert_hash(builder: Option<&mut Builder>, hash: u64) -> Status {
    status_of(|| insert_hash(builder, |_| hash))
}

fn insert_hash(builder: Option<&mut Builder>, hash: impl FnOnce(&FilterBuilder) -> u64) -> Result<(), Error> {
    let builder = &mut not_null(builder, "builder")?.builder;
    builder.try_reserve(1)?;
    builder.insert_hash(hash(builder));
    Ok(())
}

/// Returns the number of keys inserted. A key inserted several times may count more than once. Returns 0 for a null
/// builder.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_builder_len(builder: Option<&Builder>) -> usize {
    or_record(0, || Ok(not_null(builder, "builder")?.builder.len()))
}

/// Builds the filter of the keys inserted, which you free, and empties the builder.
///
/// If it returns null, the builder keeps its keys.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_builder_finish(builder: Option<&mut Builder>) -> Option<Box<Filter>> {
    or_record(None, || boxed(|| Ok(Filter(not_null(builder, "builder")?.builder.finish()?))))
}

/// Builds the filter of the keys inserted and empties the builder. Returns the filter's compact form in memory that you
/// free with `bloomline_free`, and writes its length to `length`. At 10 bits per key, that is at most 1.25 bytes per
/// key plus 65.
///
/// If it returns null, the builder keeps its keys.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_builder_finish_compact(
    builder: Option<&mut Builder>,
    length: Option<&mut MaybeUninit<usize>>,
) -> *mut c_void {
    or_record(ptr::null_mut(), || {
        let length = not_null(length, "length")?.write(0);
        let Builder { builder, most_bits_per_key } = not_null(builder, "builder")?;
        // Allocated before the builder is finished, because a failure afterwards would lose its keys. Rounding adds at
        // most a block for each of up to four modules, and 1% for each after the first. At most two bytes follow.
        let most = (1.04 / 8.0 * *most_bits_per_key * builder.len() as f64) as usize + 5 * 64;
        let memory = Allocated::new(most)?;
        let mut filter = Vec::new();
        builder.finish_compact(&mut filter)?;
        *length = filter.len();
        Ok(memory.with_copy_of(&filter))
    })
}
