//! `SlotBitmap`: the result of a lookup.

use alloc::vec::Vec;
use core::{fmt, iter, mem};

/// The slots of a bank, or the files of an index, that possibly have a key, one bit each.
///
/// Iterate over it for their numbers, in ascending order. Reuse one for many lookups, because only the first in a bank
/// or index, or in a larger one, allocates.
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
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.words.iter().enumerate().flat_map(|(i, &word)| {
            let each = iter::successors(Some(word), |bits| Some(bits & bits.wrapping_sub(1)));
            each.take_while(|&bits| bits != 0).map(move |bits| 64 * i + bits.trailing_zeros() as usize)
        })
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
        write(&mut self.words);
        if let Some(last) = self.words.last_mut().filter(|_| !slots.is_multiple_of(64)) {
            *last &= !(!0 << (slots % 64));
        }
        // ORed, because a branch on each word would be unpredictable.
        self.words.iter().fold(0, |all, word| all | word) != 0
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
