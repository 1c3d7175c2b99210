//! `bloomline_view_t`: lookups over borrowed bytes.

use core::ffi::c_void;

use bloomline_core::BloomView;

use crate::buffer::{given, lent_bytes};
use crate::error::{Status, or_record, status_of};
use crate::filter::{Filter, look_up_batch};

/// A filter read in place from its bytes, at any alignment, without copying. The bytes must outlive the view and must
/// not change.
pub struct View(BloomView<'static>);

impl View {
    fn boxed(view: BloomView<'static>) -> Option<Box<Self>> {
        Some(Box::new(Self(view)))
    }
}

/// Opens the `n` bytes of a filter's compact form, of a filter of seed 0. Looks at their length and the last byte only:
/// compact bytes lean on the length and the checksum of what contains them.
///
/// Null if the bytes are null and `n` is not 0 (BLOOMLINE_INVALID_ARGUMENT), or they are no filter (BLOOMLINE_DECODE).
/// A caller who must answer takes that for "may be in".
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bloomline_view_from_compact(bytes: *const c_void, n: usize) -> Option<Box<View>> {
    or_record(None, || {
        // SAFETY: the caller keeps the bytes, unchanged, for as long as the view.
        let bytes = unsafe { lent_bytes(bytes, n, "bytes") }?;
        Ok(View::boxed(BloomView::from_compact(bytes)?))
    })
}

/// Opens the `n` bytes of a filter's compact form, of a filter with this `seed`.
///
/// Errors are those of `bloomline_view_from_compact`. A wrong seed goes unnoticed, and most lookups then answer false:
/// keep the seed where it cannot be lost.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bloomline_view_from_compact_with_seed(
    bytes: *const c_void,
    n: usize,
    seed: u64,
) -> Option<Box<View>> {
    or_record(None, || {
        // SAFETY: the caller keeps the bytes, unchanged, for as long as the view.
        let bytes = unsafe { lent_bytes(bytes, n, "bytes") }?;
        Ok(View::boxed(BloomView::from_compact_with_seed(bytes, seed)?))
    })
}

/// Opens the `n` bytes of a filter's standalone form. The footer is checked, the blocks are not: see
/// `bloomline_view_verify`.
///
/// Null if the bytes are null and `n` is not 0 (BLOOMLINE_INVALID_ARGUMENT); if they were cut, their footer is damaged
/// or of a newer version, or their keys were hashed by another function (BLOOMLINE_DECODE); or if the library was built
/// with another hash than the format's (BLOOMLINE_HASH_CHANGED).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bloomline_view_from_standalone(bytes: *const c_void, n: usize) -> Option<Box<View>> {
    or_record(None, || {
        // SAFETY: the caller keeps the bytes, unchanged, for as long as the view.
        let bytes = unsafe { lent_bytes(bytes, n, "bytes") }?;
        Ok(View::boxed(BloomView::from_standalone(bytes)?))
    })
}

/// Frees a view, and not the bytes. Null is fine.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_view_free(view: Option<Box<View>>) {
    drop(view);
}

/// Reads all of a standalone filter and compares it with its checksum. Compact bytes have none: BLOOMLINE_OK.
///
/// BLOOMLINE_DECODE if the bytes are damaged: the filter may then answer false for keys that were inserted.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_view_verify(view: Option<&View>) -> Status {
    status_of(|| Ok(given(view, "view")?.0.verify()?))
}

/// Whether the key of `length` bytes may have been inserted: false is certain. True for a null view, and for a null key
/// whose length is not 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bloomline_view_contains(
    view: Option<&View>,
    key: *const c_void,
    length: usize,
) -> bool {
    or_record(true, || {
        // SAFETY: the caller lends the bytes of a key for the call.
        let key = unsafe { lent_bytes(key, length, "key") }?;
        Ok(given(view, "view")?.0.contains(key))
    })
}

/// `bloomline_view_contains` by the key's hash. See `bloomline_filter_insert_hash`.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_view_contains_hash(view: Option<&View>, hash: u64) -> bool {
    or_record(true, || Ok(given(view, "view")?.0.contains_hash(hash)))
}

/// Looks up `n` keys by their hashes. As `bloomline_filter_contains_batch`, errors too.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bloomline_view_contains_batch(
    view: Option<&View>,
    hashes: *const u64,
    n: usize,
    found: *mut bool,
) -> Status {
    let view = view.map(|view| |hashes: &[u64], found: &mut [bool]| view.0.contains_batch(hashes, found));
    // SAFETY: this function's contract is the same.
    unsafe { look_up_batch(given(view, "view"), hashes, n, found) }
}

/// Starts loading the cache line of a hash, to be looked up a little later. Nothing for a null view.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_view_prefetch(view: Option<&View>, hash: u64) {
    if let Some(View(view)) = view {
        view.prefetch(hash);
    }
}

/// Probes per key, 1 to 16. 0 for a null view.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_view_k(view: Option<&View>) -> u32 {
    or_record(0, || Ok(given(view, "view")?.0.k()))
}

/// Blocks of 64 bytes that lookups choose from; filters of few keys have them overlap. 0 for a null view.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_view_n_blocks(view: Option<&View>) -> usize {
    or_record(0, || Ok(given(view, "view")?.0.n_blocks()))
}

/// What keys are hashed with. 0 for a null view.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_view_seed(view: Option<&View>) -> u64 {
    or_record(0, || Ok(given(view, "view")?.0.seed()))
}

/// A filter of its own, to be changed and freed; it does not need the bytes. Null for a null view.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_view_to_filter(view: Option<&View>) -> Option<Box<Filter>> {
    or_record(None, || Ok(Filter::boxed(given(view, "view")?.0.to_owned())))
}

/// Whether the key of `length` bytes may be in the filter whose compact form, of seed 0, the `n` bytes are: false is
/// certain. Opens the filter in place, allocates nothing, and depends on no alignment.
///
/// True for bytes that are no filter: to look in vain costs time, not to look loses data. `bloomline_view_from_compact`
/// says what is wrong with them. True for a null pointer whose length is not 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bloomline_compact_may_contain(
    bytes: *const c_void,
    n: usize,
    key: *const c_void,
    length: usize,
) -> bool {
    or_record(true, || {
        // SAFETY: the caller lends the bytes of a filter for the call.
        let bytes = unsafe { lent_bytes(bytes, n, "bytes") }?;
        // SAFETY: the caller lends the bytes of a key for the call.
        let key = unsafe { lent_bytes(key, length, "key") }?;
        Ok(BloomView::from_compact(bytes).map_or(true, |view| view.contains(key)))
    })
}

/// `bloomline_compact_may_contain` by the key's hash, from `bloomline_hash_key` with the seed that the filter was made
/// with.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bloomline_compact_may_contain_hash(
    bytes: *const c_void,
    n: usize,
    hash: u64,
) -> bool {
    or_record(true, || {
        // SAFETY: the caller lends the bytes of a filter for the call.
        let bytes = unsafe { lent_bytes(bytes, n, "bytes") }?;
        Ok(BloomView::from_compact(bytes).map_or(true, |view| view.contains_hash(hash)))
    })
}
