//! The errors, each with the numbers that were wrong and what to do.
#![forbid(unsafe_code)]

use core::error::Error;
use core::fmt;

use crate::digits::Digits;
use crate::kind::StandaloneKind;
use crate::limits::MAX_BITS_PER_KEY;
use crate::memory::OutOfMemory;

/// A filter or size that was requested cannot be built.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum BuildError {
    /// Bits per key must be above 0 and at most 64.
    #[non_exhaustive]
    BitsPerKey {
        /// The value given.
        value: f64,
    },
    /// A false-positive rate must be below 1, and no lower than what a filter of this kind can have. Raise it, or use
    /// an exact structure.
    #[non_exhaustive]
    Fpr {
        /// The value given.
        value: f64,
        /// The lowest false-positive rate that can be requested.
        lowest: f64,
    },
    /// Probes per key must be 1 to 16, or in a standard filter 1 to 64.
    #[non_exhaustive]
    Probes {
        /// The value given.
        k: u32,
        /// The highest value.
        most: u32,
    },
    /// A filter has at least one block, and no more than fit in the address space.
    #[non_exhaustive]
    Blocks {
        /// The number given.
        n_blocks: u64,
        /// The highest number on this machine.
        most: u64,
    },
    /// A filter has 1 to 16 modules, and some kinds have only one. Then compute its size by
    /// [`Sizing::for_fpr_within`](crate::Sizing::for_fpr_within) for at most one.
    #[non_exhaustive]
    Modules {
        /// The number given.
        n_modules: usize,
        /// The highest number.
        most: usize,
    },
    /// All modules have the same number of blocks, so the number of modules must divide that of the blocks.
    #[non_exhaustive]
    BlocksOfModules {
        /// Blocks of all modules.
        n_blocks: usize,
        /// The number of modules given.
        n_modules: usize,
    },
    /// A standard filter has at least one bit, and no more than fit in the address space.
    #[non_exhaustive]
    Bits {
        /// The number given.
        bit_len: u64,
        /// The highest number on this machine.
        most: u64,
    },
    /// A filter of so many keys exceeds the address space. Split the keys over several filters.
    #[non_exhaustive]
    Keys {
        /// The number given.
        expected_keys: u64,
        /// Bits per key, given or computed.
        bits_per_key: f64,
    },
    /// The fold factor must be at least 1 and divide the number of blocks of each module.
    #[non_exhaustive]
    FoldFactor {
        /// The value given.
        factor: usize,
        /// Blocks of each module of the filter to be folded.
        n_blocks: usize,
    },
    /// The seed must be set before the first key, because keys that are in the filter would no longer be found.
    #[non_exhaustive]
    SeedAfterKeys {
        /// The seed given.
        seed: u64,
    },
    /// The allocator refused the memory.
    #[non_exhaustive]
    OutOfMemory {
        /// Bytes requested.
        bytes: usize,
    },
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::BitsPerKey { value } => {
                let (most, value) = (Digits(MAX_BITS_PER_KEY), Digits(value));
                write!(f, "bits per key must be above 0 and at most {most}, not {value}")
            }
            Self::Fpr { value, lowest } if value > 0.0 && value < lowest => write!(
                f,
                "a false-positive rate of {} is out of reach: request at least {}, or use an exact structure",
                Digits(value),
                Digits(lowest)
            ),
            Self::Fpr { value, .. } => {
                let value = Digits(value);
                write!(f, "a false-positive rate must be between 0 and 1, both excluded, not {value}")
            }
            Self::Probes { k, most } => write!(f, "probes per key must be 1 to {most}, not {k}"),
            Self::Blocks { n_blocks, most } => {
                write!(f, "a filter has 1 to {most} blocks of 64 bytes on this machine, not {n_blocks}")
            }
            Self::Modules { n_modules, most: 1 } => {
                write!(f, "this kind of filter has one module, not {n_modules}: {ONE_MODULE}")
            }
            Self::Modules { n_modules, most } => {
                write!(f, "the number of modules must be 1 to {most}, not {n_modules}")
            }
            Self::BlocksOfModules { n_blocks, n_modules } => write!(
                f,
                "{n_blocks} blocks cannot be divided among {n_modules} modules: use a multiple of {n_modules}"
            ),
            Self::Bits { bit_len, most } => {
                write!(f, "a standard filter has 1 to {most} bits on this machine, not {bit_len}")
            }
            Self::Keys { expected_keys, bits_per_key } => write!(
                f,
                "{expected_keys} keys of {} bits each exceed this machine's address space: split the keys over several \
                 filters",
                Digits(bits_per_key)
            ),
            Self::FoldFactor { factor, n_blocks } => write!(
                f,
                "{n_blocks} blocks cannot be folded by {factor}: use a factor that divides {n_blocks}"
            ),
            Self::SeedAfterKeys { seed } => write!(
                f,
                "seed {seed:#x} comes too late: set the seed before the first key, or after `clear`"
            ),
            Self::OutOfMemory { bytes } => OutOfMemory { bytes }.fmt(f),
        }
    }
}

impl Error for BuildError {}

/// What to do where a filter of several modules cannot be used.
pub(crate) const ONE_MODULE: &str = "compute the size by `Sizing::for_fpr_within(keys, fpr, 1)`";

/// Two filters cannot be combined, because they differ in size, k or seed. Both are unchanged.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MismatchError {
    /// The sizes differ. Of two filters with blocks, fold the larger if its number of blocks is a multiple of the
    /// smaller one's. Standard filters cannot be folded.
    #[non_exhaustive]
    Size {
        /// Size of the filter that the method was called on.
        ours: u64,
        /// Size of the filter that was passed.
        theirs: u64,
        /// The unit of both sizes, `"blocks"` or `"modules"`, or `"bits"` of standard filters.
        unit: &'static str,
    },
    /// The probes per key differ.
    #[non_exhaustive]
    Probes {
        /// k of the filter that the method was called on.
        ours: u32,
        /// k of the filter that was passed.
        theirs: u32,
    },
    /// The seeds differ.
    #[non_exhaustive]
    Seed {
        /// Seed of the filter that the method was called on.
        ours: u64,
        /// Seed of the filter that was passed.
        theirs: u64,
    },
}

impl fmt::Display for MismatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Size { ours, theirs, unit } => {
                let (more, fewer) = (ours.max(theirs), ours.min(theirs));
                write!(f, "filters of {ours} and {theirs} {unit} cannot be combined: ")?;
                match more.checked_rem(fewer) {
                    Some(0) if unit == "blocks" => write!(f, "fold the larger one by {}", more / fewer),
                    _ => write!(f, "build both with one number of {unit}"),
                }
            }
            Self::Probes { ours, theirs } => write!(
                f,
                "filters with k = {ours} and k = {theirs} cannot be combined: build both with one k"
            ),
            Self::Seed { ours, theirs } => write!(
                f,
                "filters with seeds {ours:#x} and {theirs:#x} cannot be combined: build both with one seed"
            ),
        }
    }
}

impl Error for MismatchError {}

/// The bytes are not a filter that this version can read. Treat the key as possibly present, or rebuild the filter.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecodeError {
    /// No compact filter has this many bytes. They were cut, or are something else.
    #[non_exhaustive]
    Length {
        /// Bytes given.
        found: usize,
    },
    /// No compact filter ends in this byte. The bytes were cut or damaged, are something else, or a newer version of
    /// this crate wrote them.
    #[non_exhaustive]
    Trailer {
        /// The last byte.
        found: u8,
    },
    /// A slice does not lie within its bytes, because the range that was stored for it is damaged, or is of a different
    /// file.
    #[non_exhaustive]
    Slice {
        /// Where the slice starts.
        start: usize,
        /// Where it ends.
        end: usize,
        /// Bytes that there are.
        found: usize,
    },
    /// Too few bytes. They were cut, or are something else.
    #[non_exhaustive]
    TooShort {
        /// Bytes given.
        found: usize,
        /// Bytes needed, at least.
        least: usize,
    },
    /// The last eight bytes, which identify the type, are not the ones of this type.
    #[non_exhaustive]
    Magic {
        /// The last eight bytes.
        found: [u8; 8],
    },
    /// Written by a newer version of this crate or a development build, or damaged. Upgrade the reader, or rebuild the
    /// filter.
    #[non_exhaustive]
    Version {
        /// Version in the bytes.
        found: u8,
        /// The newest version that this crate reads.
        newest: u8,
    },
    /// The footer does not match its own checksum, so the bytes are damaged.
    #[non_exhaustive]
    FooterChecksum {
        /// Checksum in the footer.
        stored: u64,
        /// Checksum of the footer's bytes.
        computed: u64,
    },
    /// The footer holds a value that no version of this format writes.
    #[non_exhaustive]
    Footer {
        /// Which field.
        field: &'static str,
        /// Its value.
        found: u64,
    },
    /// The size in the footer does not match the number of bytes before it, because they were cut or joined.
    #[non_exhaustive]
    Size {
        /// Size in the footer.
        stored: u64,
        /// Its unit.
        unit: &'static str,
        /// Bytes before the footer.
        found_bytes: usize,
    },
    /// The bytes before the footer do not match their checksum, so they are damaged.
    #[non_exhaustive]
    BodyChecksum {
        /// Checksum in the footer.
        stored: u64,
        /// Checksum of the bytes before the footer.
        computed: u64,
    },
    /// Compact bytes and filters in memory have no checksum to compare with. Rely on their container's.
    NoChecksum,
    /// A region of a bank does not match its checksum, because it is damaged, or is a different part of the file, or is
    /// of a different bank.
    #[non_exhaustive]
    RegionChecksum {
        /// Block number of the region.
        block: u64,
        /// Checksum in the region.
        stored: u64,
        /// Checksum of its rows.
        computed: u64,
    },
    /// A range of one block can be looked up only in filters of one module.
    #[non_exhaustive]
    Modules {
        /// The filter's number of modules.
        n_modules: u32,
    },
    /// The bytes are not as long as the range that a lookup reads.
    #[non_exhaustive]
    Range {
        /// Length of the range.
        expected: usize,
        /// Bytes given.
        found: usize,
    },
    /// The filter's keys were placed by a different hash function than this crate's, so the writer is faulty. Rebuild
    /// the filter.
    #[non_exhaustive]
    HashValue {
        /// Check value in the footer.
        stored: u64,
        /// Check value of this crate's hash.
        expected: u64,
    },
    /// An item of a frontier's queue cannot be made from its bytes, because they are of a different type, or the
    /// frontier's filter does not contain it.
    #[non_exhaustive]
    Item {
        /// Position in the queue, from 0.
        index: u64,
    },
    /// The bytes are a filter, but the allocator refused memory for a copy.
    #[non_exhaustive]
    OutOfMemory {
        /// Bytes requested.
        bytes: usize,
    },
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Length { found } => write!(
                f,
                "a compact filter has 8·L + 1 bytes, L being 1 to 63 or a multiple of 8, or 64·B + 2 in B blocks of \
                 several modules, not {found}: the bytes were cut, or are something else"
            ),
            Self::Trailer { found } => write!(
                f,
                "a compact filter ends in a byte from 0x20 to 0x2f, or 0x30 to 0x3f if it has several modules, not \
                 {found:#04x}: the bytes were cut or damaged, or are of a newer version"
            ),
            Self::Slice { start, end, found } => write!(
                f,
                "bytes {start} to {end} of {found} do not exist: the range is damaged, or of another file"
            ),
            Self::TooShort { found, least } => write!(
                f,
                "the bytes were cut, or are something else: there are {found}, and at least {least} are needed"
            ),
            Self::Magic { found } => match StandaloneKind::of(&found) {
                Some(kind) => write!(f, "these are the bytes of a {kind}: open them as one"),
                None => {
                    let end = u64::from_be_bytes(found);
                    write!(f, "not a filter's standalone bytes, or cut short: they end in {end:#018x}")
                }
            },
            Self::Version { found, newest } if found < newest => {
                write!(f, "the bytes are of version {found}, which no release wrote: rebuild the filter")
            }
            Self::Version { found, newest } => write!(
                f,
                "the bytes are of version {found}, or damaged, and this release reads up to {newest}: upgrade \
                 bloomline, or rebuild the filter"
            ),
            Self::FooterChecksum { stored, computed } => {
                write!(f, "the footer is damaged: its checksum is {computed:#018x}, stored {stored:#018x}")
            }
            Self::Footer { field, found } => write!(
                f,
                "the footer's {field} cannot be {found}: a faulty or newer program wrote the filter"
            ),
            Self::Size { stored, unit, found_bytes } => write!(
                f,
                "the footer's size of {stored} {unit} does not match the {found_bytes} bytes before it: the bytes \
                 were cut or joined"
            ),
            Self::BodyChecksum { stored, computed } => {
                write!(f, "the bytes are damaged: their checksum is {computed:#018x}, stored {stored:#018x}")
            }
            Self::NoChecksum => f.write_str(
                "these are compact bytes or a filter in memory, which have no checksum: verify that of their container",
            ),
            Self::RegionChecksum { block, stored, computed } => write!(
                f,
                "the bank's region {block} is damaged, or these are other bytes: their checksum is {computed:#018x}, \
                 stored {stored:#018x}"
            ),
            Self::Modules { n_modules } => {
                write!(f, "a filter of {n_modules} modules cannot be asked by ranges: {ONE_MODULE}, and rebuild it")
            }
            Self::Range { expected, found } => write!(
                f,
                "a lookup needs {expected} bytes, not {found}: pass those of `range`, no more and no fewer"
            ),
            Self::HashValue { stored, expected } => write!(
                f,
                "another hash function placed the keys (check value {stored:#018x}, ours {expected:#018x}): rebuild \
                 the filter"
            ),
            Self::Item { index } => write!(f, "queue item {index} is of another type or not in the filter"),
            Self::OutOfMemory { bytes } => OutOfMemory { bytes }.fmt(f),
        }
    }
}

impl Error for DecodeError {}

/// Only running out of memory can prevent a copy of a valid filter.
impl From<OutOfMemory> for DecodeError {
    fn from(OutOfMemory { bytes }: OutOfMemory) -> Self {
        Self::OutOfMemory { bytes }
    }
}

impl From<OutOfMemory> for BuildError {
    fn from(OutOfMemory { bytes }: OutOfMemory) -> Self {
        Self::OutOfMemory { bytes }
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    macro_rules! assert_texts {
        ($($error:expr => $text:literal,)*) => {
            $(assert_eq!($error.to_string(), $text);)*
        };
    }

    #[test]
    fn impossible_sizes_are_explained() {
        assert_texts! {
            BuildError::BitsPerKey { value: 1e3 } =>
                "bits per key must be above 0 and at most 64, not 1000",
            BuildError::BitsPerKey { value: f64::NAN } =>
                "bits per key must be above 0 and at most 64, not NaN",
            BuildError::Fpr { value: 1.5, lowest: 1.263e-8 } =>
                "a false-positive rate must be between 0 and 1, both excluded, not 1.5",
            BuildError::Fpr { value: 0.0, lowest: 1.263e-8 } =>
                "a false-positive rate must be between 0 and 1, both excluded, not 0",
            BuildError::Fpr { value: 1e-12, lowest: 1.263e-8 } =>
                "a false-positive rate of 1e-12 is out of reach: request at least 1.263e-8, or use an exact structure",
            BuildError::Probes { k: 17, most: 16 } =>
                "probes per key must be 1 to 16, not 17",
            BuildError::Blocks { n_blocks: 0, most: 9 } =>
                "a filter has 1 to 9 blocks of 64 bytes on this machine, not 0",
            BuildError::Bits { bit_len: 0, most: 9 } =>
                "a standard filter has 1 to 9 bits on this machine, not 0",
            BuildError::Keys { expected_keys: 10, bits_per_key: 9.933 } =>
                "10 keys of 9.933 bits each exceed this machine's address space: split the keys over several filters",
            BuildError::FoldFactor { factor: 3, n_blocks: 10 } =>
                "10 blocks cannot be folded by 3: use a factor that divides 10",
            BuildError::SeedAfterKeys { seed: 9 } =>
                "seed 0x9 comes too late: set the seed before the first key, or after `clear`",
            BuildError::Modules { n_modules: 0, most: 4 } =>
                "the number of modules must be 1 to 4, not 0",
            BuildError::Modules { n_modules: 2, most: 1 } =>
                "this kind of filter has one module, not 2: compute the size by `Sizing::for_fpr_within(keys, fpr, 1)`",
            BuildError::BlocksOfModules { n_blocks: 10, n_modules: 3 } =>
                "10 blocks cannot be divided among 3 modules: use a multiple of 3",
            BuildError::OutOfMemory { bytes: 64 } =>
                "out of memory: cannot allocate 64 bytes",
        }
    }

    #[test]
    fn mismatches_are_explained() {
        assert_texts! {
            MismatchError::Size { ours: 8, theirs: 9, unit: "blocks" } =>
                "filters of 8 and 9 blocks cannot be combined: build both with one number of blocks",
            MismatchError::Size { ours: 8, theirs: 24, unit: "blocks" } =>
                "filters of 8 and 24 blocks cannot be combined: fold the larger one by 3",
            MismatchError::Size { ours: 500, theirs: 1000, unit: "bits" } =>
                "filters of 500 and 1000 bits cannot be combined: build both with one number of bits",
            MismatchError::Size { ours: 1, theirs: 2, unit: "modules" } =>
                "filters of 1 and 2 modules cannot be combined: build both with one number of modules",
            MismatchError::Probes { ours: 6, theirs: 7 } =>
                "filters with k = 6 and k = 7 cannot be combined: build both with one k",
            MismatchError::Seed { ours: 0, theirs: 9 } =>
                "filters with seeds 0x0 and 0x9 cannot be combined: build both with one seed",
        }
    }

    #[test]
    fn malformed_bytes_are_explained() {
        assert_texts! {
            DecodeError::Length { found: 63 } =>
                "a compact filter has 8·L + 1 bytes, L being 1 to 63 or a multiple of 8, or 64·B + 2 in B blocks of \
                 several modules, not 63: the bytes were cut, or are something else",
            DecodeError::Trailer { found: 0x35 } =>
                "a compact filter ends in a byte from 0x20 to 0x2f, or 0x30 to 0x3f if it has several modules, not 0x35: \
                 the bytes were cut or damaged, or are of a newer version",
            DecodeError::Slice { start: 3, end: 9, found: 7 } =>
                "bytes 3 to 9 of 7 do not exist: the range is damaged, or of another file",
            DecodeError::NoChecksum =>
                "these are compact bytes or a filter in memory, which have no checksum: verify that of their container",
            DecodeError::RegionChecksum { block: 7, stored: 1, computed: 2 } =>
                "the bank's region 7 is damaged, or these are other bytes: their checksum is 0x0000000000000002, stored \
                 0x0000000000000001",
            DecodeError::Modules { n_modules: 2 } =>
                "a filter of 2 modules cannot be asked by ranges: compute the size by \
                 `Sizing::for_fpr_within(keys, fpr, 1)`, and rebuild it",
            DecodeError::Range { expected: 64, found: 63 } =>
                "a lookup needs 64 bytes, not 63: pass those of `range`, no more and no fewer",
            DecodeError::TooShort { found: 3, least: 72 } =>
                "the bytes were cut, or are something else: there are 3, and at least 72 are needed",
            DecodeError::Magic { found: *b"\x00bloom\r\n" } =>
                "not a filter's standalone bytes, or cut short: they end in 0x00626c6f6f6d0d0a",
            DecodeError::Magic { found: *b"\x89blstd\r\n" } =>
                "these are the bytes of a standard filter: open them as one",
            DecodeError::Version { found: 3, newest: 2 } =>
                "the bytes are of version 3, or damaged, and this release reads up to 2: upgrade bloomline, or \
                 rebuild the filter",
            DecodeError::Version { found: 1, newest: 2 } =>
                "the bytes are of version 1, which no release wrote: rebuild the filter",
            DecodeError::FooterChecksum { stored: 1, computed: 2 } =>
                "the footer is damaged: its checksum is 0x0000000000000002, stored 0x0000000000000001",
            DecodeError::Footer { field: "k", found: 17 } =>
                "the footer's k cannot be 17: a faulty or newer program wrote the filter",
            DecodeError::Size { stored: 8, unit: "bits", found_bytes: 63 } =>
                "the footer's size of 8 bits does not match the 63 bytes before it: the bytes were cut or joined",
            DecodeError::BodyChecksum { stored: 1, computed: 2 } =>
                "the bytes are damaged: their checksum is 0x0000000000000002, stored 0x0000000000000001",
            DecodeError::HashValue { stored: 1, expected: 2 } =>
                "another hash function placed the keys (check value 0x0000000000000001, ours 0x0000000000000002): \
                 rebuild the filter",
            DecodeError::Item { index: 3 } =>
                "queue item 3 is of another type or not in the filter",
            DecodeError::OutOfMemory { bytes: 64 } =>
                "out of memory: cannot allocate 64 bytes",
        }
    }
}
