//! `bloomline_policy_t`: filters for databases with LevelDB-like SSTables.

use core::ffi::{c_char, c_void};
use core::mem::MaybeUninit;
use core::ptr;
use core::sync::atomic::{AtomicU64, Ordering};

use bloomline_core::FilterBuilder;
use bloomline_core::sstable::FilterPolicy;

use crate::buffer::{allocated_with_length, borrowed, borrowed_bytes, boxed, not_null};
use crate::error::{Error, Status, or_record, status_of};

/// Creates and queries the filters of a database, like LevelDB's FilterPolicy.
///
/// Filters are compact bytes with seed 0. They are self-describing, so a policy reads filters of any bits per key. Any
/// number of threads may use a policy at once.
///
/// At false-positive rates below 0.05%, which is 17.46 bits per key and above, larger filters have two modules. See
/// `bloomline_policy_set_most_modules`.
pub struct Policy {
    policy: FilterPolicy,
    unusable_filters: AtomicU64,
}

impl Policy {
    fn new(policy: FilterPolicy) -> Self {
        Self { policy, unusable_filters: AtomicU64::new(0) }
    }

    /// Builds the filter of the `n` keys that `insert` inserts.
    fn filter(
        &self,
        n: usize,
        insert: impl FnOnce(&mut FilterBuilder) -> Result<(), Error>,
    ) -> Result<Vec<u8>, Error> {
        let mut keys = self.policy.builder();
        keys.try_reserve(n)?;
        insert(&mut keys)?;
        let mut filter = Vec::new();
        keys.finish_compact(&mut filter)?;
        Ok(filter)
    }
}

/// The name, with a NUL.
static NAME: [u8; FilterPolicy::NAME.len() + 1] = {
    let mut bytes = [0; FilterPolicy::NAME.len() + 1];
    bytes.split_at_mut(FilterPolicy::NAME.len()).0.copy_from_slice(FilterPolicy::NAME.as_bytes());
    bytes
};

/// Creates a policy of `bits_per_key` for each distinct key of a filter, such as 10 for 1% false positives.
///
/// Returns null if `bits_per_key` is not in (0, 64] (BLOOMLINE_SIZING).
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_policy_with_bits_per_key(bits_per_key: f64) -> Option<Box<Policy>> {
    or_record(None, || boxed(|| Ok(Policy::new(FilterPolicy::with_bits_per_key(bits_per_key)?))))
}

/// Creates a policy whose filters have a false-positive rate of at most `fpr`.
///
/// Returns null if `fpr` is not in [5.432e-13, 1) (BLOOMLINE_SIZING).
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_policy_with_fpr(fpr: f64) -> Option<Box<Policy>> {
    or_record(None, || boxed(|| Ok(Policy::new(FilterPolicy::with_fpr(fpr)?))))
}

/// Lets filters have at most `most_modules` modules, 1 to 16. Pass 1 for a database that mostly asks for keys that it
/// has, so that each lookup touches one cache line, or 4 for the fewest bits. The policy still reads filters of any
/// number of modules.
///
/// Returns BLOOMLINE_SIZING if `most_modules` is not 1 to 16, or the policy's false-positive rate is out of reach for as
/// few modules. The policy is then unchanged.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_policy_set_most_modules(
    policy: Option<&mut Policy>,
    most_modules: usize,
) -> Status {
    status_of(|| {
        let Policy { policy, .. } = not_null(policy, "policy")?;
        *policy = policy.clone().with_most_modules(most_modules)?;
        Ok(())
    })
}

/// Frees a policy, which no thread may be using. Does nothing if `policy` is null.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_policy_free(policy: Option<Box<Policy>>) {
    drop(policy);
}

/// Returns the name by which a database records which policy created its filters. All policies have the same name. It
/// changes whenever older code could not read newer filters. It is never null. Do not free it.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_policy_name() -> *const c_char {
    NAME.as_ptr().cast()
}

/// Creates the filter of `n` keys, where `keys[i]` has `lengths[i]` bytes. Returns it in memory that you free with
/// `bloomline_free`, and writes its length to `length`. Keys may repeat and come in any order. If `n` is 0, `keys` and
/// `lengths` may be null, and the filter still has at least one byte.
///
/// Returns null if a pointer is null or misaligned (BLOOMLINE_INVALID_ARGUMENT), except that a key of length 0 may be
/// null. `length` is then 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bloomline_policy_create_filter(
    policy: Option<&Policy>,
    keys: *const *const c_void,
    lengths: *const usize,
    n: usize,
    length: Option<&mut MaybeUninit<usize>>,
) -> *mut c_void {
    or_record(ptr::null_mut(), || {
        allocated_with_length(length, || {
            let policy = not_null(policy, "policy")?;
            // SAFETY: the caller keeps `n` pointers readable and unchanged during the call, and any bits are valid.
            let keys = unsafe { borrowed(keys, n, "keys") }?;
            // SAFETY: the caller keeps `n` lengths readable and unchanged during the call, and any bits are valid.
            let lengths = unsafe { borrowed(lengths, n, "lengths") }?;
            policy.filter(n, |filter| {
                for (&key, &length) in keys.iter().zip(lengths) {
                    // SAFETY: the caller keeps the bytes of each key readable and unchanged during the call.
                    filter.insert(unsafe { borrowed_bytes(key, length, "key") }?);
                }
                Ok(())
            })
        })
    })
}

/// `bloomline_policy_create_filter` by the keys' hashes, as `bloomline_hash_key` returns them for seed 0. `hashes` may
/// be null if `n` is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bloomline_policy_create_filter_from_hashes(
    policy: Option<&Policy>,
    hashes: *const u64,
    n: usize,
    length: Option<&mut MaybeUninit<usize>>,
) -> *mut c_void {
    or_record(ptr::null_mut(), || {
        allocated_with_length(length, || {
            // SAFETY: the caller keeps `n` hashes readable and unchanged during the call, and any bits are valid.
            let hashes = unsafe { borrowed(hashes, n, "hashes") }?;
            not_null(policy, "policy")?.filter(n, |filter| {
                filter.insert_batch(hashes);
                Ok(())
            })
        })
    })
}

/// Returns whether the key of `length` bytes is possibly one of the keys that the filter of `n` bytes was created from.
/// False means definitely absent. Reads the filter in place, at any alignment, and does not allocate.
///
/// Returns true for bytes that are not a filter, and counts them (`bloomline_policy_unusable_filters`). Returns true
/// for a null policy, and for a null pointer whose length is not 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bloomline_policy_key_may_match(
    policy: Option<&Policy>,
    bytes: *const c_void,
    n: usize,
    key: *const c_void,
    length: usize,
) -> bool {
    or_record(true, || {
        // SAFETY: the caller keeps the bytes of a filter readable and unchanged during the call.
        let filter = unsafe { borrowed_bytes(bytes, n, "bytes") }?;
        // SAFETY: the caller keeps the bytes of a key readable and unchanged during the call.
        let key = unsafe { borrowed_bytes(key, length, "key") }?;
        let Policy { policy, unusable_filters } = not_null(policy, "policy")?;
        Ok(policy.try_key_may_match(key, filter).unwrap_or_else(|_| {
            unusable_filters.fetch_add(1, Ordering::Relaxed);
            true
        }))
    })
}

/// Returns how many calls of `bloomline_policy_key_may_match` got bytes that are not a filter, and so could not save a
/// read. If it is above 0, filters of the database are damaged or of a different version. Returns 0 for a null policy.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_policy_unusable_filters(policy: Option<&Policy>) -> u64 {
    or_record(0, || Ok(not_null(policy, "policy")?.unusable_filters.load(Ordering::Relaxed)))
}
