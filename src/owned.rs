//! `Owned`, a view together with the bytes that it reads.

use core::mem::MaybeUninit;
use core::{fmt, slice};

#[cfg(not(target_has_atomic = "ptr"))]
use alloc::rc::Rc as Arc;
#[cfg(target_has_atomic = "ptr")]
use alloc::sync::Arc;

use crate::aligned_bytes::AlignedBytes;
use crate::bank::{BankView, IndexView};
use crate::error::Error;
use crate::key::Key;
use crate::view::BloomView;

/// A [`BloomView`], [`BankView`] or [`IndexView`] that keeps its bytes, for a struct that cannot borrow them, such as a
/// table that holds its file, or an entry of a cache. For filters, [`OwnedView<B>`](OwnedView) is short for
/// `Owned<BloomView<'static>, B>`.
///
/// | the bytes are | `B` |
/// |---|---|
/// | a part of a mapped file or of other shared bytes | `bytes::Bytes`, by its `from_owner` and `slice` |
/// | in a cache of filters, read or copied into memory of their own | [`AlignedBytes`] |
/// | anything else that is `AsRef<[u8]>` | `Arc<[u8]>`, `Vec<u8>` |
///
/// Opening checks the bytes as the view does, and moves the `B` to the heap, but copies no byte that it refers to. It
/// calls `as_ref` once. Lookups are as fast as in a view. A clone shares the bytes.
///
/// # Examples
///
/// ```
/// use bloomline::bank::{BankView, FilterBank, SlotBitmap};
/// use bloomline::{AlignedBytes, BloomFilter, Owned, OwnedView};
///
/// /// What a database keeps in memory of its tables.
/// struct Tables {
///     newest: OwnedView<AlignedBytes>,
///     older: Owned<BankView<'static>, Vec<u8>>,
/// }
///
/// let mut filter = BloomFilter::with_fpr(1_000, 0.01)?;
/// filter.insert("ant");
/// let tables = Tables {
///     newest: Owned::from_standalone(AlignedBytes::copy_of(&filter.to_standalone())?)?,
///     older: Owned::from_standalone(FilterBank::from_filters([&filter])?.to_standalone())?,
/// };
/// assert!(tables.newest.contains("ant"));
/// assert!(tables.older.as_view().find("ant", &mut SlotBitmap::new()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Owned<V: View, B> {
    /// Borrows from `bytes`, not for longer than `self` lives.
    ///
    /// Uninitialized as far as the compiler knows, because it may assume that references in an argument stay valid until
    /// the function returns. The function can free the bytes before, as `drop` does.
    view: MaybeUninit<V::Of<'static>>,
    bytes: Arc<B>,
}

/// A [`BloomView`] that keeps its bytes.
pub type OwnedView<B> = Owned<BloomView<'static>, B>;

/// The views that [`Owned`] can keep. In a private module, so that nobody else can implement it.
pub trait View {
    /// The view of bytes that live this long.
    type Of<'a>: Clone;

    /// The view's own constructor.
    #[doc(hidden)]
    fn from_standalone(bytes: &[u8]) -> Result<Self::Of<'_>, Error>;

    /// The view's own constructor.
    #[doc(hidden)]
    fn from_standalone_unverified(bytes: &[u8]) -> Result<Self::Of<'_>, Error>;

    /// The same reference. That it compiles shows that a view of bytes that live longer can stand for one of bytes that
    /// do not.
    #[doc(hidden)]
    fn shortened<'a>(view: &'a Self::Of<'static>) -> &'a Self::Of<'a>;
}

macro_rules! view {
    ($View:ident) => {
        impl View for $View<'static> {
            type Of<'a> = $View<'a>;

            fn from_standalone(bytes: &[u8]) -> Result<$View<'_>, Error> {
                $View::from_standalone(bytes)
            }

            fn from_standalone_unverified(bytes: &[u8]) -> Result<$View<'_>, Error> {
                $View::from_standalone_unverified(bytes)
            }

            #[inline]
            fn shortened<'a>(view: &'a $View<'static>) -> &'a $View<'a> {
                view
            }
        }
    };
}

view!(BloomView);
view!(BankView);
view!(IndexView);

impl<V: View, B: AsRef<[u8]>> Owned<V, B> {
    /// Opens standalone bytes, exactly the filter's, bank's or index's, and compares all of them with their checksums.
    /// See [`BloomView::from_standalone`].
    ///
    /// # Errors
    ///
    /// If the bytes were cut, are damaged or of a different version, or if the keys were hashed by a different function
    /// than this build's.
    #[doc(alias = "from_bytes")]
    pub fn from_standalone(bytes: B) -> Result<Self, Error> {
        Self::open(bytes, V::from_standalone)
    }

    /// Opens standalone bytes without reading the bits, for mapped files that are too large to read. **Damaged bits lose
    /// keys**, but not in an index, whose lookups compare what they read with checksums. See
    /// [`BloomView::from_standalone_unverified`].
    ///
    /// # Errors
    ///
    /// If the bytes were cut, if what is read of them is damaged or of a different version, or if the keys were hashed
    /// by a different function than this build's.
    pub fn from_standalone_unverified(bytes: B) -> Result<Self, Error> {
        Self::open(bytes, V::from_standalone_unverified)
    }

    fn open(
        bytes: B,
        open: impl for<'a> FnOnce(&'a [u8]) -> Result<V::Of<'a>, Error>,
    ) -> Result<Self, Error> {
        let bytes = Arc::new(bytes);
        let borrowed = (*bytes).as_ref();
        // SAFETY: What `as_ref` borrows from a `B` is valid and unchanged for as long as the `B` could stay borrowed. That
        // is until the last `Arc` is dropped, because the `B` does not move, and no `&mut` to it is ever made. The view is
        // stored beside an `Arc`, and lent only for lifetimes that end before it.
        let borrowed = unsafe { slice::from_raw_parts(borrowed.as_ptr(), borrowed.len()) };
        Ok(Self { view: MaybeUninit::new(open(borrowed)?), bytes })
    }
}

impl<V: View, B> Owned<V, B> {
    /// The view, which looks up keys and does everything else.
    #[inline]
    pub fn as_view(&self) -> &V::Of<'_> {
        // SAFETY: `open` and `clone` make it of a view, and only `drop` ends that.
        V::shortened(unsafe { self.view.assume_init_ref() })
    }

    /// The bytes that were given.
    #[inline]
    pub fn get_ref(&self) -> &B {
        &self.bytes
    }
}

/// Lookups in a filter. Everything else is a method of its [view](Owned::as_view).
impl<B> OwnedView<B> {
    /// Opens compact bytes of a filter with seed 0. See [`BloomView::from_compact`].
    ///
    /// # Errors
    ///
    /// If no filter has this length or last bytes.
    pub fn from_compact(bytes: B) -> Result<Self, Error>
    where
        B: AsRef<[u8]>,
    {
        Self::from_compact_with_seed(bytes, 0)
    }

    /// Opens compact bytes of a filter that was made with `seed`. See [`BloomView::from_compact_with_seed`].
    ///
    /// # Errors
    ///
    /// If no filter has this length or last bytes. A wrong seed is not detected.
    pub fn from_compact_with_seed(bytes: B, seed: u64) -> Result<Self, Error>
    where
        B: AsRef<[u8]>,
    {
        Self::open(bytes, |bytes| BloomView::from_compact_with_seed(bytes, seed))
    }

    /// Returns whether `key` is possibly present. `false` means definitely absent.
    #[doc(alias("might_contain", "may_contain"))]
    #[inline]
    #[must_use]
    pub fn contains(&self, key: impl Key) -> bool {
        self.as_view().contains(key)
    }

    /// [`contains`](Self::contains) by hash.
    #[inline]
    #[must_use]
    pub fn contains_hash(&self, hash: u64) -> bool {
        self.as_view().contains_hash(hash)
    }
}

impl OwnedView<AlignedBytes> {
    /// Bytes to charge to a cache for this filter, which are its own size and its two allocations, without what the
    /// allocator adds. A clone allocates nothing, so charge it only once.
    #[must_use]
    pub fn charge(&self) -> usize {
        /// The counts of an `Arc`.
        const COUNTS: usize = 2 * size_of::<usize>();
        size_of::<Self>() + COUNTS + size_of::<AlignedBytes>() + self.bytes.allocated_len()
    }
}

impl<V: View, B> Drop for Owned<V, B> {
    fn drop(&mut self) {
        // SAFETY: As in `as_view`, and nothing reads it afterwards. The bytes are still there.
        unsafe { self.view.assume_init_drop() }
    }
}

impl<V: View, B> Clone for Owned<V, B> {
    fn clone(&self) -> Self {
        // SAFETY: As in `as_view`. The clone shares the bytes, so it lends the view no longer than they live.
        let view = unsafe { self.view.assume_init_ref() }.clone();
        Self { view: MaybeUninit::new(view), bytes: Arc::clone(&self.bytes) }
    }
}

impl<'a, B> From<&'a OwnedView<B>> for BloomView<'a> {
    #[inline]
    fn from(owned: &'a OwnedView<B>) -> Self {
        *owned.as_view()
    }
}

/// Equal filters, as [`BloomView`] compares them.
impl<B> PartialEq for OwnedView<B> {
    fn eq(&self, other: &Self) -> bool {
        self.as_view() == other.as_view()
    }
}

impl<V: View<Of<'static>: fmt::Debug>, B> fmt::Debug for Owned<V, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // SAFETY: As in `as_view`.
        f.debug_tuple("Owned").field(unsafe { self.view.assume_init_ref() }).finish()
    }
}
