//! `bloomline_policy_t`: filters for databases with SSTables in LevelDB's manner.

use core::ffi::{CStr, c_char};
use core::mem::MaybeUninit;
use core::ptr;
use core::sync::atomic::{AtomicU64, Ordering};

use bloomline_core::FilterBuilder;
use bloomline_core::sstable::{FilterPolicy, Policy as _};

use crate::buffer::{allocated_with_length, given, lent, lent_bytes};
use crate::error::{Error, or_record};

/// Creates and queries the filters of a database, in the shape of LevelDB's FilterPolicy.
///
/// Filters are compact bytes of seed 0, and say by themselves how to read them, so a policy of any bits per key reads
/// those of any other. Any number of threads may use a policy at once.
pub struct Policy {
    policy: FilterPolicy,
    unusable_filters: AtomicU64,
}

impl Policy {
    fn boxed(policy: FilterPolicy) -> Option<Box<Self>> {
        Some(Box::new(Self { policy, unusable_filters: AtomicU64::new(0) }))
    }

    /// The filter of `n` keys that `add` adds.
    fn filter(
        &self,
        n: usize,
        add: impl FnOnce(&mut FilterBuilder) -> Result<(), Error>,
    ) -> Result<Vec<u8>, Error> {
        let mut keys = self.policy.keys();
        keys.reserve(n);
        add(&mut keys)?;
        let mut filter = Vec::new();
        keys.finish_compact(&mut filter);
        Ok(filter)
    }
}

const NAME_BYTES: [u8; FilterPolicy::NAME.len() + 1] = {
    let mut bytes = [0; FilterPolicy::NAME.len() + 1];
    bytes.split_at_mut(FilterPolicy::NAME.len()).0.copy_from_slice(FilterPolicy::NAME.as_bytes());
    bytes
};

const NAME: &CStr = match CStr::from_bytes_with_nul(&NAME_BYTES) {
    Ok(name) => name,
    Err(_) => panic!("a name has no NUL"),
};

/// A policy of `bits_per_key` for each distinct key of a filter: 10 for 1 % false positives.
///
/// Null if `bits_per_key` is not above 0 and at most 64 (BLOOMLINE_SIZING).
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_policy_with_bits_per_key(bits_per_key: f64) -> Option<Box<Policy>> {
    or_record(None, || Ok(Policy::boxed(FilterPolicy::with_bits_per_key(bits_per_key)?)))
}

/// A policy whose filters answer true for at most a share `fpr` of missing keys.
///
/// Null if `fpr` is not between 1.263e-8 and 1 (BLOOMLINE_SIZING).
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_policy_with_fpr(fpr: f64) -> Option<Box<Policy>> {
    or_record(None, || Ok(Policy::boxed(FilterPolicy::with_fpr(fpr)?)))
}

/// Frees a policy, once no thread uses it any more. Null is fine.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_policy_free(policy: Option<Box<Policy>>) {
    drop(policy);
}

/// The name by which a database remembers what made its filters: the same for all policies, never null, never freed. It
/// changes whenever older code could not read newer filters.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_policy_name() -> *const c_char {
    NAME.as_ptr()
}

/// The filter of `n` keys, `keys[i]` of `lengths[i]` bytes, in memory from malloc, for the caller to free; its length
/// goes to `filter_length`. Keys may repeat and come in any order. Never empty, even of no keys, for which `keys` and
/// `lengths` may be null.
///
/// Null if a pointer is null or not aligned, a key being allowed to be null if its length is 0
/// (BLOOMLINE_INVALID_ARGUMENT), or memory cannot be had (BLOOMLINE_OUT_OF_MEMORY); `filter_length` is then 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bloomline_policy_create_filter(
    policy: Option<&Policy>,
    keys: *const *const c_char,
    lengths: *const usize,
    n: usize,
    filter_length: Option<&mut MaybeUninit<usize>>,
) -> *mut c_char {
    let filter = or_record(ptr::null_mut(), || {
        allocated_with_length(filter_length, || {
            let policy = given(policy, "policy")?;
            // SAFETY: the caller lends `n` pointers for the call, and any bits are one.
            let keys = unsafe { lent(keys, n, "keys") }?;
            // SAFETY: the caller lends `n` lengths for the call, and any bits are one.
            let lengths = unsafe { lent(lengths, n, "lengths") }?;
            policy.filter(n, |filter| {
                for (&key, &length) in keys.iter().zip(lengths) {
                    // SAFETY: the caller lends the bytes of each key for the call.
                    filter.add(unsafe { lent_bytes(key.cast(), length, "key") }?);
                }
                Ok(())
            })
        })
    });
    filter.cast()
}

/// `bloomline_policy_create_filter` by the keys' hashes, from `bloomline_hash_key` with the seed 0. `hashes` may be null
/// if `n` is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bloomline_policy_create_filter_from_hashes(
    policy: Option<&Policy>,
    hashes: *const u64,
    n: usize,
    filter_length: Option<&mut MaybeUninit<usize>>,
) -> *mut c_char {
    let filter = or_record(ptr::null_mut(), || {
        allocated_with_length(filter_length, || {
            // SAFETY: the caller lends `n` hashes for the call, and any bits are one.
            let hashes = unsafe { lent(hashes, n, "hashes") }?;
            given(policy, "policy")?.filter(n, |filter| {
                hashes.iter().for_each(|&hash| filter.add_hash(hash));
                Ok(())
            })
        })
    });
    filter.cast()
}

/// Whether the key of `length` bytes may be among those that the filter of `filter_length` bytes was created from: false
/// is certain. Allocates nothing, copies nothing, and depends on no alignment.
///
/// True for bytes that are no filter, which are counted: see `bloomline_policy_unusable_filters`. True for a null
/// policy, and for a null pointer whose length is not 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bloomline_policy_key_may_match(
    policy: Option<&Policy>,
    key: *const c_char,
    length: usize,
    filter: *const c_char,
    filter_length: usize,
) -> bool {
    or_record(true, || {
        // SAFETY: the caller lends the bytes of a key for the call.
        let key = unsafe { lent_bytes(key.cast(), length, "key") }?;
        // SAFETY: the caller lends the bytes of a filter for the call.
        let filter = unsafe { lent_bytes(filter.cast(), filter_length, "filter") }?;
        let Policy { policy, unusable_filters } = given(policy, "policy")?;
        Ok(policy.try_key_may_match(key, filter).unwrap_or_else(|_| {
            unusable_filters.fetch_add(1, Ordering::Relaxed);
            true
        }))
    })
}

/// How many calls of `bloomline_policy_key_may_match` met bytes that are no filter, and so could spare nothing: a
/// database whose filters are damaged, or of a newer version. 0 for a null policy.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_policy_unusable_filters(policy: Option<&Policy>) -> u64 {
    or_record(0, || Ok(given(policy, "policy")?.unusable_filters.load(Ordering::Relaxed)))
}
