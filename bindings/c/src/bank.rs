//! `bloomline_bank_t`: one lookup in many filters.

use core::ffi::c_void;

use bloomline_core::bank::BankView;

use crate::buffer::{borrowed_bytes, boxed, not_null, overwritten, with_key};
use crate::error::{Error, Status, or_record, status_of};

/// Many filters of one size, side by side, read in place from bytes that Rust or Python wrote. One lookup finds which of
/// them possibly have a key, faster than `bloomline_which_contain` from 16 filters on. The bytes must outlive the bank,
/// and must not change while it exists.
pub struct Bank(BankView<'static>);

/// Opens the `n` bytes of a bank's standalone form, and compares all of them with their checksums.
///
/// Returns null if the bytes were cut, are damaged or of a different version, or their keys were hashed by a different
/// function (BLOOMLINE_DECODE).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bloomline_bank_from_standalone(bytes: *const c_void, n: usize) -> Option<Box<Bank>> {
    or_record(None, || {
        // SAFETY: the caller keeps the bytes of a bank readable and unchanged while it exists.
        let bytes = unsafe { borrowed_bytes(bytes, n, "bytes") }?;
        boxed(|| Ok(Bank(BankView::from_standalone(bytes)?)))
    })
}

/// Frees a bank, but not its bytes. Does nothing if `bank` is null.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_bank_free(bank: Option<Box<Bank>>) {
    drop(bank);
}

/// Returns the number of slots, each with a filter, or 0 for a null bank.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_bank_n_slots(bank: Option<&Bank>) -> usize {
    or_record(0, || Ok(not_null(bank, "bank")?.0.slots()))
}

/// Returns the hash of the key of `length` bytes under the bank's seed. See `bloomline_filter_hash_key`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bloomline_bank_hash_key(
    bank: Option<&Bank>,
    key: *const c_void,
    length: usize,
) -> u64 {
    // SAFETY: this function's contract is the same.
    unsafe { with_key(0, key, length, |key| Ok(not_null(bank, "bank")?.0.hash_key(key))) }
}

/// Finds the slots that possibly have the key of `length` bytes. Sets bit `s % 64` of `found[s / 64]` to whether slot s
/// possibly has it, and all other bits of the `n_words` words to 0. A slot whose bit is 0 definitely does not have it.
/// `found` must not overlap the key.
///
/// Returns BLOOMLINE_INVALID_ARGUMENT if a pointer is null or misaligned, or BLOOMLINE_BUFFER_TOO_SMALL if the slots do
/// not fit in `n_words` words. All bits of `found`, unless it is null or misaligned, are then 1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bloomline_bank_find(
    bank: Option<&Bank>,
    key: *const c_void,
    length: usize,
    found: *mut u64,
    n_words: usize,
) -> Status {
    let hash = |bank: &Bank| {
        // SAFETY: the caller keeps the bytes of a key readable and unchanged during the call.
        Ok(bank.0.hash_key(unsafe { borrowed_bytes(key, length, "key") }?))
    };
    // SAFETY: this function's contract is the same.
    unsafe { find(bank, hash, found, n_words) }
}

/// `bloomline_bank_find` by the key's hash, as `bloomline_bank_hash_key` returns it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bloomline_bank_find_hash(
    bank: Option<&Bank>,
    hash: u64,
    found: *mut u64,
    n_words: usize,
) -> Status {
    // SAFETY: this function's contract is the same.
    unsafe { find(bank, |_| Ok(hash), found, n_words) }
}

/// # Safety
///
/// `found` is null, or points to room for `n_words` words, which `hash` does not read.
unsafe fn find(
    bank: Option<&Bank>,
    hash: impl FnOnce(&Bank) -> Result<u64, Error>,
    found: *mut u64,
    n_words: usize,
) -> Status {
    status_of(|| {
        // SAFETY: `found` has room for the words by this function's contract.
        let found = unsafe { overwritten(found, n_words, !0, "found") }?;
        let bank = not_null(bank, "bank")?;
        let (needed, hash) = (bank.0.slots().div_ceil(64), hash(bank)?);
        let (slots, rest) = found.split_at_mut_checked(needed).ok_or(Error::BufferTooSmall {
            needed: size_of::<u64>() * needed,
            capacity: size_of::<u64>() * n_words,
        })?;
        bank.0.find_hash_in(hash, slots);
        rest.fill(0);
        Ok(())
    })
}
