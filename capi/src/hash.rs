//! Hashes, sizes, and what the library says of itself.

use core::ffi::{CStr, c_char, c_void};
use core::mem::MaybeUninit;
use std::ffi::CString;
use std::sync::OnceLock;

use bloomline_core::{Kernel, hash_key, mix, sizing};

use crate::buffer::{given, lent_bytes};
use crate::error::{Status, or_record, status_of};

/// The hash by which a filter with this `seed`, 0 unless set, places the key of `length` bytes: the same on every CPU.
/// To ask many filters for one key, hash it once.
///
/// 0 for a null key whose length is not 0, and `bloomline_last_status` is then BLOOMLINE_INVALID_ARGUMENT.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bloomline_hash_key(key: *const c_void, length: usize, seed: u64) -> u64 {
    // SAFETY: the caller lends the bytes of a key for the call.
    or_record(0, || Ok(hash_key(unsafe { lent_bytes(key, length, "key") }?, seed)))
}

/// Makes a weak 64-bit hash, or an integer key, fit for the functions that end in `_hash` and `_batch`: those need 64
/// well-mixed bits, of which the high ones pick the block. Different inputs give different outputs.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_mix(weak: u64) -> u64 {
    mix(weak)
}

/// Sets `out` to the bits per key at which the best k reaches the false-positive rate `fpr`.
///
/// BLOOMLINE_SIZING if `fpr` is not between 1.263e-8 and 1, BLOOMLINE_INVALID_ARGUMENT if `out` is null; `out` is then
/// as it was.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_bits_per_key(fpr: f64, out: Option<&mut MaybeUninit<f64>>) -> Status {
    status_of(|| {
        given(out, "out")?.write(sizing::bits_per_key(fpr)?);
        Ok(())
    })
}

/// Sets `out` to the false-positive rate at `bits_per_key` with `k` probes, by the exact model of blocks.
///
/// BLOOMLINE_SIZING if `bits_per_key` is not above 0 and at most 64 or `k` is not 1 to 16, BLOOMLINE_INVALID_ARGUMENT if
/// `out` is null; `out` is then as it was.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_fpr(bits_per_key: f64, k: u32, out: Option<&mut MaybeUninit<f64>>) -> Status {
    status_of(|| {
        given(out, "out")?.write(sizing::fpr(bits_per_key, k)?);
        Ok(())
    })
}

/// Sets `out` to the k of the lowest rate at `bits_per_key`.
///
/// BLOOMLINE_SIZING if `bits_per_key` is not above 0 and at most 64, BLOOMLINE_INVALID_ARGUMENT if `out` is null; `out`
/// is then as it was.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_best_k(bits_per_key: f64, out: Option<&mut MaybeUninit<u32>>) -> Status {
    status_of(|| {
        given(out, "out")?.write(sizing::best_k(bits_per_key)?);
        Ok(())
    })
}

/// What lookups run on: the fastest kernel of this CPU, such as "avx2". A string that is never null and never freed.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_kernel_name() -> *const c_char {
    static NAME: OnceLock<CString> = OnceLock::new();
    // A name with a NUL in it, which no kernel has, would be empty.
    NAME.get_or_init(|| CString::new(Kernel::active().name()).unwrap_or_default()).as_ptr()
}

/// The library's version, such as "0.1.0". A string that is never null and never freed.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_version() -> *const c_char {
    const VERSION: &CStr =
        match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
            Ok(version) => version,
            Err(_) => panic!("a version has no NUL"),
        };
    VERSION.as_ptr()
}
