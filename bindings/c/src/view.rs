//! `bloomline_view_t`: lookups over borrowed bytes.

use core::ffi::c_void;
use core::slice;

use bloomline_core::{BloomView, hash_key};
use memmap2::Mmap;

use crate::buffer::{borrowed_bytes, boxed, not_null, with_key};
use crate::error::{Error, Status, or_record, status_of};
use crate::filter::{Filter, look_up_batch};

/// A filter read in place from its bytes, at any alignment, without copying. The bytes must outlive the view, and must
/// not change while it exists.
pub struct View {
    view: BloomView<'static>,
    /// Unmaps the file, if the bytes are mapped.
    _map: Option<Mmap>,
}

impl View {
    pub(crate) fn mapped(
        map: Mmap,
        open: impl FnOnce(&'static [u8]) -> Result<BloomView<'static>, bloomline_core::Error>,
    ) -> Result<Self, Error> {
        // SAFETY: the bytes stay in place until the map is dropped, and the view that refers to them is dropped with
        // it.
        let bytes = unsafe { slice::from_raw_parts(map.as_ptr(), map.len()) };
        Ok(Self { view: open(bytes)?, _map: Some(map) })
    }
}

/// # Safety
///
/// `bytes` is null, or `n` bytes from it on can be read and do not change while the view exists.
unsafe fn open(
    bytes: *const c_void,
    n: usize,
    open: impl FnOnce(&'static [u8]) -> Result<BloomView<'static>, bloomline_core::Error>,
) -> Option<Box<View>> {
    or_record(None, || {
        // SAFETY: this function's contract is the same.
        let bytes = unsafe { borrowed_bytes(bytes, n, "bytes") }?;
        boxed(|| Ok(View { view: open(bytes)?, _map: None }))
    })
}

/// Opens the `n` bytes of the compact form of a filter with seed 0. Checks only their length and last byte, because
/// compact bytes rely on the length and checksum of their container.
///
/// Returns null if the bytes are not a filter (BLOOMLINE_DECODE). If you must answer a lookup then, treat the key as
/// possibly present.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bloomline_view_from_compact(bytes: *const c_void, n: usize) -> Option<Box<View>> {
    // SAFETY: this function's contract is the same.
    unsafe { open(bytes, n, BloomView::from_compact) }
}

/// Opens the `n` bytes of the compact form of a filter with this `seed`.
///
/// Fails as `bloomline_view_from_compact` does. A wrong seed is not detected. Most lookups then return false, even for
/// keys that were inserted, so store the seed safely.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bloomline_view_from_compact_with_seed(
    bytes: *const c_void,
    n: usize,
    seed: u64,
) -> Option<Box<View>> {
    // SAFETY: this function's contract is the same.
    unsafe { open(bytes, n, |bytes| BloomView::from_compact_with_seed(bytes, seed)) }
}

/// Opens the `n` bytes of a filter's standalone form, and compares all of them with their checksums.
///
/// Returns null if the bytes were cut, are damaged or of a different version, or their keys were hashed by a different
/// function (BLOOMLINE_DECODE).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bloomline_view_from_standalone(bytes: *const c_void, n: usize) -> Option<Box<View>> {
    // SAFETY: this function's contract is the same.
    unsafe { open(bytes, n, BloomView::from_standalone) }
}

/// `bloomline_view_from_standalone` without reading the filter's bits, for mapped bytes that are too many to read.
/// Checks only the footer, the last 64 bytes, and what precedes it in a filter of several modules, their checksums.
///
/// If bits are damaged, lookups return false for keys that were inserted, and nothing reports it. Call
/// `bloomline_view_verify` when there is time, or rely on a checksum of your own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bloomline_view_from_standalone_unverified(
    bytes: *const c_void,
    n: usize,
) -> Option<Box<View>> {
    // SAFETY: this function's contract is the same.
    unsafe { open(bytes, n, BloomView::from_standalone_unverified) }
}

/// Frees a view, but not its bytes. Does nothing if `view` is null.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_view_free(view: Option<Box<View>>) {
    drop(view);
}

/// Reads all of a standalone filter and compares its bits with their checksum, for views that were opened unverified.
///
/// Returns BLOOMLINE_DECODE if the bytes are damaged, so that lookups may return false for keys that were inserted, and
/// if they are compact bytes, which have no checksum.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_view_verify(view: Option<&View>) -> Status {
    status_of(|| Ok(not_null(view, "view")?.view.verify()?))
}

/// Returns the hash of the key of `length` bytes under the view's seed. See `bloomline_filter_hash_key`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bloomline_view_hash_key(
    view: Option<&View>,
    key: *const c_void,
    length: usize,
) -> u64 {
    // SAFETY: this function's contract is the same.
    unsafe { with_key(0, key, length, |key| Ok(not_null(view, "view")?.view.hash_key(key))) }
}

/// Returns whether the key of `length` bytes is possibly present. False means definitely absent. Returns true for a
/// null view, and for a null key whose length is not 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bloomline_view_contains(
    view: Option<&View>,
    key: *const c_void,
    length: usize,
) -> bool {
    // SAFETY: this function's contract is the same.
    unsafe { with_key(true, key, length, |key| Ok(not_null(view, "view")?.view.contains(key))) }
}

/// `bloomline_view_contains` by the key's hash. See `bloomline_filter_insert_hash`.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_view_contains_hash(view: Option<&View>, hash: u64) -> bool {
    or_record(true, || Ok(not_null(view, "view")?.view.contains_hash(hash)))
}

/// Looks up `n` keys by their hashes, and reports errors, as `bloomline_filter_contains_batch` does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bloomline_view_contains_batch(
    view: Option<&View>,
    hashes: *const u64,
    n: usize,
    found: *mut bool,
) -> Status {
    let view = view.map(|view| |hashes: &[u64], found: &mut [bool]| view.view.contains_batch(hashes, found));
    // SAFETY: this function's contract is the same.
    unsafe { look_up_batch(not_null(view, "view"), (hashes, "hashes"), n, found) }
}

/// Looks up one key, by its hash, in `n` filters of one seed, and sets `found[i]` to whether it is possibly present in
/// `views[i]`. A null view, as of a filter that could not be opened, possibly has every key. For 3 filters or more of
/// one module and one k, this is as fast as one by one, or faster. `found` must not overlap `views`. Both may be null if
/// `n` is 0.
///
/// Returns BLOOMLINE_INVALID_ARGUMENT if `views` or `found` is null or misaligned. All of `found`, unless it is null, is
/// then true.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bloomline_which_contain(
    views: *const Option<&View>,
    n: usize,
    hash: u64,
    found: *mut bool,
) -> Status {
    let which_contain = |views: &[Option<&View>], found: &mut [bool]| {
        let mut first = 0;
        // All of `found` is true, and stays so for null views.
        for views in views.split(Option::is_none) {
            let found = &mut found[first..][..views.len()];
            found.fill(false);
            BloomView::which_contain(views.iter().flatten().map(|view| view.view), hash)
                .for_each(|i| found[i] = true);
            first += views.len() + 1;
        }
    };
    // SAFETY: this function's contract is the same. The caller's pointers are null or those of views.
    unsafe { look_up_batch(Ok(which_contain), (views, "views"), n, found) }
}

/// Starts loading the first cache line of a hash that you will look up a little later. Does nothing for a null view.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_view_prefetch(view: Option<&View>, hash: u64) {
    if let Some(View { view, .. }) = view {
        view.prefetch(hash);
    }
}

/// Returns the number of probes per key in each module, 1 to 16, or 0 for a null view.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_view_k(view: Option<&View>) -> u32 {
    or_record(0, || Ok(not_null(view, "view")?.view.k()))
}

/// Returns the number of modules, 1 to 16, or 0 for a null view. See `bloomline_filter_n_modules`.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_view_n_modules(view: Option<&View>) -> usize {
    or_record(0, || Ok(not_null(view, "view")?.view.n_modules()))
}

/// Returns the number of blocks of 64 bytes that lookups choose from, of all modules. In filters of few keys they
/// overlap. Returns 0 for a null view.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_view_n_blocks(view: Option<&View>) -> usize {
    or_record(0, || Ok(not_null(view, "view")?.view.n_blocks()))
}

/// Returns the seed that keys are hashed with, or 0 for a null view.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_view_seed(view: Option<&View>) -> u64 {
    or_record(0, || Ok(not_null(view, "view")?.view.seed()))
}

/// Returns a copy of the view as a filter, which you can change and must free. It does not need the bytes.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_view_to_filter(view: Option<&View>) -> Option<Box<Filter>> {
    or_record(None, || boxed(|| Ok(Filter(not_null(view, "view")?.view.to_filter()?))))
}

/// Returns whether the key of `length` bytes is possibly present in the filter whose compact form is the `n` bytes,
/// with seed 0. False means definitely absent. Reads the filter in place, at any alignment, and does not allocate.
///
/// Returns true for bytes that are not a filter, because a needless read costs time, but a skipped read loses data.
/// `bloomline_view_from_compact` reports what is wrong with them. Also returns true for a null pointer whose length is
/// not 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bloomline_compact_contains(
    bytes: *const c_void,
    n: usize,
    key: *const c_void,
    length: usize,
) -> bool {
    or_record(true, || {
        // SAFETY: the caller keeps the bytes of a filter readable and unchanged during the call.
        let bytes = unsafe { borrowed_bytes(bytes, n, "bytes") }?;
        // SAFETY: the caller keeps the bytes of a key readable and unchanged during the call.
        let key = unsafe { borrowed_bytes(key, length, "key") }?;
        Ok(compact_contains(bytes, hash_key(key, 0)))
    })
}

/// `bloomline_compact_contains` by the key's hash, as `bloomline_hash_key` returns it for the filter's seed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bloomline_compact_contains_hash(bytes: *const c_void, n: usize, hash: u64) -> bool {
    or_record(true, || {
        // SAFETY: the caller keeps the bytes of a filter readable and unchanged during the call.
        let bytes = unsafe { borrowed_bytes(bytes, n, "bytes") }?;
        Ok(compact_contains(bytes, hash))
    })
}

fn compact_contains(bytes: &[u8], hash: u64) -> bool {
    BloomView::compact_contains_hash(bytes, hash).unwrap_or(true)
}
