//! `Error`, which says what was wrong, with the numbers, and what to do.

use core::fmt;

use crate::digits::Digits;
use crate::kind::StandaloneKind;
use crate::memory::OutOfMemory;

/// Why a filter cannot be made, combined, opened or verified. As text, it says what was wrong, with the numbers, and
/// what to do.
///
/// To act on an error, match on its [`kind`](Self::kind). With the feature `std`, it converts into an
/// [`io::Error`](std::io::Error).
///
/// # Examples
///
/// ```
/// use bloomline::{BloomFilter, BloomView, ErrorKind};
///
/// let error = BloomFilter::with_fpr(1_000, 0.0).unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::Argument);
/// assert_eq!(error.to_string(), "a false-positive rate must be between 0 and 1, both excluded, not 0");
///
/// let mut bytes = BloomFilter::with_fpr(1_000, 0.01)?.to_standalone();
/// bytes[7] ^= 1;
/// let possibly_present = match BloomView::from_standalone(&bytes) {
///     Ok(view) => view.contains("ant"),
///     Err(error) if error.kind() == ErrorKind::OutOfMemory => return Err(error),
///     Err(error) => {
///         println!("{error}"); // the bytes are damaged: their checksum is ...
///         true
///     }
/// };
/// # assert!(possibly_present);
/// # Ok::<(), bloomline::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    /// Has a number in place of each `{}`, in decimal, `{hex}`, `{word}` of 16 digits, `{float}` of its
    /// bits, and `{kind}` of its magic bytes.
    text: &'static str,
    /// In place of `{what}`.
    what: &'static str,
    numbers: [u64; 3],
}

/// What a caller can do about an [`Error`].
///
/// If the filter of a table cannot be opened, whatever the kind, treat its keys as possibly present.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// An argument is out of range, or impossible for this filter. Nothing was changed. Correct the call.
    Argument,
    /// Two filters differ in size, k or seed, so they cannot be combined. Both are unchanged. Build both alike.
    Mismatch,
    /// The bytes are not of this type of filter, or their end is missing. Open them as the type that the text names, or
    /// look for the right file.
    Unrecognized,
    /// The bytes are of a newer version, or a different hash function placed the keys. Upgrade the reader, or rebuild the
    /// filter.
    Unsupported,
    /// The bytes are damaged, cut or joined, or hold values that no version writes. Rebuild the filter.
    Damaged,
    /// Compact bytes and filters in memory have no checksum. Verify the checksum of their container.
    NoChecksum,
    /// The allocator refused memory. Free some, or make a smaller filter.
    OutOfMemory,
}

impl Error {
    #[cold]
    pub(crate) fn new<const N: usize>(kind: ErrorKind, text: &'static str, given: [u64; N]) -> Self {
        let mut numbers = [0; 3];
        numbers[..N].copy_from_slice(&given);
        Self { kind, text, what: "", numbers }
    }

    pub(crate) fn argument<const N: usize>(text: &'static str, numbers: [u64; N]) -> Self {
        Self::new(ErrorKind::Argument, text, numbers)
    }

    pub(crate) fn damaged<const N: usize>(text: &'static str, numbers: [u64; N]) -> Self {
        Self::new(ErrorKind::Damaged, text, numbers)
    }

    /// The error for a field of a footer whose value no version writes.
    pub(crate) fn impossible(what: &'static str, found: impl Into<u64>) -> Self {
        let text = "the footer's {what} cannot be {}: a faulty or newer program wrote the filter";
        Self { what, ..Self::damaged(text, [found.into()]) }
    }

    /// The error for a size in a footer that does not match the number of bytes before it.
    pub(crate) fn wrong_size(unit: &'static str, stored: u64, found_bytes: usize) -> Self {
        let text = "the footer's size of {} {what} does not match the {} bytes before it: the bytes were cut or joined";
        Self { what: unit, ..Self::damaged(text, [stored, found_bytes as u64]) }
    }

    pub(crate) fn probes(k: u32, most: u32) -> Self {
        Self::argument("probes per key must be 1 to {}, not {}", [most, k].map(u64::from))
    }

    pub(crate) fn no_checksum() -> Self {
        let text = "these are compact bytes or a filter in memory, which have no checksum: verify that of their container";
        Self::new(ErrorKind::NoChecksum, text, [])
    }

    /// What a caller can do about it.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
}

impl From<OutOfMemory> for Error {
    fn from(OutOfMemory { bytes }: OutOfMemory) -> Self {
        Self::new(ErrorKind::OutOfMemory, "out of memory: cannot allocate {} bytes", [bytes as u64])
    }
}

#[cfg(feature = "std")]
impl From<Error> for std::io::Error {
    fn from(error: Error) -> Self {
        let kind = match error.kind {
            ErrorKind::OutOfMemory => std::io::ErrorKind::OutOfMemory,
            ErrorKind::Argument | ErrorKind::Mismatch | ErrorKind::NoChecksum => {
                std::io::ErrorKind::InvalidInput
            }
            _ => std::io::ErrorKind::InvalidData,
        };
        Self::new(kind, error)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut numbers = self.numbers.iter();
        let mut parts = self.text.split('{');
        f.write_str(parts.next().unwrap_or_default())?;
        for part in parts {
            let (form, after) = part.split_once('}').unwrap_or((part, ""));
            let mut number = || *numbers.next().unwrap_or(&0);
            match form {
                "what" => f.write_str(self.what),
                "hex" => write!(f, "{:#x}", number()),
                "word" => write!(f, "{:#018x}", number()),
                "float" => Digits(f64::from_bits(number())).fmt(f),
                "kind" => StandaloneKind::of(&number().to_be_bytes()).map_or(Ok(()), |kind| kind.fmt(f)),
                _ => number().fmt(f),
            }?;
            f.write_str(after)?;
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {self}", self.kind)
    }
}

impl core::error::Error for Error {}

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::*;

    #[test]
    fn each_number_is_displayed_in_its_form() {
        let numbers = [7, 0.25_f64.to_bits(), 255];
        let error = Error::damaged("{hex} of {float}, {word}", numbers);
        assert_eq!(format!("{error:?}"), "Damaged: 0x7 of 0.25, 0x00000000000000ff");
        let of = StandaloneKind::Standard.magic();
        let error = Error::argument("a {kind}", [u64::from_be_bytes(of)]);
        assert_eq!(format!("{error}"), "a standard filter");
    }
}
