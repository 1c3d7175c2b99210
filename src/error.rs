//! What can go wrong: each error has the numbers and says what to do.
#![forbid(unsafe_code)]

use core::error::Error;
use core::fmt;

use crate::encoding::StandaloneKind;
use crate::limits::MAX_BITS_PER_KEY;

/// No filter can be made as requested.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SizingError {
    /// Bits per key must be above 0 and at most 64.
    #[non_exhaustive]
    BitsPerKey {
        /// The value given.
        value: f64,
    },
    /// A false-positive rate must be below 1, and no lower than what a filter of this kind can have. Raise it, or use an
    /// exact structure.
    #[non_exhaustive]
    Fpr {
        /// The value given.
        value: f64,
        /// The lowest false-positive rate that can be requested.
        lowest: f64,
    },
    /// Probes per key must be 1 to 16; in a standard filter 1 to 64.
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
        expected_keys: usize,
        /// Bits per key, given or computed.
        bits_per_key: f64,
    },
    /// The fold factor must be at least 1 and divide the number of blocks.
    #[non_exhaustive]
    FoldFactor {
        /// The value given.
        factor: usize,
        /// Blocks of the filter to be folded.
        n_blocks: usize,
    },
    /// The seed must be set before the first key: keys that are in the filter would no longer be found.
    #[non_exhaustive]
    SeedAfterKeys {
        /// The seed given.
        seed: u64,
    },
    /// The allocator refused.
    #[non_exhaustive]
    OutOfMemory {
        /// Bytes requested.
        bytes: usize,
    },
}

impl fmt::Display for SizingError {
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
            Self::SeedAfterKeys { seed } => {
                write!(
                    f,
                    "seed {seed:#x} comes too late: set the seed before the first key, or after `clear`"
                )
            }
            Self::OutOfMemory { bytes } => out_of_memory(f, bytes),
        }
    }
}

impl Error for SizingError {}

/// A number, displayed with up to six significant digits. `core` prints all digits of a float, by code that is a fifth of
/// bloomline in WebAssembly (9 of 45 kB compressed).
struct Digits(f64);

impl fmt::Display for Digits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut value = self.0.abs();
        match self.0 {
            0.0 => return f.write_str("0"),
            f64::INFINITY => return f.write_str("inf"),
            f64::NEG_INFINITY => return f.write_str("-inf"),
            number if number.is_nan() => return f.write_str("NaN"),
            _ => {}
        }
        let mut exponent = 0;
        while value >= 10.0 {
            (value, exponent) = (value / 10.0, exponent + 1);
        }
        while value < 1.0 {
            (value, exponent) = (value * 10.0, exponent - 1);
        }
        let mut digits = (value * 1e5 + 0.5) as u32;
        if digits == 1_000_000 {
            (digits, exponent) = (100_000, exponent + 1);
        }
        let is_plain = (-4..6).contains(&exponent);
        let mut decimals = if is_plain { (5 - exponent) as usize } else { 5 };
        let one = 10_u32.pow(decimals as u32);
        let mut fraction = digits % one;
        while decimals > 0 && fraction.is_multiple_of(10) {
            (fraction, decimals) = (fraction / 10, decimals - 1);
        }
        if self.0 < 0.0 {
            f.write_str("-")?;
        }
        write!(f, "{}", digits / one)?;
        if decimals > 0 {
            write!(f, ".{fraction:0decimals$}")?;
        }
        if is_plain { Ok(()) } else { write!(f, "e{exponent}") }
    }
}

pub(crate) fn out_of_memory(f: &mut fmt::Formatter<'_>, bytes: usize) -> fmt::Result {
    write!(f, "out of memory: cannot allocate {bytes} bytes")
}

/// Two filters cannot be combined, mostly because they place keys differently. Both are unchanged.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MismatchError {
    /// The sizes differ. Of two filters with blocks, fold the larger if its number of blocks is a multiple of the other's;
    /// standard filters cannot be folded.
    #[non_exhaustive]
    Size {
        /// Size of the filter that the method was called on.
        ours: u64,
        /// Size of the other.
        theirs: u64,
        /// Their unit: blocks, or the bits of standard filters.
        unit: &'static str,
    },
    /// The probes per key differ.
    #[non_exhaustive]
    Probes {
        /// k of the filter that the method was called on.
        ours: u32,
        /// k of the other.
        theirs: u32,
    },
    /// The seeds differ.
    #[non_exhaustive]
    Seed {
        /// Seed of the filter that the method was called on.
        ours: u64,
        /// Seed of the other.
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
    /// No compact filter has this many bytes: they were cut, or are something else.
    #[non_exhaustive]
    Length {
        /// Bytes given.
        found: usize,
    },
    /// No compact filter ends in this byte: the bytes were cut or damaged, are something else, or a newer version of
    /// this crate wrote them.
    #[non_exhaustive]
    Trailer {
        /// The last byte.
        found: u8,
    },
    /// A slice does not lie within its bytes.
    #[non_exhaustive]
    Slice {
        /// Where the slice starts.
        start: usize,
        /// Where it ends.
        end: usize,
        /// Bytes that there are.
        found: usize,
    },
    /// Too few bytes for standalone bytes of this type: they were cut, or are something else.
    #[non_exhaustive]
    TooShort {
        /// Bytes given.
        found: usize,
        /// Bytes needed, at least.
        least: usize,
    },
    /// The last eight bytes are not those of standalone bytes of this type.
    #[non_exhaustive]
    Magic {
        /// The last eight bytes.
        found: [u8; 8],
    },
    /// Written by a newer version of this crate or a development build, or damaged: upgrade the reader, or rebuild the
    /// filter.
    #[non_exhaustive]
    Version {
        /// Version in the bytes.
        found: u8,
        /// The newest version that this crate reads.
        newest: u8,
    },
    /// The footer does not match its own checksum: the bytes are damaged.
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
    /// The size in the footer does not match the number of bytes before it: they were cut or joined.
    #[non_exhaustive]
    Size {
        /// Size in the footer.
        stored: u64,
        /// Its unit.
        unit: &'static str,
        /// Bytes before the footer.
        found_bytes: usize,
    },
    /// The bytes before the footer do not match their checksum: they are damaged.
    #[non_exhaustive]
    BodyChecksum {
        /// Checksum in the footer.
        stored: u64,
        /// Checksum of the bytes before the footer.
        computed: u64,
    },
    /// A region of a bank does not match its checksum: it is damaged, or another part of the file.
    #[non_exhaustive]
    RegionChecksum {
        /// Block number of the region.
        block: u64,
        /// Checksum in the region.
        stored: u64,
        /// Checksum of its rows.
        computed: u64,
    },
    /// The bytes are not as long as the range that a lookup reads.
    #[non_exhaustive]
    Range {
        /// Length of the range.
        expected: usize,
        /// Bytes given.
        found: usize,
    },
    /// Another hash function than this crate's placed the filter's keys: the writer is faulty. Rebuild the filter.
    #[non_exhaustive]
    HashValue {
        /// Check value in the footer.
        stored: u64,
        /// Check value of this crate's hash.
        expected: u64,
    },
    /// An item of a frontier's queue cannot be made from its bytes, because another type wrote them, or the frontier's
    /// filter does not contain it.
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
                "a compact filter has 8·L + 1 bytes, L being 1 to 63 or a multiple of 8, not {found}: the bytes were \
                 cut, or are something else"
            ),
            Self::Trailer { found } => write!(
                f,
                "a compact filter ends in a byte from 0x20 to 0x2f, not {found:#04x}: the bytes were cut or damaged, \
                 or are of a newer version"
            ),
            Self::Slice { start, end, found } => write!(f, "bytes {start} to {end} of {found} do not exist"),
            Self::TooShort { found, least } => {
                write!(
                    f,
                    "not a filter's standalone bytes, or cut short: {found} bytes, at least {least} needed"
                )
            }
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
            Self::Footer { field, found } => {
                write!(
                    f,
                    "the footer's {field} cannot be {found}: a faulty or newer program wrote the filter"
                )
            }
            Self::Size { stored, unit, found_bytes } => write!(
                f,
                "the footer's size of {stored} {unit} does not match the {found_bytes} bytes before it: the bytes \
                 were cut or joined"
            ),
            Self::BodyChecksum { stored, computed } => {
                write!(f, "the bytes are damaged: their checksum is {computed:#018x}, stored {stored:#018x}")
            }
            Self::RegionChecksum { block, stored, computed } => write!(
                f,
                "the bank's region {block} is damaged, or these are other bytes: their checksum is {computed:#018x}, \
                 stored {stored:#018x}"
            ),
            Self::Range { expected, found } => {
                write!(
                    f,
                    "a lookup needs {expected} bytes, not {found}: pass those of `range`, no more and no fewer"
                )
            }
            Self::HashValue { stored, expected } => write!(
                f,
                "another hash function placed the keys (check value {stored:#018x}, ours {expected:#018x}): rebuild \
                 the filter"
            ),
            Self::Item { index } => write!(f, "queue item {index} is of another type or not in the filter"),
            Self::OutOfMemory { bytes } => out_of_memory(f, bytes),
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

impl From<OutOfMemory> for SizingError {
    fn from(OutOfMemory { bytes }: OutOfMemory) -> Self {
        Self::OutOfMemory { bytes }
    }
}

/// The allocator refused this many bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OutOfMemory {
    pub(crate) bytes: usize,
}

/// A filter could not be read. The [`source`](Error::source) says why.
#[cfg(feature = "std")]
#[non_exhaustive]
#[derive(Debug)]
pub enum ReadError {
    /// The input could not be read.
    Io(std::io::Error),
    /// What was read is not a filter of this type, or is damaged: go back to an older copy, or rebuild the filter.
    Decode(DecodeError),
}

#[cfg(feature = "std")]
impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Io(_) => "the filter could not be read",
            Self::Decode(_) => "what was read is not a filter of this type",
        })
    }
}

#[cfg(feature = "std")]
impl Error for ReadError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Io(error) => Some(error),
            Self::Decode(error) => Some(error),
        }
    }
}

#[cfg(feature = "std")]
impl From<std::io::Error> for ReadError {
    fn from(error: std::io::Error) -> Self {
        Self::Io(error)
    }
}

#[cfg(feature = "std")]
impl From<DecodeError> for ReadError {
    fn from(error: DecodeError) -> Self {
        Self::Decode(error)
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn impossible_sizes_are_explained() {
        for (error, text) in [
            (SizingError::BitsPerKey { value: 1e3 }, "bits per key must be above 0 and at most 64, not 1000"),
            (
                SizingError::BitsPerKey { value: f64::NAN },
                "bits per key must be above 0 and at most 64, not NaN",
            ),
            (
                SizingError::Fpr { value: 1.5, lowest: 1.263e-8 },
                "a false-positive rate must be between 0 and 1, both excluded, not 1.5",
            ),
            (
                SizingError::Fpr { value: 0.0, lowest: 1.263e-8 },
                "a false-positive rate must be between 0 and 1, both excluded, not 0",
            ),
            (
                SizingError::Fpr { value: 1e-12, lowest: 1.263e-8 },
                "a false-positive rate of 1e-12 is out of reach: request at least 1.263e-8, or use an exact structure",
            ),
            (SizingError::Probes { k: 17, most: 16 }, "probes per key must be 1 to 16, not 17"),
            (
                SizingError::Blocks { n_blocks: 0, most: 9 },
                "a filter has 1 to 9 blocks of 64 bytes on this machine, not 0",
            ),
            (
                SizingError::Bits { bit_len: 0, most: 9 },
                "a standard filter has 1 to 9 bits on this machine, not 0",
            ),
            (
                SizingError::Keys { expected_keys: 10, bits_per_key: 9.933 },
                "10 keys of 9.933 bits each exceed this machine's address space: split the keys over several filters",
            ),
            (
                SizingError::FoldFactor { factor: 3, n_blocks: 10 },
                "10 blocks cannot be folded by 3: use a factor that divides 10",
            ),
            (
                SizingError::SeedAfterKeys { seed: 9 },
                "seed 0x9 comes too late: set the seed before the first key, or after `clear`",
            ),
            (SizingError::OutOfMemory { bytes: 64 }, "out of memory: cannot allocate 64 bytes"),
        ] {
            assert_eq!(error.to_string(), text);
        }
    }

    #[test]
    fn numbers_have_up_to_six_digits() {
        for text in [
            "0", "NaN", "inf", "-inf", "1", "-1", "9.9335", "999999", "0.99999", "0.0001", "100.001",
            "-0.01", "1e6", "1e-5",
        ] {
            assert_eq!(Digits(text.parse().unwrap()).to_string(), text);
        }
        for (value, text) in
            [(0.1 + 0.2, "0.3"), (0.999_999_6, "1"), (1.0 / 3.0, "0.333333"), (999_999.9, "1e6")]
        {
            assert_eq!(Digits(value).to_string(), text);
        }
        for exponent in -300..=300 {
            let value: f64 = alloc::format!("-1.263e{exponent}").parse().unwrap();
            let displayed = Digits(value).to_string().parse::<f64>().unwrap();
            assert!((displayed / value - 1.0).abs() < 1e-12, "{value:e}: {displayed:e}");
        }
    }

    #[test]
    fn mismatches_are_explained() {
        for (error, text) in [
            (
                MismatchError::Size { ours: 8, theirs: 9, unit: "blocks" },
                "filters of 8 and 9 blocks cannot be combined: build both with one number of blocks",
            ),
            (
                MismatchError::Size { ours: 8, theirs: 24, unit: "blocks" },
                "filters of 8 and 24 blocks cannot be combined: fold the larger one by 3",
            ),
            (
                MismatchError::Size { ours: 500, theirs: 1000, unit: "bits" },
                "filters of 500 and 1000 bits cannot be combined: build both with one number of bits",
            ),
            (
                MismatchError::Probes { ours: 6, theirs: 7 },
                "filters with k = 6 and k = 7 cannot be combined: build both with one k",
            ),
            (
                MismatchError::Seed { ours: 0, theirs: 9 },
                "filters with seeds 0x0 and 0x9 cannot be combined: build both with one seed",
            ),
        ] {
            assert_eq!(error.to_string(), text);
        }
    }

    #[test]
    fn malformed_bytes_are_explained() {
        for (error, text) in [
            (
                DecodeError::Length { found: 63 },
                "a compact filter has 8·L + 1 bytes, L being 1 to 63 or a multiple of 8, not 63: the bytes were cut, \
                 or are something else",
            ),
            (
                DecodeError::Trailer { found: 0x35 },
                "a compact filter ends in a byte from 0x20 to 0x2f, not 0x35: the bytes were cut or damaged, or are \
                 of a newer version",
            ),
            (DecodeError::Slice { start: 3, end: 9, found: 7 }, "bytes 3 to 9 of 7 do not exist"),
            (
                DecodeError::RegionChecksum { block: 7, stored: 1, computed: 2 },
                "the bank's region 7 is damaged, or these are other bytes: their checksum is 0x0000000000000002, stored \
                 0x0000000000000001",
            ),
            (
                DecodeError::Range { expected: 64, found: 63 },
                "a lookup needs 64 bytes, not 63: pass those of `range`, no more and no fewer",
            ),
            (
                DecodeError::TooShort { found: 3, least: 72 },
                "not a filter's standalone bytes, or cut short: 3 bytes, at least 72 needed",
            ),
            (
                DecodeError::Magic { found: *b"\x00bloom\r\n" },
                "not a filter's standalone bytes, or cut short: they end in 0x00626c6f6f6d0d0a",
            ),
            (
                DecodeError::Magic { found: *b"\x89blstd\r\n" },
                "these are the bytes of a standard filter: open them as one",
            ),
            (
                DecodeError::Version { found: 3, newest: 2 },
                "the bytes are of version 3, or damaged, and this release reads up to 2: upgrade bloomline, or \
                 rebuild the filter",
            ),
            (
                DecodeError::Version { found: 1, newest: 2 },
                "the bytes are of version 1, which no release wrote: rebuild the filter",
            ),
            (
                DecodeError::FooterChecksum { stored: 1, computed: 2 },
                "the footer is damaged: its checksum is 0x0000000000000002, stored 0x0000000000000001",
            ),
            (
                DecodeError::Footer { field: "k", found: 17 },
                "the footer's k cannot be 17: a faulty or newer program wrote the filter",
            ),
            (
                DecodeError::Size { stored: 8, unit: "bits", found_bytes: 63 },
                "the footer's size of 8 bits does not match the 63 bytes before it: the bytes were cut or joined",
            ),
            (
                DecodeError::BodyChecksum { stored: 1, computed: 2 },
                "the bytes are damaged: their checksum is 0x0000000000000002, stored 0x0000000000000001",
            ),
            (
                DecodeError::HashValue { stored: 1, expected: 2 },
                "another hash function placed the keys (check value 0x0000000000000001, ours 0x0000000000000002): \
                 rebuild the filter",
            ),
            (DecodeError::Item { index: 3 }, "queue item 3 is of another type or not in the filter"),
            (DecodeError::OutOfMemory { bytes: 64 }, "out of memory: cannot allocate 64 bytes"),
        ] {
            assert_eq!(error.to_string(), text);
        }
    }
}
