//! `bloomline_builder_t`: from keys whose number is not known in advance to a filter that fits them.

use core::ffi::c_void;
use core::mem::MaybeUninit;
use core::ptr;

use bloomline_core::FilterBuilder;

use crate::buffer::{allocated_with_length, given, lent_bytes};
use crate::error::{Error, Status, or_record, status_of};
use crate::filter::Filter;

/// Collects keys, then makes a filter of the right size: what the writer of an SSTable uses.
///
/// Keeps 8 bytes a key until it is finished. A key may be added any number of times; the size follows from the distinct
/// ones. A finished builder is empty and can be used again.
pub struct Builder(FilterBuilder);

/// A builder of filters with `bits_per_key` for each distinct key, rounded up.
///
/// Null if `bits_per_key` is not above 0 and at most 64 (BLOOMLINE_SIZING).
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_builder_with_bits_per_key(bits_per_key: f64) -> Option<Box<Builder>> {
    or_record(None, || Ok(Some(Box::new(Builder(FilterBuilder::with_bits_per_key(bits_per_key)?)))))
}

/// A builder of filters that answer "may be in" for at most a share `fpr` of missing keys.
///
/// Null if `fpr` is not between 1.263e-8 and 1 (BLOOMLINE_SIZING).
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_builder_with_fpr(fpr: f64) -> Option<Box<Builder>> {
    or_record(None, || Ok(Some(Box::new(Builder(FilterBuilder::with_fpr(fpr)?)))))
}

/// Gives an empty builder another seed than 0. See `bloomline_filter_set_seed`.
///
/// BLOOMLINE_NOT_EMPTY if keys have been added; nothing is changed then.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_builder_set_seed(builder: Option<&mut Builder>, seed: u64) -> Status {
    status_of(|| {
        let Builder(builder) = given(builder, "builder")?;
        if !builder.is_empty() {
            return Err(Error::NotEmpty);
        }
        *builder = builder.clone().with_seed(seed);
        Ok(())
    })
}

/// Frees a builder. Null is fine.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_builder_free(builder: Option<Box<Builder>>) {
    drop(builder);
}

/// Adds the key of `length` bytes. Repeats are welcome.
///
/// BLOOMLINE_INVALID_ARGUMENT if the builder is null, or the key is null and its length not 0; nothing is added then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bloomline_builder_add(
    builder: Option<&mut Builder>,
    key: *const c_void,
    length: usize,
) -> Status {
    status_of(|| {
        // SAFETY: the caller lends the bytes of a key for the call.
        let key = unsafe { lent_bytes(key, length, "key") }?;
        given(builder, "builder")?.0.add(key);
        Ok(())
    })
}

/// `bloomline_builder_add` by the key's hash. See `bloomline_filter_insert_hash`.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_builder_add_hash(builder: Option<&mut Builder>, hash: u64) -> Status {
    status_of(|| {
        given(builder, "builder")?.0.add_hash(hash);
        Ok(())
    })
}

/// Keys added, where a key that was added several times may count more than once. 0 for a null builder.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_builder_len(builder: Option<&Builder>) -> usize {
    or_record(0, || Ok(given(builder, "builder")?.0.len()))
}

/// Makes the filter of the keys added, for the caller to free, and empties the builder. Null for a null builder.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_builder_finish(builder: Option<&mut Builder>) -> Option<Box<Filter>> {
    or_record(None, || Ok(Filter::boxed(given(builder, "builder")?.0.finish())))
}

/// Makes the filter of the keys added, in compact form, and empties the builder: memory from malloc, for the caller to
/// free, whose length goes to `length`. At most 1.25 bytes a key and 65 at 10 bits per key.
///
/// Null if a pointer is null (BLOOMLINE_INVALID_ARGUMENT), with the builder as it was; or if memory cannot be had
/// (BLOOMLINE_OUT_OF_MEMORY), with the builder empty. `length` is then 0.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_builder_finish_compact(
    builder: Option<&mut Builder>,
    length: Option<&mut MaybeUninit<usize>>,
) -> *mut c_void {
    or_record(ptr::null_mut(), || {
        allocated_with_length(length, || {
            let mut filter = Vec::new();
            given(builder, "builder")?.0.finish_compact(&mut filter);
            Ok(filter)
        })
    })
}
