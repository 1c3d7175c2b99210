//! `BankError`: why a bank cannot be made or changed.

use core::error::Error;
use core::fmt;

use super::shape::MOST_SLOTS;
use crate::error::{MismatchError, ONE_MODULE};
use crate::memory::OutOfMemory;

/// A bank cannot be made or changed as requested. Nothing was changed.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum BankError {
    /// A bank of no filters has no size. Use [`FilterBank::with_capacity`](crate::bank::FilterBank::with_capacity).
    NoFilters,
    /// The filter places keys differently than the bank. Build it with the bank's k and seed, and with its number of
    /// blocks or a multiple.
    Mismatch(MismatchError),
    /// A bank's filters have one module. Compute their size by
    /// [`Sizing::for_fpr_within`](crate::Sizing::for_fpr_within) for at most one, and rebuild the filter.
    #[non_exhaustive]
    Modules {
        /// The filter's number of modules.
        n_modules: usize,
    },
    /// The bank has no room for as many slots. [`reserve`](crate::bank::FilterBank::reserve) more, or split the filters
    /// over several banks if it already has 2^24, the most that a bank can have.
    #[non_exhaustive]
    Full {
        /// The number of slots that were needed.
        slots: usize,
        /// The most that the bank can have now.
        capacity: usize,
    },
    /// There is no such slot.
    #[non_exhaustive]
    Slot {
        /// The slot that was requested.
        slot: usize,
        /// Number of slots.
        slots: usize,
    },
    /// The allocator refused.
    #[non_exhaustive]
    OutOfMemory {
        /// Bytes requested.
        bytes: usize,
    },
}

impl fmt::Display for BankError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::NoFilters => f.write_str("a bank of no filters has no size: use `with_capacity`"),
            Self::Mismatch(MismatchError::Size { ours, theirs, .. }) => write!(
                f,
                "a filter of {theirs} blocks does not fit into a bank of {ours}: build it with {ours} blocks, or a \
                 multiple"
            ),
            Self::Mismatch(error) => error.fmt(f),
            Self::Modules { n_modules } => {
                write!(
                    f,
                    "a bank's filters have one module, not {n_modules}: {ONE_MODULE}, and rebuild the filter"
                )
            }
            Self::Full { slots, capacity: MOST_SLOTS } => {
                write!(
                    f,
                    "a bank has at most {MOST_SLOTS} slots, not {slots}: split the filters over several banks"
                )
            }
            Self::Full { slots, capacity } => {
                write!(
                    f,
                    "the bank has room for {capacity} slots, not {slots}: call `reserve`, or replace a filter"
                )
            }
            Self::Slot { slot, slots } => write!(f, "slot {slot} does not exist: the bank has {slots}"),
            Self::OutOfMemory { bytes } => OutOfMemory { bytes }.fmt(f),
        }
    }
}

impl Error for BankError {}

impl From<MismatchError> for BankError {
    fn from(error: MismatchError) -> Self {
        Self::Mismatch(error)
    }
}

impl From<OutOfMemory> for BankError {
    fn from(OutOfMemory { bytes }: OutOfMemory) -> Self {
        Self::OutOfMemory { bytes }
    }
}
