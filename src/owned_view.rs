//! `OwnedView`, a view that owns or shares the bytes that it reads.
//!
//! It stores the length of the lanes instead of the lanes, because a struct cannot borrow from itself.
#![forbid(unsafe_code)]

use core::fmt;

use crate::error::Error;
use crate::key::Key;
use crate::lanes::Lanes;
use crate::view::BloomView;

/// A [`BloomView`] that keeps its bytes, for a struct that cannot borrow them, such as a table that holds its file, or
/// an entry of a cache.
///
/// | the bytes are | `B` |
/// |---|---|
/// | a part of a mapped file or of other shared bytes | `bytes::Bytes`, by its `from_owner` and `slice` |
/// | in a cache of filters, read or copied into memory of their own | [`AlignedBytes`](crate::AlignedBytes) |
/// | anything else that is `AsRef<[u8]>` | `Arc<[u8]>`, `Vec<u8>` |
///
/// The bytes are checked when they are opened, as by a [`BloomView`], but not copied. A lookup costs less than a
/// nanosecond more than in a view.
///
/// `as_ref` must return the same bytes each time. If it does not, lookups return wrong answers, but nothing panics and
/// no other memory is read. If it returns fewer bytes than the filter has, every key is possibly present.
///
/// # Examples
///
/// ```
/// use bloomline::{AlignedBytes, BloomFilter, OwnedView};
///
/// let mut filter = BloomFilter::with_fpr(1_000, 0.01)?;
/// filter.insert("ant");
/// let cached = OwnedView::from_standalone(AlignedBytes::copy_of(&filter.to_standalone())?)?;
/// assert!(cached.as_view().contains("ant"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy)]
pub struct OwnedView<B> {
    bytes: B,
    /// The lanes are these first bytes.
    lanes_len: usize,
    module_len: usize,
    /// Where the checksums start, and their bytes.
    checksums: (usize, usize),
    /// The view, but with lanes that contain every key, and without checksums. It answers if `bytes` no longer has as
    /// many bytes.
    all_set: BloomView<'static>,
}

impl<B: AsRef<[u8]>> OwnedView<B> {
    /// Opens compact bytes of a filter with seed 0. See [`BloomView::from_compact`].
    ///
    /// # Errors
    ///
    /// If no filter has this length or last bytes.
    pub fn from_compact(bytes: B) -> Result<Self, Error> {
        Self::from_compact_with_seed(bytes, 0)
    }

    /// Opens compact bytes of a filter that was made with `seed`. See [`BloomView::from_compact_with_seed`].
    ///
    /// # Errors
    ///
    /// If no filter has this length or last bytes. A wrong seed is not detected.
    pub fn from_compact_with_seed(bytes: B, seed: u64) -> Result<Self, Error> {
        Self::open(bytes, |bytes| BloomView::from_compact_with_seed(bytes, seed))
    }

    /// Opens standalone bytes, exactly the filter's, and compares all of them with their checksums. See
    /// [`BloomView::from_standalone`].
    ///
    /// # Errors
    ///
    /// If the bytes were cut, are damaged or of a different version, or if the keys were hashed by a different function
    /// than this build's.
    #[doc(alias = "from_bytes")]
    pub fn from_standalone(bytes: B) -> Result<Self, Error> {
        Self::open(bytes, |bytes| BloomView::from_standalone(bytes))
    }

    /// Opens standalone bytes without reading the filter's bits, for mapped files that are too large to read. **Damaged
    /// bits lose keys.** See [`BloomView::from_standalone_unverified`].
    ///
    /// # Errors
    ///
    /// If the bytes were cut, if their footer is damaged or of a different version, or if the keys were hashed by a
    /// different function than this build's.
    pub fn from_standalone_unverified(bytes: B) -> Result<Self, Error> {
        Self::open(bytes, |bytes| BloomView::from_standalone_unverified(bytes))
    }

    fn open(bytes: B, open: impl FnOnce(&[u8]) -> Result<BloomView<'_>, Error>) -> Result<Self, Error> {
        let all = bytes.as_ref();
        let view = open(all)?;
        let (lanes_len, module_len) = (view.byte_len(), view.lanes.module_len());
        let checksums = view.checksums.as_flattened();
        let start = checksums.as_ptr().addr().wrapping_sub(all.as_ptr().addr());
        let checksums = (start, checksums.len());
        let lanes = Lanes::new(&[0xff; 64]).expect("one block");
        let BloomView { k, k_alone, alone, kernel, seed, keys, .. } = view;
        let all_set = BloomView { lanes, k, k_alone, alone, kernel, seed, keys, checksums: &[] };
        Ok(Self { bytes, lanes_len, module_len, checksums, all_set })
    }

    /// Borrows the filter as a view, which looks up keys and does everything else. Costs little, because it checks only
    /// that `as_ref` still returns as many bytes.
    #[inline]
    pub fn as_view(&self) -> BloomView<'_> {
        let bytes = self.bytes.as_ref();
        let lanes =
            bytes.get(..self.lanes_len).and_then(|lanes| Lanes::with_module_len(lanes, self.module_len));
        let Some(lanes) = lanes else { return self.all_set };
        let (start, len) = self.checksums;
        let checksums = bytes.get(start..).and_then(|rest| rest.get(..len)).unwrap_or_default();
        BloomView { lanes, checksums: checksums.as_chunks().0, ..self.all_set }
    }

    /// Hashes `key` under the filter's seed.
    #[inline]
    #[must_use]
    pub fn hash_key(&self, key: impl Key) -> u64 {
        self.all_set.hash_key(key)
    }

    /// Returns whether `key` is possibly present. `false` means definitely absent.
    #[doc(alias("might_contain", "may_contain"))]
    #[inline]
    #[must_use]
    pub fn contains(&self, key: impl Key) -> bool {
        self.contains_hash(self.hash_key(key))
    }

    /// [`contains`](Self::contains) by hash.
    #[inline]
    #[must_use]
    pub fn contains_hash(&self, hash: u64) -> bool {
        self.as_view().contains_hash(hash)
    }

    /// Begins to load the cache line that a lookup of this hash reads first. See [`BloomView::prefetch`].
    #[inline]
    pub fn prefetch(&self, hash: u64) {
        self.as_view().prefetch(hash);
    }

    /// The bytes that were given.
    #[inline]
    pub fn get_ref(&self) -> &B {
        &self.bytes
    }
}

impl<'a, B: AsRef<[u8]>> From<&'a OwnedView<B>> for BloomView<'a> {
    #[inline]
    fn from(view: &'a OwnedView<B>) -> Self {
        view.as_view()
    }
}

/// Equal filters, as [`BloomView`] compares them.
impl<B: AsRef<[u8]>> PartialEq for OwnedView<B> {
    fn eq(&self, other: &Self) -> bool {
        self.as_view() == other.as_view()
    }
}

impl<B: AsRef<[u8]>> fmt::Debug for OwnedView<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OwnedView").field(&self.as_view()).finish()
    }
}
