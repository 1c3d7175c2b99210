//! The list of kernels, which each implement inserts and lookups for one instruction set, and the choice of one.
//!
//! Each kernel is a file with the same functions in the same order. All kernels set and test the bits that
//! [`mask`](crate::mask) defines.
//!
//! x86-64 kernels are compiled only where the target has SSE2, because bare-metal targets (`x86_64-unknown-none`,
//! `x86_64-unknown-uefi`) do without vector registers, and the compiler cannot compile a function for AVX2 there.

use core::fmt;
use core::sync::atomic::AtomicU8;

use crate::bitmap;
#[cfg(target_has_atomic = "64")]
use crate::blocks::SharedSlice;
use crate::blocks::{Block, BlockSlice, BlockSliceMut};
use crate::detect;
use crate::lanes::ShortLanes;
use crate::mask::ProbeCount;

#[cfg(target_has_atomic = "64")]
mod atomic;
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
mod avx2;
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
mod avx512;
mod bank;
mod batch;
mod choice;
// Not on x32, whose pointers fill half a register, because the assembly adds whole ones.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2", target_pointer_width = "64"))]
mod inlined;
mod several;
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
mod sync;
mod tables;

#[cfg(target_has_atomic = "64")]
pub(crate) use atomic::{insert_shared, set_shared};
pub(crate) use bank::{ROWS, Square, prefetch as prefetch_rows};
pub(crate) use batch::{Changed, DISTANCE};
use batch::{Lookups, PAIR, WORD};
use choice::Choice;
pub(crate) use prefetch::{large, prefetch, with_later};
pub(crate) use several::Inlined;
pub(crate) use tables::for_each_probe;

/// An implementation of inserts and lookups that this CPU can run. All kernels set and test the same bits, and differ
/// only in speed.
///
/// Filters use the fastest kernel by default. Tests and benchmarks choose a filter's kernel by `with_kernel`.
///
/// # The environment
///
/// The variable `BLOOMLINE_KERNEL` excludes all kernels that are faster than the one that it names, in the whole
/// process. For example, `BLOOMLINE_KERNEL=avx2` avoids AVX-512. The names are, fastest first, `avx512`, `avx2`,
/// `sse4.1`, `neon`, `portable` and `reference`. If the CPU lacks the named kernel, filters use the next one in this
/// list that it has.
///
/// The variable is read once, when a kernel is first needed, and only with the feature `std`. Unset or empty, it
/// excludes nothing. If it names no kernel, filters use `portable`, the fastest kernel that is safe on every CPU, and
/// with the feature `log` a warning says so.
///
/// It does not exclude instructions that the build's target features include, because the compiler may use them
/// anywhere, in the kernels too. For example, a build with `target-cpu=native` on a CPU with AVX-512 runs only on such
/// CPUs.
///
/// # Examples
///
/// ```
/// use bloomline::Kernel;
///
/// println!("lookups run on {}", Kernel::active());
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Kernel(KernelId);

/// Makes [`KernelId`], the list of the kernels that this target has, and `dispatch!`. `$d` is a dollar sign.
macro_rules! kernels {
    ($d:tt $($(#[$target:meta])* $id:ident, $module:ident, $name:literal, $is_supported:expr, $is_compiled_in:expr;)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        enum KernelId {
            $($(#[$target])* $id,)*
        }

        /// The kernels of all targets, fastest first, so that `BLOOMLINE_KERNEL` means the same everywhere.
        const NAMES: &[&str] = &[$($name),*];

        impl KernelId {
            /// Tests, fuzz targets and benches iterate over [`Kernel::available`], so a kernel added here is tested.
            const ALL: &[Self] = &[$($(#[$target])* Self::$id,)*];

            /// Calls `work` with the kernel of this index in [`KernelId::ALL`]. Each call has a constant, so the compiler
            /// removes the branches of other kernels.
            #[inline(always)]
            fn with_index<T>(index: u8, work: impl Fn(Self) -> Option<T>) -> Option<T> {
                match index {
                    $($(#[$target])* index if index == Self::$id as u8 => work(Self::$id),)*
                    _ => None,
                }
            }

            fn name(self) -> &'static str {
                match self {
                    $($(#[$target])* Self::$id => $name,)*
                }
            }

            /// Returns whether the CPU can run the kernel.
            fn is_supported(self) -> bool {
                match self {
                    $($(#[$target])* Self::$id => $is_supported,)*
                }
            }

            /// Returns whether this is the fastest kernel that the build's target features include. The compiler can
            /// inline it anywhere.
            #[inline]
            fn is_compiled_in(self) -> bool {
                match self {
                    $($(#[$target])* Self::$id => $is_compiled_in,)*
                }
            }
        }

        /// Calls the function of this name in the kernel's file.
        macro_rules! dispatch {
            ($d kernel:expr, $d function:ident($d($d argument:expr),*)) => {
                match $d kernel.0 {
                    $(
                        $(#[$target])*
                        // Some kernels, and some functions, need no feature.
                        #[allow(unused_unsafe)]
                        // SAFETY: Before a `Kernel` of this id was made, `KernelId::is_supported` found that this CPU
                        // has the features that the file's functions enable.
                        KernelId::$id => unsafe { $module::$d function($d($d argument),*) },
                    )*
                }
            };
        }
    };
}

// Fastest first. `portable` is faster than `reference` even on SSE2, which cannot shift each lane by its own count.
kernels! {
    $
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    Avx512, avx512, "avx512", detect::has!("avx512f", "bmi1", "bmi2"), cfg!(target_feature = "avx512f");
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    Avx2, avx2, "avx2", detect::has!("avx2", "bmi1", "bmi2"),
        cfg!(all(target_feature = "avx2", not(target_feature = "avx512f")));
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    Sse41, sse41, "sse4.1", detect::has!("sse4.1"),
        cfg!(all(target_feature = "sse4.1", not(target_feature = "avx2")));
    #[cfg(all(target_arch = "aarch64", target_feature = "neon", target_endian = "little"))]
    Neon, neon, "neon", true, true;
    Portable, portable, "portable", true, Self::ALL.len() == 2;
    Reference, reference, "reference", true, false;
}

/// k, and the assembly's constants for it.
#[derive(Clone, Copy)]
pub(crate) struct Probes {
    k: ProbeCount,
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2", target_pointer_width = "64"))]
    constants: &'static inlined::Constants,
}

impl From<ProbeCount> for Probes {
    #[inline(always)]
    fn from(k: ProbeCount) -> Self {
        Self {
            k,
            #[cfg(all(target_arch = "x86_64", target_feature = "sse2", target_pointer_width = "64"))]
            constants: inlined::Constants::of(k),
        }
    }
}

/// Whether a kernel that is compiled in looks up by compiled code, not by the assembly of `inlined`. In a loop,
/// compiled code for AVX2 runs up to 1.25 times as long as the assembly.
const COMPILED_LOOKUPS: bool = cfg!(any(
    miri,
    windows,
    target_feature = "avx512f",
    not(all(target_arch = "x86_64", target_pointer_width = "64", target_feature = "avx2"))
));

impl KernelId {
    /// The index in [`KernelId::ALL`] of the fastest kernel that this CPU has and the environment allows.
    fn fastest() -> u8 {
        let allowed = detect::allowed(NAMES);
        let fastest = Self::ALL.iter().position(|id| allowed.contains(&id.name()) && id.is_supported());
        fastest.unwrap_or(Self::ALL.len() - 1) as u8
    }
}

/// The choice of [`KernelId::fastest`], once it is requested.
static ACTIVE: Choice = Choice(AtomicU8::new(choice::UNMADE));

impl Kernel {
    /// The kernels that this CPU can run and the [environment](Self#the-environment) allows, fastest first. For tests
    /// and benchmarks.
    #[doc(hidden)]
    pub fn available() -> impl Iterator<Item = Self> {
        let allowed = &KernelId::ALL[Self::active().0 as usize..];
        allowed.iter().copied().filter(|id| id.is_supported()).map(Self)
    }

    /// The kernel that filters use, the fastest that this CPU can run and the [environment](Self#the-environment)
    /// allows. Detected once per process.
    #[inline]
    pub fn active() -> Self {
        Self(ACTIVE.get(|index| KernelId::with_index(index, Some), KernelId::fastest))
    }

    /// Calls `work` with the [`active`](Self::active) kernel, as a constant. `None` before the kernel is chosen.
    #[inline(always)]
    pub(crate) fn with_active<T>(work: impl Fn(Self) -> Option<T>) -> Option<T> {
        ACTIVE.made(|index| KernelId::with_index(index, |id| work(Self(id))))
    }

    /// The kernel's name, as [`BLOOMLINE_KERNEL`](Self#the-environment) has it.
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

impl Kernel {
    /// Sets the bits of `hash` in its block. Returns whether any of them was clear.
    #[inline(always)]
    fn insert(self, mut blocks: BlockSliceMut<'_>, hash: u64, k: ProbeCount) -> bool {
        match self.insert_inlined(blocks.reborrow(), hash, k) {
            Some(changed) => changed,
            None => dispatch!(self, insert(blocks.block_of(hash), hash, k)),
        }
    }

    /// [`insert`](Self::insert) by code that the compiler can inline anywhere. `None` if the kernel has none, and then
    /// changes nothing.
    #[inline(always)]
    pub(crate) fn insert_inlined(
        self,
        mut blocks: BlockSliceMut<'_>,
        hash: u64,
        k: impl Into<Probes>,
    ) -> Option<bool> {
        let k = k.into();
        if self.0.is_compiled_in() {
            return Some(dispatch!(self, insert(blocks.block_of(hash), hash, k.k)));
        }
        self.insert_by_assembly(blocks, hash, k)
    }

    /// [`insert`](Self::insert) by the kernel's inline assembly. `None` if it has none, and then changes nothing.
    #[inline(always)]
    #[allow(unused_variables, unused_mut, reason = "only x86-64 has assembly")]
    fn insert_by_assembly(self, mut blocks: BlockSliceMut<'_>, hash: u64, k: Probes) -> Option<bool> {
        let all = (blocks.as_mut_slice().as_mut_ptr(), blocks.as_slice().as_slice().len());
        match self.0 {
            // SAFETY: As in `dispatch!`, and the blocks are mutably borrowed, and at least one.
            #[cfg(all(target_arch = "x86_64", target_feature = "sse2", target_pointer_width = "64"))]
            KernelId::Avx512 if inlined::AVX512 => Some(unsafe { inlined::insert_avx512(all, hash, k) }),
            // SAFETY: As above.
            #[cfg(all(target_arch = "x86_64", target_feature = "sse2", target_pointer_width = "64"))]
            KernelId::Avx2 if inlined::AVX2 => Some(unsafe { inlined::insert_avx2(all, hash, k) }),
            _ => None,
        }
    }

    /// Returns whether single inserts are calls, which run 1.7 times as long as a batch's.
    pub(crate) fn is_called(self) -> bool {
        let is_called = match self.0 {
            #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
            KernelId::Sse41 => true,
            id => id == KernelId::Portable,
        };
        is_called && !self.0.is_compiled_in()
    }

    /// Returns whether all bits of `hash` are set in its block.
    #[inline(always)]
    pub(crate) fn contains(self, blocks: BlockSlice<'_>, hash: u64, k: ProbeCount) -> bool {
        match self.contains_inlined(blocks, hash, k) {
            Some(answer) => answer,
            None => self.contains_by_kernel(blocks, hash, k),
        }
    }

    /// [`contains`](Self::contains) by the function in the kernel's file.
    #[inline(always)]
    fn contains_by_kernel(self, blocks: BlockSlice<'_>, hash: u64, k: ProbeCount) -> bool {
        dispatch!(self, contains(blocks.block_of(hash), hash, k))
    }

    /// [`contains`](Self::contains) by code that the compiler can inline anywhere. `None` if the kernel has none.
    #[inline(always)]
    pub(crate) fn contains_inlined(
        self,
        blocks: BlockSlice<'_>,
        hash: u64,
        k: impl Into<Probes>,
    ) -> Option<bool> {
        let k = k.into();
        if COMPILED_LOOKUPS && self.0.is_compiled_in() {
            return Some(dispatch!(self, contains(blocks.block_of(hash), hash, k.k)));
        }
        // SAFETY: The blocks are borrowed, and at least one.
        unsafe { self.contains_by_assembly((blocks.as_slice().as_ptr(), blocks.as_slice().len()), hash, k) }
    }

    /// Looks up by the kernel's inline assembly. Returns `None` if the kernel has no assembly.
    ///
    /// # Safety
    ///
    /// `blocks` must be the address and the number of blocks, at least one. Other threads may set bits in them.
    #[inline(always)]
    #[allow(unused_variables, reason = "only x86-64 has assembly")]
    unsafe fn contains_by_assembly(
        self,
        blocks: (*const Block, usize),
        hash: u64,
        k: Probes,
    ) -> Option<bool> {
        match self.0 {
            // SAFETY: As in `dispatch!`, and the caller guarantees the blocks.
            #[cfg(all(target_arch = "x86_64", target_feature = "sse2", target_pointer_width = "64"))]
            KernelId::Avx512 if inlined::AVX512 => Some(unsafe { inlined::contains_avx512(blocks, hash, k) }),
            // SAFETY: As above.
            #[cfg(all(target_arch = "x86_64", target_feature = "sse2", target_pointer_width = "64"))]
            KernelId::Avx2 if inlined::AVX2 => Some(unsafe { inlined::contains_avx2(blocks, hash, k) }),
            _ => None,
        }
    }

    /// Like `contains_each_by_call`.
    #[cfg(target_has_atomic = "64")]
    #[inline(never)]
    fn contains_by_call(blocks: SharedSlice<'_>, hash: u64, k: ProbeCount, kernel: Self) -> bool {
        let copy = bytemuck::cast(shared::load(blocks.block_of(hash)));
        dispatch!(kernel, contains(&copy, hash, k))
    }

    /// [`contains`](Self::contains) in a short filter, whose blocks are not always contiguous.
    #[inline(never)]
    pub(crate) fn contains_short(lanes: ShortLanes<'_>, hash: u64, k: ProbeCount, kernel: Self) -> bool {
        match kernel.0 {
            // SAFETY: As in `dispatch!`.
            #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
            KernelId::Avx512 => unsafe { avx512::contains_short(lanes, hash, k) },
            // SAFETY: As in `dispatch!`.
            #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
            KernelId::Avx2 => unsafe { avx2::contains_short(lanes, hash, k) },
            // Copies the lanes into a block. This is slower, because the CPU waits until it can load the copy as a
            // vector, but it needs no code per kernel.
            _ => dispatch!(kernel, contains(&lanes.block_of(hash), hash, k)),
        }
    }

    /// Calls `add` for each filter with what it returned for the filters before, first 0, and with whether the filter
    /// [`contains`](Self::contains) the hash.
    // Probes all filters, even after a hit. Which filter has a key is practically random, so stopping at a hit would
    // cost more in branch mispredictions than it saves in cache lines. Only if the filters are far larger than the
    // caches are both equally fast. Separate lookups, each with a mask of its own, are twice as slow.
    #[inline(always)]
    pub(crate) fn fold_contains<'a>(
        filters: impl Iterator<Item = BlockSlice<'a>>,
        hash: u64,
        k: ProbeCount,
        kernel: Self,
        add: impl Fn(u64, bool) -> u64,
    ) -> u64 {
        match kernel.0 {
            // SAFETY: As in `dispatch!`.
            #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
            KernelId::Avx512 => unsafe { avx512::fold_contains(filters, hash, k, add) },
            // SAFETY: As in `dispatch!`.
            #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
            KernelId::Avx2 => unsafe { avx2::fold_contains(filters, hash, k, add) },
            _ => filters.fold(0, move |found, blocks| {
                add(found, dispatch!(kernel, contains(blocks.block_of(hash), hash, k)))
            }),
        }
    }

    /// Which of four blocks have all bits of `hash`, one bit each. The last block's bit is the lowest. The mask is made
    /// only once.
    // A function that keeps the mask in registers for many blocks runs 1.5 times as long for four, because it is
    // called.
    #[inline(always)]
    pub(crate) fn contains_each(self, blocks: [&Block; 4], hash: u64, k: ProbeCount) -> u64 {
        match self.0 {
            // SAFETY: As in `dispatch!`.
            #[cfg(all(target_arch = "x86_64", target_feature = "sse2", target_pointer_width = "64"))]
            KernelId::Avx512 if inlined::AVX512 => unsafe {
                inlined::contains_each_avx512(blocks, hash, k.into())
            },
            // SAFETY: As above.
            #[cfg(all(target_arch = "x86_64", target_feature = "sse2", target_pointer_width = "64"))]
            KernelId::Avx2 if inlined::AVX2 => unsafe { inlined::contains_each_avx2(blocks, hash, k.into()) },
            _ => {
                let [a, b, c, d] = blocks;
                Self::contains_each_by_call(a, b, c, d, hash, k, self)
            }
        }
    }

    /// Not inlined. The blocks are separate arguments, so that they are in registers, and the kernel is the last
    /// argument, so that the arguments before it are passed on in the same registers.
    #[inline(never)]
    fn contains_each_by_call(
        a: &Block,
        b: &Block,
        c: &Block,
        d: &Block,
        hash: u64,
        k: ProbeCount,
        kernel: Self,
    ) -> u64 {
        let contains = |block| u64::from(dispatch!(kernel, contains(block, hash, k)));
        contains(a) << 3 | contains(b) << 2 | contains(c) << 1 | contains(d)
    }

    /// [`contains`](Self::contains) in blocks that other threads may change at the same time. Reads each lane by a relaxed
    /// load, or all lanes by assembly that stands for these loads, as `inlined` explains.
    #[cfg(target_has_atomic = "64")]
    #[inline(always)]
    pub(crate) fn contains_shared(self, blocks: SharedSlice<'_>, hash: u64, k: impl Into<Probes>) -> bool {
        let k = k.into();
        let all = (blocks.as_slice().as_ptr().cast(), blocks.as_slice().len());
        // SAFETY: The blocks are borrowed, and at least one.
        let answer = unsafe { self.contains_by_assembly(all, hash, k) };
        answer.unwrap_or_else(|| Self::contains_by_call(blocks, hash, k.k, self))
    }

    /// Sets bit `s % 64` of `found[s / 64]` if slot s of a bank possibly has the hash, whose region is given. Finds as
    /// many slots as `found` has bits.
    #[inline]
    pub(crate) fn find(self, region: &[u8], hash: u64, k: ProbeCount, found: &mut [u64]) {
        dispatch!(self, find(region, hash, k, found));
    }

    /// Transposes one block of 64 filters, to or from the words of a bank's rows.
    #[inline]
    pub(crate) fn transpose(self, square: &mut Square) {
        dispatch!(self, transpose(square))
    }

    /// [`insert`](Self::insert) for each hash, in its block. Writes whether it changed a bit to `changed`, which is as
    /// long as `hashes`.
    pub(crate) fn insert_batch<C: Changed>(
        self,
        mut blocks: BlockSliceMut<'_>,
        hashes: &[u64],
        k: ProbeCount,
        changed: &mut [C],
    ) {
        let (pairs, odd) = hashes.as_chunks();
        let (changed, changed_odd) = changed.as_chunks_mut::<PAIR>();
        // Owned blocks do not straddle two cache lines.
        let (early, late) = batch::split::<1, _, _>(blocks.as_slice(), pairs, changed);
        if let Some(early) = early {
            dispatch!(self, insert_batch(blocks.reborrow(), k, early));
        }
        dispatch!(self, insert_batch(blocks.reborrow(), k, late));
        for (changed, &hash) in changed_odd.iter_mut().zip(odd) {
            *changed = C::of(self.insert(blocks.reborrow(), hash, k));
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
        let (pairs, odd) = hashes.as_chunks::<PAIR>();
        let (found, found_odd) = found.as_chunks_mut::<PAIR>();
        if prefetch::straddle(blocks) {
            self.look_up(blocks, k, batch::split::<2, _, _>(blocks, pairs, found));
        } else {
            self.look_up(blocks, k, batch::split::<1, _, _>(blocks, pairs, found));
        }
        for (found, &hash) in found_odd.iter_mut().zip(odd) {
            *found = self.contains(blocks, hash, k);
        }
    }

    /// [`contains_batch`](Self::contains_batch) into a bitmap, in which bit `i % 8` of byte `i / 8` is of hash i.
    /// `found` has ⌈hashes / 8⌉ bytes.
    pub(crate) fn contains_bitmap(
        self,
        blocks: BlockSlice<'_>,
        hashes: &[u64],
        k: ProbeCount,
        found: &mut [u8],
    ) {
        let (words, rest) = hashes.as_chunks::<WORD>();
        let (found, found_rest) = found.split_at_mut(WORD / 8 * words.len());
        let found = found.as_chunks_mut::<{ WORD / 8 }>().0;
        if prefetch::straddle(blocks) {
            self.look_up(blocks, k, batch::split::<2, _, _>(blocks, words, found));
        } else {
            self.look_up(blocks, k, batch::split::<1, _, _>(blocks, words, found));
        }
        bitmap::write(rest, found_rest, |hash| self.contains(blocks, hash, k));
    }

    /// Runs the early lookups, if there are any, and then the late ones.
    fn look_up(
        self,
        blocks: BlockSlice<'_>,
        k: ProbeCount,
        (early, late): (Option<impl Lookups>, impl Lookups),
    ) {
        if let Some(early) = early {
            dispatch!(self, contains_batch(blocks, k, early));
        }
        dispatch!(self, contains_batch(blocks, k, late));
    }
}
