//! `SlotBitmap`: the result of a lookup.

use alloc::vec::Vec;
use core::iter::FusedIterator;
use core::{fmt, mem};

/// The slots of a bank, or the files of an index, that possibly have a key, one bit each.
///
/// Iterate over `&bitmap` for their numbers, in ascending order. Reuse one for many lookups, because only the first in a
/// bank or index, or in a larger one, allocates.
///
/// # Examples
///
/// ```
/// use bloomline::Sizing;
/// use bloomline::bank::{FilterBank, SlotBitmap};
///
/// let bank = FilterBank::with_capacity(Sizing::for_fpr(1_000, 0.01)?, 64)?;
/// let mut found = SlotBitmap::new();
/// bank.as_view().find("ant", &mut found);
/// assert_eq!(found.iter().next(), None);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Default)]
pub struct SlotBitmap {
    /// Bits that belong to no slot are zero.
    words: Vec<u64>,
    /// Memory that lookups in an index keep for the slots of its banks.
    room: Vec<u64>,
}

impl SlotBitmap {
    /// An empty bitmap.
    pub const fn new() -> Self {
        Self { words: Vec::new(), room: Vec::new() }
    }

    /// The slots whose bits are set, in ascending order.
    pub fn iter(&self) -> SlotIter<'_> {
        SlotIter { bits: 0, first: 0, rest: &self.words }
    }

    /// Returns whether the bit of this slot is set.
    pub fn contains(&self, slot: usize) -> bool {
        self.words.get(slot / 64).is_some_and(|word| word >> (slot % 64) & 1 == 1)
    }

    /// Number of bits that are set, 0 if the key is definitely absent from all filters.
    pub fn count(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// The bits, of which slot `s` is bit `s % 64` of word `s / 64`. Words at the end may be missing or zero.
    pub fn as_words(&self) -> &[u64] {
        &self.words
    }

    /// Calls `write` to overwrite the words of this number of slots. Returns whether any bit is then set.
    #[inline]
    pub(super) fn fill(&mut self, slots: usize, write: impl FnOnce(&mut [u64])) -> bool {
        self.words.resize(slots.div_ceil(64), 0);
        fill(&mut self.words, slots, write)
    }

    /// [`fill`](Self::fill), with a bitmap for the slots of a bank.
    #[inline]
    pub(super) fn fill_by(&mut self, files: usize, write: impl FnOnce(&mut [u64], &mut Self)) -> bool {
        let mut slots = Self { words: mem::take(&mut self.room), room: Vec::new() };
        let any = self.fill(files, |words| write(words, &mut slots));
        self.room = slots.words;
        any
    }
}

/// [`SlotBitmap::fill`] of as many words as the slots need.
#[inline]
pub(super) fn fill(words: &mut [u64], slots: usize, write: impl FnOnce(&mut [u64])) -> bool {
    write(words);
    if let Some(last) = words.last_mut().filter(|_| !slots.is_multiple_of(64)) {
        *last &= !(!0 << (slots % 64));
    }
    // ORed, because a branch on each word would be unpredictable.
    words.iter().fold(0, |all, word| all | word) != 0
}

/// The slots of a [`SlotBitmap`] whose bits are set, in ascending order.
#[derive(Clone, Debug)]
pub struct SlotIter<'a> {
    /// Of the word before `rest`, those of slots that have not been returned.
    bits: u64,
    /// The first slot of `rest`.
    first: usize,
    rest: &'a [u64],
}

impl Iterator for SlotIter<'_> {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        while self.bits == 0 {
            let (&bits, rest) = self.rest.split_first()?;
            (self.bits, self.rest) = (bits, rest);
            self.first += 64;
        }
        let slot = self.first - 64 + self.bits.trailing_zeros() as usize;
        self.bits &= self.bits - 1;
        Some(slot)
    }
}

impl FusedIterator for SlotIter<'_> {}

impl<'a> IntoIterator for &'a SlotBitmap {
    type Item = usize;
    type IntoIter = SlotIter<'a>;

    fn into_iter(self) -> SlotIter<'a> {
        self.iter()
    }
}

/// Equal bitmaps have the same slots, whatever the number of slots of their banks.
impl PartialEq for SlotBitmap {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for SlotBitmap {}

impl fmt::Debug for SlotBitmap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}
