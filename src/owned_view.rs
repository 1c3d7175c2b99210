//! `OwnedView`, a view that owns or shares the bytes that it reads.

use core::{fmt, slice};

#[cfg(not(target_has_atomic = "ptr"))]
use alloc::rc::Rc as Arc;
#[cfg(target_has_atomic = "ptr")]
use alloc::sync::Arc;

use crate::error::Error;
use crate::key::Key;
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
/// The bytes are checked when they are opened, as by a [`BloomView`], but not copied. `as_ref` is called only then, and
/// the `B` is moved to the heap, where it stays. Lookups are as fast as in a view. A clone shares the bytes.
///
/// # Examples
///
/// ```
/// use bloomline::{AlignedBytes, BloomFilter, OwnedView};
///
/// let mut filter = BloomFilter::with_fpr(1_000, 0.01)?;
/// filter.insert("ant");
/// let cached = OwnedView::from_standalone(AlignedBytes::copy_of(&filter.to_standalone())?)?;
/// assert!(cached.contains("ant"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct OwnedView<B> {
    /// Borrows from `bytes`, not for longer than `self` lives.
    view: BloomView<'static>,
    bytes: Arc<B>,
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
        Self::open(bytes, BloomView::from_standalone)
    }

    /// Opens standalone bytes without reading the filter's bits, for mapped files that are too large to read. **Damaged
    /// bits lose keys.** See [`BloomView::from_standalone_unverified`].
    ///
    /// # Errors
    ///
    /// If the bytes were cut, if their footer is damaged or of a different version, or if the keys were hashed by a
    /// different function than this build's.
    pub fn from_standalone_unverified(bytes: B) -> Result<Self, Error> {
        Self::open(bytes, BloomView::from_standalone_unverified)
    }

    fn open(
        bytes: B,
        open: impl FnOnce(&'static [u8]) -> Result<BloomView<'static>, Error>,
    ) -> Result<Self, Error> {
        let bytes = Arc::new(bytes);
        let borrowed = (*bytes).as_ref();
        // SAFETY: What `as_ref` borrows from a `B` is valid and unchanged for as long as the `B` could stay borrowed. That
        // is until the last `Arc` is dropped, because the `B` does not move, and no `&mut` to it is ever made. The view is
        // stored beside an `Arc`, and lent only for lifetimes that end before it, because `BloomView` is covariant.
        let borrowed = unsafe { slice::from_raw_parts(borrowed.as_ptr(), borrowed.len()) };
        Ok(Self { view: open(borrowed)?, bytes })
    }

    /// Borrows the filter as a view, which looks up keys and does everything else.
    #[inline]
    pub fn as_view(&self) -> BloomView<'_> {
        self.view
    }

    /// Hashes `key` under the filter's seed.
    #[inline]
    #[must_use]
    pub fn hash_key(&self, key: impl Key) -> u64 {
        self.view.hash_key(key)
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
        self.view.contains_hash(hash)
    }

    /// Begins to load the cache line that a lookup of this hash reads first. See [`BloomView::prefetch`].
    #[inline]
    pub fn prefetch(&self, hash: u64) {
        self.view.prefetch(hash);
    }

    /// The bytes that were given.
    #[inline]
    pub fn get_ref(&self) -> &B {
        &self.bytes
    }
}

impl<B> Clone for OwnedView<B> {
    fn clone(&self) -> Self {
        Self { view: self.view, bytes: Arc::clone(&self.bytes) }
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
