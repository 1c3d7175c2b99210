//! What can go wrong: each error has the numbers and says what to do.
#![forbid(unsafe_code)]

use alloc::string::String;
use core::error::Error;
use core::fmt;

use crate::limits::{MAX_BITS_PER_KEY, STANDARD_MAX_K};

/// No filter can have the requested size or false-positive rate.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SizingError {
    /// Bits per key must be above 0 and at most 64.
    BitsPerKey {
        /// The value given.
        value: f64,
    },
    /// A false-positive rate must be between 0 and 1, both excluded.
    Fpr {
        /// The value given.
        value: f64,
    },
    /// The false-positive rate is below what 64 bits per key reach. Raise it, or use an exact structure.
    FprTooLow {
        /// The value given.
        value: f64,
        /// The lowest false-positive rate that can be requested.
        lowest: f64,
    },
    /// The false-positive rate is below what the filters of a scalable filter can keep together.
    ScalableFpr {
        /// The value given.
        value: f64,
        /// The lowest false-positive rate that can be requested.
        lowest: f64,
    },
    /// Each filter of a scalable filter must hold 2 to 16 times as many keys as the previous one.
    Growth {
        /// The value given.
        value: u8,
    },
    /// The false-positive rate of each filter of a scalable filter must be at least half that of the previous one, and
    /// below it.
    Tightening {
        /// The value given.
        value: f64,
    },
    /// Probes per key must be 1 to 16.
    Probes {
        /// The value given.
        k: u32,
    },
    /// Probes per key of a standard filter must be 1 to 64.
    StandardProbes {
        /// The value given.
        k: u32,
    },
    /// A filter has at least one block, and no more than fit in the address space.
    Blocks {
        /// The number given or computed.
        n_blocks: u64,
        /// The highest number on this machine.
        most: u64,
    },
    /// The fold factor must be at least 1 and divide the number of blocks.
    FoldFactor {
        /// The value given.
        factor: usize,
        /// Blocks of the filter to be folded.
        n_blocks: usize,
    },
    /// The allocator refused. Use fewer bits per key, or split the keys over several filters.
    OutOfMemory {
        /// Bytes requested.
        bytes: usize,
    },
}

impl fmt::Display for SizingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::BitsPerKey { value } => {
                write!(f, "bits per key must be above 0 and at most {MAX_BITS_PER_KEY}, not {value}")
            }
            Self::Fpr { value } => {
                write!(f, "a false-positive rate must be between 0 and 1, both excluded, not {value}")
            }
            Self::FprTooLow { value, lowest } => write!(
                f,
                "a false-positive rate of {value:e} is out of reach: request at least {lowest:e}, which takes \
                 {MAX_BITS_PER_KEY} bits per key, or use an exact structure"
            ),
            Self::ScalableFpr { value, lowest } => write!(
                f,
                "a scalable filter cannot keep a false-positive rate of {value:e} as it grows: request at least \
                 {lowest:e}, or use a filter of fixed size"
            ),
            Self::Growth { value } => write!(f, "a scalable filter's growth must be 2 to 16, not {value}"),
            Self::Tightening { value } => {
                write!(f, "the tightening of a scalable filter must be at least 0.5 and below 1, not {value}")
            }
            Self::Probes { k } => write!(f, "probes per key must be 1 to 16, not {k}"),
            Self::StandardProbes { k } => {
                write!(f, "probes per key of a standard filter must be 1 to {STANDARD_MAX_K}, not {k}")
            }
            Self::Blocks { n_blocks: 0, .. } => write!(f, "a filter needs at least one block"),
            Self::Blocks { n_blocks, most } => write!(
                f,
                "{n_blocks} blocks of 64 bytes exceed this machine's address space, which holds {most}"
            ),
            Self::FoldFactor { factor, n_blocks } => write!(
                f,
                "{n_blocks} blocks cannot be folded by {factor}: use a factor that divides {n_blocks}"
            ),
            Self::OutOfMemory { bytes } => write!(
                f,
                "cannot allocate {bytes} bytes: use fewer bits per key, or split the keys over several filters"
            ),
        }
    }
}

impl Error for SizingError {}

/// No kernel has this name, on any CPU.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownKernelError {
    /// The name given.
    pub name: String,
}

impl fmt::Display for UnknownKernelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.name;
        write!(f, "unknown kernel {name:?}: the names are avx512, avx2, sse4.1, neon, portable and reference")
    }
}

impl Error for UnknownKernelError {}

/// Two filters cannot be combined, mostly because they place keys differently. Both are unchanged.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MismatchError {
    /// The numbers of blocks differ. Fold the larger filter if its number is a multiple of the other's.
    Blocks {
        /// Blocks of the filter that the method was called on.
        ours: usize,
        /// Blocks of the other.
        theirs: usize,
    },
    /// The sizes of two standard filters differ. They cannot be folded.
    Bits {
        /// Bits of the filter that the method was called on.
        ours: u64,
        /// Bits of the other.
        theirs: u64,
    },
    /// The probes per key differ.
    Probes {
        /// k of the filter that the method was called on.
        ours: u32,
        /// k of the other.
        theirs: u32,
    },
    /// The seeds differ.
    Seed {
        /// Seed of the filter that the method was called on.
        ours: u64,
        /// Seed of the other.
        theirs: u64,
    },
    /// Two scalable filters are made of too many filters for their keys: the next would be larger than all of them. Insert
    /// the keys into a filter with a higher initial capacity.
    Filters {
        /// Filters of both.
        n_filters: usize,
        /// Keys in both.
        keys: u64,
    },
}

impl fmt::Display for MismatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Blocks { ours, theirs } => write!(
                f,
                "filters of {ours} and {theirs} blocks cannot be combined: fold the larger if its number of blocks is \
                 a multiple of the other's"
            ),
            Self::Bits { ours, theirs } => write!(
                f,
                "standard filters of {ours} and {theirs} bits cannot be combined: build both with one size"
            ),
            Self::Probes { ours, theirs } => write!(
                f,
                "filters with k = {ours} and k = {theirs} cannot be combined: build both with one k"
            ),
            Self::Seed { ours, theirs } => write!(
                f,
                "filters with seeds {ours:#x} and {theirs:#x} cannot be combined: build both with one seed"
            ),
            Self::Filters { n_filters, keys } => write!(
                f,
                "{n_filters} filters are too many to combine for {keys} keys: insert the keys into a filter with a \
                 higher initial capacity"
            ),
        }
    }
}

impl Error for MismatchError {}

/// The bytes are not a filter that this version can read. Treat the key as possibly present, or rebuild the filter.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecodeError {
    /// No compact filter has this many bytes: they were cut, or are something else.
    Length {
        /// Bytes given.
        found: usize,
    },
    /// Too few bytes for standalone bytes of this type: they were cut, or are something else.
    TooShort {
        /// Bytes given.
        found: usize,
        /// The fewest that bytes of this type have.
        least: usize,
    },
    /// The last eight bytes are not those of standalone bytes of this type.
    Magic {
        /// The last eight bytes.
        found: [u8; 8],
    },
    /// Written by a newer version of this crate or a development build, or damaged: upgrade the reader, or rebuild the
    /// filter.
    Version {
        /// Version in the bytes.
        found: u8,
        /// The newest version that this crate reads.
        newest: u8,
    },
    /// The footer does not match its own checksum: the bytes are damaged.
    FooterChecksum {
        /// Checksum in the footer.
        stored: u64,
        /// Checksum of the footer's bytes.
        computed: u64,
    },
    /// The footer holds a value that no version of this format writes.
    Footer {
        /// Which field.
        field: &'static str,
        /// Its value.
        found: u64,
    },
    /// The size in the footer does not match the number of bytes before it: they were cut or joined.
    Size {
        /// Size in the footer.
        stored: u64,
        /// Its unit.
        unit: &'static str,
        /// Bytes before the footer.
        found_bytes: usize,
    },
    /// The bytes before the footer do not match their checksum: they are damaged.
    BodyChecksum {
        /// Checksum in the footer.
        stored: u64,
        /// Checksum of the bytes before the footer.
        computed: u64,
    },
    /// Another hash function than this crate's placed the filter's keys: the writer is faulty. Rebuild the filter.
    HashValue {
        /// Check value in the footer.
        stored: u64,
        /// Check value of this crate's hash.
        expected: u64,
    },
    /// The queue of a frontier contradicts its footer, though the checksums match: a faulty writer, or forged bytes.
    Queue {
        /// Items, by the footer.
        items: u64,
        /// Bytes of the queue, by the footer.
        queue_bytes: u64,
        /// Bytes before the footer.
        found_bytes: u64,
    },
    /// An item of a frontier's queue cannot be made from its bytes, because another type wrote them, or the frontier's
    /// filter does not contain it.
    Item {
        /// Position in the queue, from 0.
        index: u64,
    },
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Length { found } => write!(
                f,
                "a compact filter has 8·L + 1 bytes, L being 1 to 63 or a multiple of 8, not {found}"
            ),
            Self::TooShort { found, least } => write!(f, "too short: {found} bytes, at least {least} needed"),
            Self::Magic { found } => {
                write!(f, "not standalone bytes of this type, or cut short: they end in {found:02x?}")
            }
            Self::Version { found, newest } if found < newest => {
                write!(f, "the bytes are of version {found}, which no release wrote: rebuild the filter")
            }
            Self::Version { found, newest } => write!(
                f,
                "the bytes are of version {found}, and this crate reads up to {newest}: upgrade it, or rebuild the \
                 filter"
            ),
            Self::FooterChecksum { stored, computed } => {
                write!(f, "the footer is damaged: its checksum is {computed:#018x}, stored {stored:#018x}")
            }
            Self::Footer { field, found } => write!(f, "the footer's {field} cannot be {found}"),
            Self::Size { stored, unit, found_bytes } => write!(
                f,
                "the footer's size of {stored} {unit} does not match the {found_bytes} bytes before it"
            ),
            Self::BodyChecksum { stored, computed } => {
                write!(f, "the bytes are damaged: their checksum is {computed:#018x}, stored {stored:#018x}")
            }
            Self::HashValue { stored, expected } => write!(
                f,
                "another hash function placed the keys (check value {stored:#018x}, ours {expected:#018x}): rebuild \
                 the filter"
            ),
            Self::Queue { items, queue_bytes, found_bytes } => write!(
                f,
                "the footer's queue of {items} items in {queue_bytes} bytes does not match the {found_bytes} bytes \
                 before it"
            ),
            Self::Item { index } => write!(f, "queue item {index} is of another type or not in the filter"),
        }
    }
}

impl Error for DecodeError {}

/// A frontier could not be restored. The [`source`](Error::source) says why.
#[cfg(feature = "std")]
#[non_exhaustive]
#[derive(Debug)]
pub enum RestoreError {
    /// The input could not be read.
    Io(std::io::Error),
    /// The input is not a frontier of this type, or is damaged: go back to an older copy.
    Decode(DecodeError),
}

#[cfg(feature = "std")]
impl fmt::Display for RestoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Io(_) => "the frontier could not be read",
            Self::Decode(_) => "the bytes read are not a frontier that can be restored",
        })
    }
}

#[cfg(feature = "std")]
impl Error for RestoreError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Io(error) => Some(error),
            Self::Decode(error) => Some(error),
        }
    }
}

#[cfg(feature = "std")]
impl From<std::io::Error> for RestoreError {
    fn from(error: std::io::Error) -> Self {
        Self::Io(error)
    }
}

#[cfg(feature = "std")]
impl From<DecodeError> for RestoreError {
    fn from(error: DecodeError) -> Self {
        Self::Decode(error)
    }
}
