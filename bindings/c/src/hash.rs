//! Hashes, sizes, and the library's version and kernel.

use core::ffi::{c_char, c_void};
use core::mem::MaybeUninit;
use std::sync::OnceLock;

use bloomline_core::sstable::FilterPolicy;
use bloomline_core::{Kernel, hash_key, mix, sizing};

use crate::buffer::{not_null, with_key};
use crate::error::{Status, status_of};

/// Returns the hash by which a filter with this `seed`, 0 by default, places the key of `length` bytes. It is the same
/// on every CPU. If you probe many filters with one seed for a key, hash the key once. If you probe one filter, prefer
/// `bloomline_filter_hash_key`, which cannot be called with a wrong seed.
///
/// Returns 0 for a null key whose length is not 0. `bloomline_last_status` is then BLOOMLINE_INVALID_ARGUMENT.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bloomline_hash_key(key: *const c_void, length: usize, seed: u64) -> u64 {
    // SAFETY: this function's contract is the same.
    unsafe { with_key(0, key, length, |key| Ok(hash_key(key, seed))) }
}

/// Mixes a weak 64-bit hash for the functions that end in `_hash` and `_batch`. They need 64 well-mixed bits, and the
/// high bits pick the block. Different inputs give different outputs. Do not use it for integer keys, which the
/// interfaces for other languages would then not find. See `bloomline_filter_insert`.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_mix(weak: u64) -> u64 {
    mix(weak)
}

/// Sets `out` to the bits per key at which a filter of many keys reaches the false-positive rate `fpr`, with the number
/// of modules of `bloomline_filter_with_fpr`.
///
/// Returns BLOOMLINE_SIZING if `fpr` is not in [5.432e-13, 1), or BLOOMLINE_INVALID_ARGUMENT if `out` is null. `out` is
/// then unchanged.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_bits_per_key(fpr: f64, out: Option<&mut MaybeUninit<f64>>) -> Status {
    status_of(|| {
        not_null(out, "out")?.write(FilterPolicy::with_fpr(fpr)?.bits_per_key());
        Ok(())
    })
}

/// Sets `out` to the false-positive rate of one module at `bits_per_key` with `k` probes, by the exact model of blocks.
///
/// Returns BLOOMLINE_SIZING if `bits_per_key` is not in (0, 64] or `k` is not 1 to 16, or BLOOMLINE_INVALID_ARGUMENT if
/// `out` is null. `out` is then unchanged.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_fpr(bits_per_key: f64, k: u32, out: Option<&mut MaybeUninit<f64>>) -> Status {
    status_of(|| {
        not_null(out, "out")?.write(sizing::fpr(bits_per_key, k)?);
        Ok(())
    })
}

/// Sets `out` to the k with the lowest false-positive rate of one module at `bits_per_key`, or to 8 instead of 9 where 9
/// would save less than 1% of the bits, because a lookup with 9 probes can be 1.6 times slower.
///
/// Returns BLOOMLINE_SIZING if `bits_per_key` is not in (0, 64], or BLOOMLINE_INVALID_ARGUMENT if `out` is null. `out`
/// is then unchanged.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_best_k(bits_per_key: f64, out: Option<&mut MaybeUninit<u32>>) -> Status {
    status_of(|| {
        not_null(out, "out")?.write(sizing::best_k(bits_per_key)?);
        Ok(())
    })
}

/// Returns the name of the kernel that lookups use, such as "avx2". It is the fastest on this CPU that the environment
/// variable BLOOMLINE_KERNEL allows. If that is set, it names the fastest kernel to use, one of "avx512", "avx2",
/// "sse4.1", "neon", "portable" and "reference", from fast to slow. Any other name means "portable". The variable is
/// read once, when a kernel is first needed. The name is never null. Do not free it.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_kernel_name() -> *const c_char {
    static NAME: OnceLock<[u8; 16]> = OnceLock::new();
    let with_nul = || {
        let (mut room, name) = ([0; 16], Kernel::active().name().as_bytes());
        room[..name.len()].copy_from_slice(name);
        room
    };
    NAME.get_or_init(with_nul).as_ptr().cast()
}

/// Returns the library's version, such as "0.1.0". It is never null. Do not free it.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}
