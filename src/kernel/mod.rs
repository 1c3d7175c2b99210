//! The kernels: one implementation of inserts and lookups for each instruction set, their list, and the choice of one.
//!
//! Each kernel is a file with the same seven functions in the same order. All kernels set and test the bits that
//! [`mask`](crate::mask) defines.
//!
//! x86-64 kernels are compiled only where the target has SSE2: bare-metal targets (`x86_64-unknown-none`,
//! `x86_64-unknown-uefi`) do without vector registers, and the compiler cannot compile a function for AVX2 there.

use core::fmt;
use core::sync::atomic;

use crate::bitmap;
#[cfg(target_has_atomic = "64")]
use crate::blocks::SharedBlock;
use crate::blocks::{Block, BlockSlice, Blocks};
use crate::detect;
use crate::mask::ProbeCount;
#[cfg(target_has_atomic = "64")]
use crate::mask::words;
use crate::short::ShortLanes;

#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
mod avx2;
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
mod avx512;
mod bank;
mod batch;
mod choice;
// Not on x32, whose pointers fill half a register: the assembly adds whole ones.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2", target_pointer_width = "64"))]
mod inlined;
// The kernel assumes little-endian words.
#[cfg(all(target_arch = "aarch64", target_feature = "neon", target_endian = "little"))]
mod neon;
mod portable;
mod prefetch;
mod reference;
#[cfg(target_has_atomic = "64")]
mod shared;
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
mod sse41;
mod tables;

pub(crate) use bank::{ROWS, Square, prefetch as prefetch_rows};
use batch::{BitLookups, Inserts, Lookups};
use choice::Choice;
use prefetch::WORD;
#[cfg(target_has_atomic = "64")]
pub(crate) use prefetch::each_ahead;
pub(crate) use prefetch::{AHEAD, LARGE_BLOCKS, prefetch};

/// An implementation of inserts and lookups that this CPU can run. All kernels set and test the same bits; they differ
/// only in speed.
///
/// Filters use the fastest kernel by default. Tests and benchmarks select another for one filter: `with_kernel`.
///
/// # The environment
///
/// The variable `BLOOMLINE_KERNEL` excludes the kernels that are faster than the one that it names, in the whole
/// process: `BLOOMLINE_KERNEL=avx2`, say, where AVX-512 must not be used. If the CPU lacks the kernel, the next one in
/// the list of [`by_name`](Self::by_name) that it has takes its place. The variable is read once, when a kernel is first
/// needed. Unset or empty, it excludes nothing. If it names no kernel, lookups run on `portable`, the fastest kernel that
/// is safe on every CPU, and with the feature `log` a warning says so. Without the feature `std` it is not read.
///
/// It does not exclude instructions that the build's target features include: the compiler may use them anywhere, in the
/// kernels too. A build with `target-cpu=native` on a CPU with AVX-512 runs only on such CPUs.
///
/// # Examples
///
/// ```
/// use bloomline::Kernel;
///
/// println!("lookups run on {}", Kernel::active());
/// assert_eq!(Kernel::available().next(), Some(Kernel::active()));
/// let reference = Kernel::by_name("reference").expect("on every CPU");
/// # let _ = reference;
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Kernel(KernelId);

/// Makes [`KernelId`], the list of the kernels that this target has.
macro_rules! kernels {
    ($($(#[$attribute:meta])* $id:ident, $name:literal, $is_supported:expr, $is_compiled_in:expr;)*) => {
        /// The kernels of this target. `dispatch!` has an arm for each: it does not compile otherwise.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        enum KernelId {
            $($(#[$attribute])* $id,)*
        }

        impl KernelId {
            /// In the order of their declaration. Tests, fuzz targets and benches iterate over [`Kernel::available`], so
            /// a kernel added here is tested.
            const ALL: &[Self] = &[$($(#[$attribute])* Self::$id,)*];

            fn name(self) -> &'static str {
                match self {
                    $($(#[$attribute])* Self::$id => $name,)*
                }
            }

            /// Returns whether the CPU can run it.
            fn is_supported(self) -> bool {
                match self {
                    $($(#[$attribute])* Self::$id => $is_supported,)*
                }
            }

            /// Returns whether this is the fastest kernel that the build's target features include. The compiler then
            /// inlines the kernel anywhere and schedules it better than the assembly.
            #[inline]
            fn is_compiled_in(self) -> bool {
                match self {
                    $($(#[$attribute])* Self::$id => $is_compiled_in,)*
                }
            }
        }
    };
}

// Fastest first, as in `NAMES`. Portable code is faster than the reference even on SSE2, which cannot shift each lane by
// its own count: 4.1 against 9.6 ns (Zen 5, 2026-11).
kernels! {
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    Avx512, "avx512", detect::has_avx512(), cfg!(target_feature = "avx512f");
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    Avx2, "avx2", detect::has_avx2(),
        cfg!(all(target_feature = "avx2", not(target_feature = "avx512f")));
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    Sse41, "sse4.1", detect::has_sse41(), cfg!(all(target_feature = "sse4.1", not(target_feature = "avx2")));
    #[cfg(all(target_arch = "aarch64", target_feature = "neon", target_endian = "little"))]
    Neon, "neon", true, true;
    Portable, "portable", true, Self::ALL.len() == 2;
    Reference, "reference", true, false;
}

/// The kernels of all targets, fastest first, so that `BLOOMLINE_KERNEL` means the same everywhere.
const NAMES: [&str; 6] = ["avx512", "avx2", "sse4.1", "neon", "portable", "reference"];

impl KernelId {
    /// The index in [`KernelId::ALL`] of the fastest kernel that this CPU has and the environment allows.
    fn fastest() -> usize {
        let allowed = detect::allowed(&NAMES);
        let fastest = Self::ALL.iter().position(|id| allowed.contains(&id.name()) && id.is_supported());
        fastest.unwrap_or(Self::ALL.len() - 1)
    }
}

/// The index in [`KernelId::ALL`] of the fastest kernel of this CPU that the environment allows, once it is requested.
static ACTIVE: Choice = Choice(atomic::AtomicU8::new(choice::UNMADE));

impl Kernel {
    /// The kernels that this CPU can run, fastest first, except those that the [environment](Self#the-environment)
    /// excludes.
    pub fn available() -> impl Iterator<Item = Self> {
        let allowed = &KernelId::ALL[Self::active().0 as usize..];
        allowed.iter().copied().filter(|id| id.is_supported()).map(Self)
    }

    /// The fastest available kernel, which filters use by default. Detected once per process.
    #[inline]
    pub fn active() -> Self {
        Self(ACTIVE.get(KernelId::ALL, KernelId::fastest))
    }

    /// The available kernel with this name. In the order of speed the names are `"avx512"`, `"avx2"`, `"sse4.1"`,
    /// `"neon"`, `"portable"` and `"reference"`.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::available().find(|kernel| kernel.name() == name)
    }

    /// The kernel's name.
    pub fn name(self) -> &'static str {
        self.0.name()
    }
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Kernel({})", self.name())
    }
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Calls the function of this name in the kernel's file.
macro_rules! dispatch {
    ($kernel:expr, $function:ident($($argument:expr),*)) => {
        match $kernel.0 {
            // SAFETY: `KernelId::is_supported` found avx512f, bmi1 and bmi2 on this CPU before a `Kernel` of
            // `KernelId::Avx512` was made.
            #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
            KernelId::Avx512 => unsafe { avx512::$function($($argument),*) },
            // SAFETY: `KernelId::is_supported` found avx2, bmi1 and bmi2 on this CPU before a `Kernel` of
            // `KernelId::Avx2` was made.
            #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
            KernelId::Avx2 => unsafe { avx2::$function($($argument),*) },
            // SAFETY: `KernelId::is_supported` found sse4.1 on this CPU before a `Kernel` of `KernelId::Sse41` was made.
            #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
            KernelId::Sse41 => unsafe { sse41::$function($($argument),*) },
            #[cfg(all(target_arch = "aarch64", target_feature = "neon", target_endian = "little"))]
            KernelId::Neon => neon::$function($($argument),*),
            KernelId::Portable => portable::$function($($argument),*),
            KernelId::Reference => reference::$function($($argument),*),
        }
    };
}

/// What the kernel's inline assembly returns, or `None` if the kernel has none. Miri has no assembly: there the vector
/// instructions are called.
macro_rules! inlined {
    ($kernel:expr, $avx512:ident, $avx2:ident, ($($argument:expr),*)) => {
        match $kernel.0 {
            // SAFETY: as in `dispatch!`, and the blocks are borrowed, at least one.
            #[cfg(all(target_arch = "x86_64", target_feature = "sse2", target_pointer_width = "64"))]
            KernelId::Avx512 if !cfg!(miri) => Some(unsafe { inlined::$avx512($($argument),*) }),
            // Not on Windows, where a function must preserve `xmm6` to `xmm15`. The assembly declares all of them because
            // of `vzeroupper`, so a function that inlines it would save and restore ten registers with any kernel.
            //
            // SAFETY: as above.
            #[cfg(all(target_arch = "x86_64", target_feature = "sse2", target_pointer_width = "64"))]
            KernelId::Avx2 if !cfg!(any(miri, windows)) => Some(unsafe { inlined::$avx2($($argument),*) }),
            // The kernels that are called.
            _ => None,
        }
    };
}

/// Sets the bits of `mask` in a block that other threads may change at the same time.
#[cfg(target_has_atomic = "64")]
pub(crate) fn set_shared(block: &SharedBlock, mask: &Block) {
    let mask: [u64; 8] = bytemuck::cast(*mask);
    shared::insert(block, mask.into_iter().enumerate().filter(|(_, bits)| *bits != 0));
}

/// [`Kernel::insert`] into a block that other threads may change at the same time. Lane by lane, as the atomic
/// instructions need the bits, so there is one for all kernels.
///
/// With a function for each k, whose loops are unrolled: fewer instructions let a CPU begin more inserts while it waits
/// for the lines of the first. In a filter of 64 MiB, a new key takes 69 instead of 103 ns (Zen 5, 2026-11).
#[cfg(target_has_atomic = "64")]
pub(crate) fn insert_shared(block: &SharedBlock, hash: u64, k: ProbeCount) -> bool {
    const OF_K: [fn(&SharedBlock, u64) -> bool; 16] = [
        insert_shared_of::<1>,
        insert_shared_of::<2>,
        insert_shared_of::<3>,
        insert_shared_of::<4>,
        insert_shared_of::<5>,
        insert_shared_of::<6>,
        insert_shared_of::<7>,
        insert_shared_of::<8>,
        insert_shared_of::<9>,
        insert_shared_of::<10>,
        insert_shared_of::<11>,
        insert_shared_of::<12>,
        insert_shared_of::<13>,
        insert_shared_of::<14>,
        insert_shared_of::<15>,
        insert_shared_of::<16>,
    ];
    OF_K[k.get() as usize - 1](block, hash)
}

#[cfg(target_has_atomic = "64")]
fn insert_shared_of<const K: u32>(block: &SharedBlock, hash: u64) -> bool {
    let (first, second) = words(hash);
    let bits = (0..K.min(8)).map(|probe| {
        let lane = ((first >> 61) as u32 + probe) % 8;
        let bit = |word: u64| 1_u64 << ((word >> (13 + 6 * lane)) & 63);
        (lane as usize, (bit(first) | if probe + 8 < K { bit(second) } else { 0 }).to_le())
    });
    shared::insert(block, bits)
}

impl Kernel {
    /// Sets the bits of `hash` in its block. Returns whether any of them was clear.
    #[inline]
    pub(crate) fn insert(self, blocks: &mut Blocks, hash: u64, k: ProbeCount) -> bool {
        if self.0.is_compiled_in() {
            return dispatch!(self, insert(blocks.block_of_mut(hash), hash, k));
        }
        let inlined = inlined!(
            self,
            insert_avx512,
            insert_avx2,
            ((blocks.as_mut_slice().as_mut_ptr(), blocks.len()), hash, k)
        );
        inlined.unwrap_or_else(|| Self::insert_by_call(blocks.block_of_mut(hash), hash, k, self))
    }

    /// Out of line. The kernel is the last argument, so that the others are passed on in the same registers, which
    /// saves 0.2 ns.
    #[inline(never)]
    fn insert_by_call(block: &mut Block, hash: u64, k: ProbeCount, kernel: Self) -> bool {
        dispatch!(kernel, insert(block, hash, k))
    }

    /// Returns whether all bits of `hash` are set in its block.
    #[inline]
    pub(crate) fn contains(self, blocks: BlockSlice<'_>, hash: u64, k: ProbeCount) -> bool {
        if self.0.is_compiled_in() {
            return dispatch!(self, contains(blocks.block_of(hash), hash, k));
        }
        let inlined = inlined!(
            self,
            contains_avx512,
            contains_avx2,
            ((blocks.as_slice().as_ptr(), blocks.as_slice().len()), hash, k)
        );
        inlined.unwrap_or_else(|| Self::contains_by_call(blocks.block_of(hash), hash, k, self))
    }

    /// Like `insert_by_call`.
    #[inline(never)]
    fn contains_by_call(block: &Block, hash: u64, k: ProbeCount, kernel: Self) -> bool {
        dispatch!(kernel, contains(block, hash, k))
    }

    /// [`contains`](Self::contains) in a short filter, whose blocks are not always contiguous.
    #[inline(never)]
    pub(crate) fn contains_short(lanes: ShortLanes<'_>, hash: u64, k: ProbeCount, kernel: Self) -> bool {
        match kernel.0 {
            // SAFETY: as in `dispatch!`.
            #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
            KernelId::Avx512 => unsafe { avx512::contains_short(lanes, hash, k) },
            // SAFETY: as in `dispatch!`.
            #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
            KernelId::Avx2 => unsafe { avx2::contains_short(lanes, hash, k) },
            // Copies the lanes into a block. With the wait until the copy can be loaded as a vector, this takes 5 ns
            // longer than the loads of the kernels above (Zen 5, 2026-11), but needs no code per kernel.
            _ => dispatch!(kernel, contains(&lanes.block_of(hash), hash, k)),
        }
    }

    /// Returns whether any of the filters [`contains`](Self::contains) the hash.
    // Probes all filters, even after a hit. Which filter has a key is practically random, so stopping at a hit costs
    // more in branch mispredictions than it saves in cache lines: 21 against 10 ns for present keys in seven filters of
    // 78 KiB together, and 210 ns either way in 78 MiB. Separate lookups, each with a mask of its own, also take 21 ns,
    // and 17 for absent keys (Zen 5, two busy cores, 2026-11).
    #[inline(always)]
    pub(crate) fn contains_any<'a>(
        filters: impl Iterator<Item = BlockSlice<'a>>,
        hash: u64,
        k: ProbeCount,
        kernel: Self,
    ) -> bool {
        match kernel.0 {
            // SAFETY: as in `dispatch!`.
            #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
            KernelId::Avx512 => unsafe { avx512::contains_any(filters, hash, k) },
            // SAFETY: as in `dispatch!`.
            #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
            KernelId::Avx2 => unsafe { avx2::contains_any(filters, hash, k) },
            // The kernels without such a function.
            _ => filters.fold(false, move |any, blocks| {
                any | dispatch!(kernel, contains(blocks.block_of(hash), hash, k))
            }),
        }
    }

    /// [`contains`](Self::contains) in a block that other threads may change at the same time. Reads each lane by a relaxed
    /// load, or by assembly that stands for these loads: `inlined` says why.
    #[cfg(target_has_atomic = "64")]
    #[inline]
    pub(crate) fn contains_shared(self, block: &SharedBlock, hash: u64, k: ProbeCount) -> bool {
        let inlined = inlined!(self, contains_avx512, contains_avx2, ((block.as_ptr().cast(), 1), hash, k));
        inlined.unwrap_or_else(|| Self::contains_by_call(&bytemuck::cast(shared::load(block)), hash, k, self))
    }

    /// Finds the slots of a bank that possibly have the hash, in its region, for as many words as `found` has.
    #[inline]
    pub(crate) fn find(self, region: &[u8], hash: u64, k: ProbeCount, found: &mut [u64]) {
        dispatch!(self, find(region, hash, k, found));
    }

    /// Transposes one block of 64 filters, to or from the words of a bank's rows.
    #[inline]
    pub(crate) fn transpose(self, square: &mut Square) {
        dispatch!(self, transpose(square))
    }

    /// [`insert`](Self::insert) for each hash, in its block. Calls `on_unchanged` with the hashes whose bits were all
    /// set already.
    pub(crate) fn insert_batch(
        self,
        blocks: &mut Blocks,
        hashes: &[u64],
        k: ProbeCount,
        mut on_unchanged: impl FnMut(u64),
    ) {
        let (pairs, odd) = hashes.as_chunks();
        // Owned blocks do not straddle two cache lines.
        let (early, late) = prefetch::split::<false>(blocks.as_slice(), pairs);
        if early.len() != 0 {
            let on_unchanged = &mut on_unchanged;
            dispatch!(self, insert_batch(blocks, k, Inserts { hashes: early, on_unchanged }));
        }
        dispatch!(self, insert_batch(blocks, k, Inserts { hashes: late, on_unchanged: &mut on_unchanged }));
        for &hash in odd {
            if !self.insert(blocks, hash, k) {
                on_unchanged(hash);
            }
        }
    }

    /// [`contains`](Self::contains) for each hash, in its block. `found` is as long as `hashes`.
    pub(crate) fn contains_batch(
        self,
        blocks: BlockSlice<'_>,
        hashes: &[u64],
        k: ProbeCount,
        found: &mut [bool],
    ) {
        let (pairs, odd) = hashes.as_chunks();
        let (found, found_odd) = found.as_chunks_mut();
        if prefetch::straddle(blocks) {
            self.contains_pairs::<true>(blocks, pairs, k, found);
        } else {
            self.contains_pairs::<false>(blocks, pairs, k, found);
        }
        for (found, &hash) in found_odd.iter_mut().zip(odd) {
            *found = self.contains(blocks, hash, k);
        }
    }

    fn contains_pairs<const STRADDLE: bool>(
        self,
        blocks: BlockSlice<'_>,
        hashes: &[prefetch::Pair],
        k: ProbeCount,
        found: &mut [[bool; 2]],
    ) {
        let (early, late) = prefetch::split::<STRADDLE>(blocks, hashes);
        let (found_early, found_late) = found.split_at_mut(early.len());
        if !found_early.is_empty() {
            dispatch!(self, contains_batch(blocks, k, Lookups { hashes: early, found: found_early }));
        }
        dispatch!(self, contains_batch(blocks, k, Lookups { hashes: late, found: found_late }));
    }

    /// [`contains_batch`](Self::contains_batch) with a bit for each hash, the first in the lowest bit of the first byte.
    /// `found` has a byte for each eight hashes, and one for the rest.
    pub(crate) fn contains_bitmap(
        self,
        blocks: BlockSlice<'_>,
        hashes: &[u64],
        k: ProbeCount,
        found: &mut [u8],
    ) {
        let (words, rest) = hashes.as_chunks();
        let (found, found_rest) = found.split_at_mut(8 * words.len());
        let found = found.as_chunks_mut().0;
        if prefetch::straddle(blocks) {
            self.contains_words::<true>(blocks, words, k, found);
        } else {
            self.contains_words::<false>(blocks, words, k, found);
        }
        bitmap::write(rest, found_rest, |hash| self.contains(blocks, hash, k));
    }

    fn contains_words<const STRADDLE: bool>(
        self,
        blocks: BlockSlice<'_>,
        hashes: &[[u64; WORD]],
        k: ProbeCount,
        found: &mut [[u8; 8]],
    ) {
        let (early, late) = prefetch::split_words::<STRADDLE>(blocks, hashes);
        let (found_early, found_late) = found.split_at_mut(early.len());
        if !found_early.is_empty() {
            dispatch!(self, contains_bitmap(blocks, k, BitLookups { hashes: early, found: found_early }));
        }
        dispatch!(self, contains_bitmap(blocks, k, BitLookups { hashes: late, found: found_late }));
    }
}
