//! What can go wrong, each with the numbers and the remedy.
#![forbid(unsafe_code)]

use core::error::Error;
use core::fmt;

use crate::sizing::{MAX_BITS_PER_KEY, STANDARD_MAX_K};

/// A filter of the size or rate asked for cannot be made.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SizingError {
    /// Bits per key must be above 0 and at most 64.
    BitsPerKey {
        /// The value given.
        value: f64,
    },
    /// A false-positive rate must lie between 0 and 1, both excluded.
    Fpr {
        /// The value given.
        value: f64,
    },
    /// The rate is below what 64 bits per key reach. Raise it, or use an exact structure.
    FprTooLow {
        /// The value given.
        value: f64,
        /// The lowest rate that can be asked for.
        lowest: f64,
    },
    /// The rate is below what all filters of a scalable filter can keep together.
    ScalableFpr {
        /// The value given.
        value: f64,
        /// The lowest rate that can be asked for.
        lowest: f64,
    },
    /// Each filter of a scalable filter must hold 2 to 16 times the keys of the one before.
    Growth {
        /// The value given.
        value: u8,
    },
    /// Each filter of a scalable filter must have at least half the rate of the one before, and less than all of it.
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
    /// A filter has at least one block, and no more than the address space holds.
    Blocks {
        /// The count given or computed.
        n_blocks: u64,
        /// The highest count on this machine.
        most: u64,
    },
    /// The factor must be at least 1 and divide the block count.
    FoldFactor {
        /// The value given.
        factor: usize,
        /// Blocks of the filter to be folded.
        n_blocks: usize,
    },
    /// The allocator refused. Ask for fewer bits per key, or split the keys over several filters.
    OutOfMemory {
        /// Bytes asked for.
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
                write!(f, "a false-positive rate must lie between 0 and 1, both excluded, not be {value}")
            }
            Self::FprTooLow { value, lowest } => write!(
                f,
                "a false-positive rate of {value:e} is out of reach: {MAX_BITS_PER_KEY} bits per key, the most, give \
                 {lowest:.2e}; ask for more than that, or use an exact structure"
            ),
            Self::ScalableFpr { value, lowest } => write!(
                f,
                "a scalable filter cannot keep a false-positive rate of {value:e} as it grows: ask for {lowest:.2e} or \
                 more, or size a filter that does not grow"
            ),
            Self::Growth { value } => {
                write!(f, "each filter must hold 2 to 16 times the keys of the one before, not {value} times")
            }
            Self::Tightening { value } => {
                write!(
                    f,
                    "each filter's rate must be at least 0.5 times that of the one before and less than it, not {value} \
                     times"
                )
            }
            Self::Probes { k } => write!(f, "probes per key must be 1 to 16, not {k}"),
            Self::StandardProbes { k } => {
                write!(f, "probes per key of a standard filter must be 1 to {STANDARD_MAX_K}, not {k}")
            }
            Self::Blocks { n_blocks: 0, .. } => write!(f, "a filter needs at least one block"),
            Self::Blocks { n_blocks, most } => {
                write!(
                    f,
                    "{n_blocks} blocks of 64 bytes do not fit in this machine's address space, which holds {most}"
                )
            }
            Self::FoldFactor { factor, n_blocks } => {
                write!(
                    f,
                    "a filter of {n_blocks} blocks cannot be folded by {factor}: the factor must divide the count"
                )
            }
            Self::OutOfMemory { bytes } => {
                write!(
                    f,
                    "the allocator refused {bytes} bytes: use fewer bits per key, or split the keys over several filters"
                )
            }
        }
    }
}

impl Error for SizingError {}

/// Two filters cannot be combined: they place keys differently. Both are left as they were.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MismatchError {
    /// The block counts differ. Fold the larger filter, if its count is a multiple of the other's.
    Blocks {
        /// Blocks of the filter to be changed.
        ours: usize,
        /// Blocks of the other.
        theirs: usize,
    },
    /// The sizes differ: standard filters of other sizes have nothing in common.
    Bits {
        /// Bits of the filter to be changed.
        ours: u64,
        /// Bits of the other.
        theirs: u64,
    },
    /// The probes per key differ.
    Probes {
        /// k of the filter to be changed.
        ours: u32,
        /// k of the other.
        theirs: u32,
    },
    /// The seeds differ.
    Seed {
        /// Seed of the filter to be changed.
        ours: u64,
        /// Seed of the other.
        theirs: u64,
    },
}

impl fmt::Display for MismatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Blocks { ours, theirs } => write!(
                f,
                "filters of {ours} and {theirs} blocks cannot be combined; the larger can be folded first if its \
                 count is a multiple of the other's"
            ),
            Self::Bits { ours, theirs } => {
                write!(f, "standard filters of {ours} and {theirs} bits cannot be combined")
            }
            Self::Probes { ours, theirs } => {
                write!(f, "filters of {ours} and {theirs} probes per key cannot be combined")
            }
            Self::Seed { ours, theirs } => {
                write!(f, "filters with the seeds {ours:#x} and {theirs:#x} cannot be combined")
            }
        }
    }
}

impl Error for MismatchError {}

/// Bytes are not a filter that this version can read. Treat the key as possibly present, or rebuild the filter.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecodeError {
    /// No compact filter has this many bytes: they were cut, or are something else.
    Length {
        /// Bytes given.
        found: usize,
    },
    /// Too few bytes for a standalone filter: they were cut, or are something else.
    TooShort {
        /// Bytes given.
        found: usize,
        /// The least a standalone filter has.
        least: usize,
    },
    /// The last eight bytes are not those of a standalone filter.
    Magic {
        /// The last eight bytes.
        found: [u8; 8],
    },
    /// Written by a newer version of this crate, or damaged: upgrade the reader, or rebuild the filter.
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
    /// The footer speaks of another number of lanes than there are: the bytes were cut or joined.
    Lanes {
        /// Lanes of 64 bits by the footer.
        stored: u64,
        /// Bytes before the footer.
        found_bytes: usize,
    },
    /// The footer of a standard filter speaks of another number of bits than there is room for: the bytes were cut or
    /// joined.
    Bits {
        /// Bits by the footer.
        stored: u64,
        /// Bytes before the footer.
        found_bytes: usize,
    },
    /// The footer of a counting filter speaks of another number of blocks than there are counters for: the bytes were
    /// cut or joined.
    Blocks {
        /// Blocks by the footer.
        stored: u64,
        /// Bytes before the footer.
        found_bytes: usize,
    },
    /// The lanes, or counters in their place, do not match their checksum: the bytes are damaged.
    LanesChecksum {
        /// Checksum in the footer.
        stored: u64,
        /// Checksum of the lanes.
        computed: u64,
    },
    /// The filter's keys were hashed by a function that gives other values than this crate's.
    HashValue {
        /// Check value in the footer.
        stored: u64,
        /// Check value of this crate's hash.
        expected: u64,
    },
    /// The footer of a frontier speaks of a queue that is not there: the bytes were cut or joined.
    Queue {
        /// Items by the footer.
        items: u64,
        /// Bytes of theirs by the footer.
        queue_bytes: u64,
        /// Bytes before the footer.
        found_bytes: u64,
    },
    /// Queue and filter of a frontier do not match their checksum: the bytes are damaged.
    BodyChecksum {
        /// Checksum in the footer.
        stored: u64,
        /// Checksum of the bytes before the footer.
        computed: u64,
    },
    /// An item of a frontier's queue cannot be had back from its bytes: they are damaged, or were those of another type.
    Item {
        /// Place in the queue, from 0.
        index: u64,
    },
    /// This build would look for other bits than the filter has.
    HashChanged(HashChanged),
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Length { found } => {
                write!(
                    f,
                    "a compact filter has 8·L + 1 bytes, where L is 1 to 63 or a multiple of 8, not {found}"
                )
            }
            Self::TooShort { found, least } => {
                write!(
                    f,
                    "a standalone filter or frontier of this kind has at least {least} bytes, not {found}"
                )
            }
            Self::Magic { found } => {
                write!(
                    f,
                    "not a standalone filter or frontier of this kind, or cut short: it ends in {found:02x?}"
                )
            }
            Self::Version { found, newest } => write!(
                f,
                "the filter is of version {found}, this crate reads up to {newest}: upgrade it, or rebuild the filter"
            ),
            Self::FooterChecksum { stored, computed } => {
                write!(f, "the footer is damaged: its checksum is {computed:#018x}, stored {stored:#018x}")
            }
            Self::Footer { field, found } => write!(f, "the footer's {field} cannot be {found}"),
            Self::Lanes { stored, found_bytes } => {
                write!(
                    f,
                    "the footer speaks of {stored} lanes of 8 bytes, but {found_bytes} bytes precede it"
                )
            }
            Self::Bits { stored, found_bytes } => write!(
                f,
                "the footer speaks of {stored} bits in lanes of 8 bytes, but {found_bytes} bytes precede it"
            ),
            Self::Blocks { stored, found_bytes } => write!(
                f,
                "the footer speaks of {stored} blocks with 256 bytes of counters each, but {found_bytes} bytes precede it"
            ),
            Self::LanesChecksum { stored, computed } => {
                write!(f, "the lanes are damaged: their checksum is {computed:#018x}, stored {stored:#018x}")
            }
            Self::HashValue { stored, expected } => write!(
                f,
                "the filter's keys were hashed by another function (check value {stored:#018x}, ours \
                 {expected:#018x}): rebuild the filter"
            ),
            Self::Queue { items, queue_bytes, found_bytes } => write!(
                f,
                "the footer speaks of a queue of {items} items in {queue_bytes} bytes, which the {found_bytes} bytes \
                 before it are not"
            ),
            Self::BodyChecksum { stored, computed } => write!(
                f,
                "queue or filter are damaged: their checksum is {computed:#018x}, stored {stored:#018x}"
            ),
            Self::Item { index } => write!(
                f,
                "item {index} of the queue cannot be had back: its bytes are damaged, or are not those of this type"
            ),
            Self::HashChanged(changed) => changed.fmt(f),
        }
    }
}

impl Error for DecodeError {}

/// The `wyhash` crate in this build gives other values than the format asks for, so stored filters would lie. Pin
/// `wyhash` to the version that bloomline was released with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HashChanged {
    /// Check value of the `wyhash` crate in this build.
    pub found: u64,
    /// Check value of the format.
    pub expected: u64,
}

impl fmt::Display for HashChanged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { found, expected } = self;
        write!(
            f,
            "the wyhash crate in this build has changed its output (check value {found:#018x}, not \
             {expected:#018x}): pin it to the version that bloomline was released with"
        )
    }
}

impl Error for HashChanged {}

impl From<HashChanged> for DecodeError {
    fn from(changed: HashChanged) -> Self {
        Self::HashChanged(changed)
    }
}

/// A frontier cannot be had back from its file. Where there is no such file yet, begin with an empty frontier; where it is
/// damaged, go back to an older copy.
#[cfg(feature = "std")]
#[non_exhaustive]
#[derive(Debug)]
pub enum RestoreError {
    /// The file cannot be read.
    Io(std::io::Error),
    /// What was read is not a frontier of this type, or is damaged.
    Decode(DecodeError),
}

#[cfg(feature = "std")]
impl fmt::Display for RestoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => write!(f, "the frontier's file cannot be read: {error}"),
            Self::Decode(error) => write!(f, "the file is not a frontier that can be restored: {error}"),
        }
    }
}

#[cfg(feature = "std")]
impl Error for RestoreError {}

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
