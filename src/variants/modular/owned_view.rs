//! `OwnedModularView`: a modular view that owns the bytes that it reads, or shares them.
#![forbid(unsafe_code)]

use core::fmt;

use super::modules::Modules;
use super::view::{CHECKSUM_BYTES, ModularView};
use crate::blocks::{BLOCK_BYTES, BlockSlice};
use crate::error::DecodeError;

/// A [`ModularView`] that owns its bytes or shares them, as an [`OwnedView`](crate::OwnedView) does for a blocked
/// filter. That page lists the types that `B` can be.
///
/// `as_ref` must return the same bytes each time. If it does not, lookups return wrong answers, but nothing panics and
/// nothing else is read. If it returns fewer bytes than the filter has, every key is possibly present.
///
/// # Examples
///
/// ```
/// use bloomline::AlignedBytes;
/// use bloomline::variants::{ModularBloomFilter, OwnedModularView};
///
/// let mut filter = ModularBloomFilter::with_fpr(1_000, 0.0001)?;
/// filter.insert("ant");
/// let cached = OwnedModularView::from_standalone(AlignedBytes::copy_of(&filter.to_standalone())?)?;
/// assert!(cached.as_view().contains("ant"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy)]
pub struct OwnedModularView<B> {
    bytes: B,
    /// Bytes of the blocks of all modules, at the start.
    blocks_len: usize,
    /// Number of checksums, which follow the blocks.
    n_checksums: usize,
    /// The view, but with one block that contains every key. It answers if `bytes` has become shorter.
    all_set: ModularView<'static>,
    n_blocks: usize,
}

impl<B: AsRef<[u8]>> OwnedModularView<B> {
    /// Opens standalone bytes and compares all of them with their checksums. See [`ModularView::from_standalone`].
    ///
    /// # Errors
    ///
    /// If the bytes were cut, are damaged or of a different version, or if the keys were hashed by a different function
    /// than this build's.
    #[doc(alias = "from_bytes")]
    pub fn from_standalone(bytes: B) -> Result<Self, DecodeError> {
        Self::open(bytes, |bytes| ModularView::from_standalone(bytes))
    }

    /// Opens standalone bytes without reading the modules. **Damaged bits lose keys.** See
    /// [`ModularView::from_standalone_unverified`].
    ///
    /// # Errors
    ///
    /// As [`from_standalone`](Self::from_standalone), but for damaged modules.
    pub fn from_standalone_unverified(bytes: B) -> Result<Self, DecodeError> {
        Self::open(bytes, |bytes| ModularView::from_standalone_unverified(bytes))
    }

    /// Opens compact bytes of two modules or more. See [`ModularView::from_compact`].
    ///
    /// # Errors
    ///
    /// If no modular filter has this length or these last two bytes.
    pub fn from_compact(bytes: B) -> Result<Self, DecodeError> {
        Self::open(bytes, |bytes| ModularView::from_compact(bytes))
    }

    fn open(
        bytes: B,
        open: impl FnOnce(&[u8]) -> Result<ModularView<'_>, DecodeError>,
    ) -> Result<Self, DecodeError> {
        let ModularView { modules, seed, keys, checksums } = open(bytes.as_ref())?;
        let (blocks_len, n_checksums, n_blocks) = (modules.bytes().len(), checksums.len(), modules.n_blocks);
        let blocks = BlockSlice::new(&[[0xff; BLOCK_BYTES]]).expect("one block");
        let all_set = Modules { blocks, n_blocks: 1, ..modules };
        let all_set = ModularView { modules: all_set, seed, keys, checksums: &[] };
        Ok(Self { bytes, blocks_len, n_checksums, all_set, n_blocks })
    }

    /// Borrows the filter as a view. Checks only that the bytes are still there.
    #[inline]
    pub fn as_view(&self) -> ModularView<'_> {
        self.view().unwrap_or(self.all_set)
    }

    #[inline]
    fn view(&self) -> Option<ModularView<'_>> {
        let (blocks, rest) = self.bytes.as_ref().split_at_checked(self.blocks_len)?;
        let checksums = rest.get(..CHECKSUM_BYTES * self.n_checksums)?.as_chunks().0;
        let blocks = BlockSlice::new(blocks.as_chunks().0)?;
        let modules = Modules { blocks, n_blocks: self.n_blocks, ..self.all_set.modules };
        Some(ModularView { modules, checksums, ..self.all_set })
    }

    /// The bytes that were given.
    #[inline]
    pub fn get_ref(&self) -> &B {
        &self.bytes
    }
}

impl<'a, B: AsRef<[u8]>> From<&'a OwnedModularView<B>> for ModularView<'a> {
    fn from(view: &'a OwnedModularView<B>) -> Self {
        view.as_view()
    }
}

impl<B: AsRef<[u8]>> fmt::Debug for OwnedModularView<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OwnedModularView").field(&self.as_view()).finish()
    }
}
