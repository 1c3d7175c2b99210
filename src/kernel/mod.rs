//! The kernels: one implementation of inserts and lookups for each instruction set, their list, and the choice of one.
//!
//! Each kernel is a file with the same four functions in the same order. All kernels set and test the bits that
//! [`mask`](crate::mask) defines.
//!
//! x86-64 kernels are compiled only where the target has SSE2: bare-metal targets (`x86_64-unknown-none`,
//! `x86_64-unknown-uefi`) do without vector registers, and the compiler cannot compile a function for AVX2 there.

use core::fmt;
use core::sync::atomic;

#[cfg(target_has_atomic = "64")]
use crate::blocks::SharedBlock;
use crate::blocks::{Block, BlockSlice, Blocks};
use crate::error::UnknownKernelError;
use crate::mask::ProbeCount;
use crate::short::ShortLanes;

#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
mod avx2;
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
mod avx512;
mod batch;
mod choice;
// Not on x32, whose pointers fill half a register: the assembly adds whole ones.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2", target_pointer_width = "64"))]
mod inlined;
#[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
mod neon;
mod portable;
mod prefetch;
mod reference;
mod rows;
#[cfg(target_has_atomic = "64")]
mod shared;
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
mod sse41;

use batch::{Inserts, Lookups};
use choice::Choice;
#[cfg(target_has_atomic = "64")]
pub(crate) use prefetch::each_ahead;
pub(crate) use prefetch::{AHEAD, LARGE_BLOCKS, prefetch};

/// An implementation of inserts and lookups that this CPU can run. All kernels set and test the same bits; they differ
/// only in speed.
///
/// Filters use the fastest kernel by default. [`limit`](Self::limit) and the environment variable `BLOOMLINE_KERNEL`
/// exclude the fastest ones. [`with_kernel`](crate::BloomFilter::with_kernel) selects another for one filter, for tests
/// and benchmarks.
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
pub struct Kernel(Isa);

/// On every target, so that a limit means the same everywhere. Fastest first, as in [`Isa::ALL`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Isa {
    Avx512,
    Avx2,
    Sse41,
    Neon,
    // Faster than the reference even on SSE2, which cannot shift each lane by its own count: 4.1 against 9.6 ns
    // (Zen 5, 2026-11).
    Portable,
    Reference,
}

/// Whether the CPU has a feature or, without `std`, whether the build requires it.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
macro_rules! has {
    ($feature:tt) => {{
        #[cfg(feature = "std")]
        let has = std::arch::is_x86_feature_detected!($feature);
        #[cfg(not(feature = "std"))]
        let has = cfg!(target_feature = $feature);
        has
    }};
}

impl Isa {
    /// In the order of their declaration. Tests, fuzz targets and benches iterate over [`Kernel::available`], so a
    /// kernel added here is tested.
    const ALL: &[Self] =
        &[Self::Avx512, Self::Avx2, Self::Sse41, Self::Neon, Self::Portable, Self::Reference];

    fn is_supported(self) -> bool {
        match self {
            #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
            Self::Avx512 => has!("avx512f") && has!("bmi1") && has!("bmi2"),
            #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
            Self::Avx2 => has!("avx2") && has!("bmi1") && has!("bmi2"),
            #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
            Self::Sse41 => has!("sse4.1"),
            // The kernel assumes little-endian words.
            #[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
            Self::Neon => cfg!(target_endian = "little"),
            Self::Portable | Self::Reference => true,
            _ => false,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Avx512 => "avx512",
            Self::Avx2 => "avx2",
            Self::Sse41 => "sse4.1",
            Self::Neon => "neon",
            Self::Portable => "portable",
            Self::Reference => "reference",
        }
    }

    fn by_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|isa| isa.name() == name)
    }

    /// The index in [`Isa::ALL`] of the fastest that this CPU has, from this one on.
    fn or_slower(self) -> usize {
        let supported = Self::ALL.iter().enumerate().skip(self as usize).find(|(_, isa)| isa.is_supported());
        supported.map_or(Self::Reference as usize, |(index, _)| index)
    }

    /// The limit that the environment sets.
    fn limit() -> Self {
        #[cfg(feature = "std")]
        if let Some(name) = std::env::var_os("BLOOMLINE_KERNEL").filter(|name| !name.is_empty()) {
            // To ignore a misspelt limit would show when the host fails; a limit that is too strict costs only time.
            return name.to_str().and_then(Self::by_name).unwrap_or(Self::Portable);
        }
        Self::ALL[0]
    }
}

/// The index in [`Isa::ALL`] of the fastest kernel of this CPU that the limits allow, once it is requested.
static ACTIVE: Choice = Choice(atomic::AtomicU8::new(choice::UNMADE));

impl Kernel {
    /// The kernels that this CPU can run, fastest first, except those above the [limit](Self::limit).
    pub fn available() -> impl Iterator<Item = Self> {
        let allowed = &Isa::ALL[Self::active().0 as usize..];
        allowed.iter().copied().filter(|isa| isa.is_supported()).map(Self)
    }

    /// The fastest available kernel, which filters use by default. Detected once per process.
    #[inline]
    pub fn active() -> Self {
        Self(ACTIVE.get(Isa::ALL, || Isa::limit().or_slower()))
    }

    /// Limits this process to the kernel of this name. If this CPU lacks it, the next one in the list of
    /// [`by_name`](Self::by_name) that it has takes its place. Returns the active kernel.
    ///
    /// Call it before you make filters: existing ones keep their kernel. A limit never makes the process faster: the
    /// strictest of all limits holds, and that of the environment is one of them. Use it for an option of your program.
    ///
    /// # The environment
    ///
    /// The variable `BLOOMLINE_KERNEL` sets a limit without a change to the program, for example
    /// `BLOOMLINE_KERNEL=avx2` where AVX-512 must not be used. It is read once, when a kernel is first needed. Unset or
    /// empty, it limits nothing. If it is not a kernel's name, the limit is `portable`, the fastest kernel that is safe
    /// on every CPU. Without the feature `std` it is not read.
    ///
    /// # What it does not limit
    ///
    /// Instructions that the build's target features include: the compiler may use them anywhere, in the kernels too.
    /// A build with `target-cpu=native` on a CPU with AVX-512 runs only on such CPUs, whatever the limit.
    ///
    /// # Errors
    ///
    /// If no kernel has this name, on any CPU. Nothing is limited then.
    ///
    /// # Examples
    ///
    /// ```
    /// use bloomline::Kernel;
    ///
    /// let active = Kernel::limit("avx2")?; // on aarch64 this is NEON
    /// assert_ne!(active.name(), "avx512");
    /// # Ok::<(), bloomline::UnknownKernelError>(())
    /// ```
    pub fn limit(name: &str) -> Result<Self, UnknownKernelError> {
        let limit = Isa::by_name(name).ok_or_else(|| UnknownKernelError { name: name.into() })?;
        // The environment may have set a stricter limit.
        Self::active();
        Ok(Self(ACTIVE.make(Isa::ALL, || limit.or_slower())))
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
            // SAFETY: a `Kernel` of `Isa::Avx512` is made only after `Isa::is_supported` found avx512f, bmi1
            // and bmi2 on this CPU.
            #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
            Isa::Avx512 => unsafe { avx512::$function($($argument),*) },
            // SAFETY: a `Kernel` of `Isa::Avx2` is made only after `Isa::is_supported` found avx2, bmi1 and bmi2
            // on this CPU.
            #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
            Isa::Avx2 => unsafe { avx2::$function($($argument),*) },
            // SAFETY: a `Kernel` of `Isa::Sse41` is made only after `Isa::is_supported` found sse4.1 on this CPU.
            #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
            Isa::Sse41 => unsafe { sse41::$function($($argument),*) },
            #[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
            Isa::Neon => neon::$function($($argument),*),
            Isa::Reference => reference::$function($($argument),*),
            // Of the others, this target has only `Isa::Portable`.
            _ => portable::$function($($argument),*),
        }
    };
}

/// What the kernel's inline assembly returns, or `None` if the kernel has none.
macro_rules! inlined {
    ($kernel:expr, $avx512:ident, $avx2:ident, ($($argument:expr),*)) => {
        match $kernel.0 {
            // SAFETY: as in `dispatch!`, and the blocks are borrowed, at least one.
            #[cfg(all(target_arch = "x86_64", target_feature = "sse2", target_pointer_width = "64"))]
            Isa::Avx512 => Some(unsafe { inlined::$avx512($($argument),*) }),
            // Not on Windows, where a function must preserve `xmm6` to `xmm15`. The assembly declares all of them because
            // of `vzeroupper`, so a function that inlines it would save and restore ten registers with any kernel.
            //
            // SAFETY: as above.
            #[cfg(all(target_arch = "x86_64", target_feature = "sse2", target_pointer_width = "64"))]
            Isa::Avx2 if !cfg!(windows) => Some(unsafe { inlined::$avx2($($argument),*) }),
            _ => None,
        }
    };
}

impl Kernel {
    /// Sets the bits of `hash` in its block. Returns whether any of them was clear.
    #[inline]
    pub(crate) fn insert(self, blocks: &mut Blocks, hash: u64, k: ProbeCount) -> bool {
        if self.is_of_build() {
            return dispatch!(self, insert(blocks.block_of_mut(hash), hash, k));
        }
        let inlined = inlined!(self, insert_avx512, insert_avx2, (blocks, hash, k));
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
        if self.is_of_build() {
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
            Isa::Avx512 => unsafe { avx512::contains_short(lanes, hash, k) },
            // SAFETY: as in `dispatch!`.
            #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
            Isa::Avx2 => unsafe { avx2::contains_short(lanes, hash, k) },
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
            Isa::Avx512 => unsafe { avx512::contains_any(filters, hash, k) },
            // SAFETY: as in `dispatch!`.
            #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
            Isa::Avx2 => unsafe { avx2::contains_any(filters, hash, k) },
            _ => filters.fold(false, move |any, blocks| {
                any | dispatch!(kernel, contains(blocks.block_of(hash), hash, k))
            }),
        }
    }

    /// [`insert`](Self::insert) into a block that other threads may change at the same time.
    #[cfg(target_has_atomic = "64")]
    #[inline]
    pub(crate) fn insert_shared(self, block: &SharedBlock, hash: u64, k: ProbeCount) -> bool {
        if self.contains_shared(block, hash, k) {
            return false;
        }
        let mut mask = [0; size_of::<Block>()];
        Self::insert_by_call(&mut mask, hash, k, self);
        shared::insert(block, bytemuck::cast(mask))
    }

    /// [`contains`](Self::contains) in a block that other threads may change at the same time.
    #[cfg(target_has_atomic = "64")]
    #[inline]
    pub(crate) fn contains_shared(self, block: &SharedBlock, hash: u64, k: ProbeCount) -> bool {
        let inlined = inlined!(self, contains_avx512, contains_avx2, ((block.as_ptr().cast(), 1), hash, k));
        inlined.unwrap_or_else(|| Self::contains_by_call(&bytemuck::cast(shared::load(block)), hash, k, self))
    }

    /// Returns whether this is the fastest kernel that the build's target features include. The compiler then inlines
    /// the kernel anywhere and schedules it better than the assembly.
    #[inline]
    fn is_of_build(self) -> bool {
        match self.0 {
            Isa::Avx512 => cfg!(target_feature = "avx512f"),
            Isa::Avx2 => cfg!(target_feature = "avx2") && !cfg!(target_feature = "avx512f"),
            Isa::Sse41 => cfg!(target_feature = "sse4.1") && !cfg!(target_feature = "avx2"),
            Isa::Neon => cfg!(all(target_arch = "aarch64", target_feature = "neon")),
            Isa::Portable => {
                !cfg!(any(all(target_arch = "x86_64", target_feature = "sse2"), target_feature = "neon"))
            }
            Isa::Reference => false,
        }
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
}
