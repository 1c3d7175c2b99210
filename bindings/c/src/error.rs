//! The last error of each thread.

use core::cell::Cell;
use core::ffi::c_char;
use core::fmt::{self, Write};
use std::io;
use std::path::PathBuf;

use bloomline_core::ErrorKind;

/// The result of a call.
#[repr(i32)]
#[derive(Clone, Copy)]
#[allow(non_camel_case_types, reason = "they are C's")]
pub enum Status {
    /// Success.
    BLOOMLINE_OK = 0,
    /// A pointer is null where it must not be, an array is misaligned, or a length is larger than any object can be.
    BLOOMLINE_INVALID_ARGUMENT = 1,
    /// A size, a false-positive rate, a k, a number of modules or a fold factor is out of range.
    BLOOMLINE_SIZING = 2,
    /// The filters differ in blocks, modules, k or seed, so they cannot be combined.
    BLOOMLINE_MISMATCH = 3,
    /// The bytes are not a filter that this version can read, or they are damaged.
    BLOOMLINE_DECODE = 4,
    /// Memory cannot be allocated.
    BLOOMLINE_OUT_OF_MEMORY = 5,
    /// The buffer is too small for the output, which was not written.
    BLOOMLINE_BUFFER_TOO_SMALL = 6,
    /// Seeds and numbers of modules can only be set before the first key, and keys have been inserted.
    BLOOMLINE_NOT_EMPTY = 7,
    /// A file cannot be read or written.
    BLOOMLINE_IO = 8,
}

pub(crate) enum Error {
    Null(&'static str),
    TooLong(&'static str),
    Misaligned(&'static str),
    NotEmpty,
    Core(bloomline_core::Error),
    OutOfMemory { bytes: usize },
    BufferTooSmall { needed: usize, capacity: usize },
    Io(io::Error),
    File { path: PathBuf, error: Box<Error> },
}

impl Error {
    fn status(&self) -> Status {
        match self {
            Self::Null(_) | Self::TooLong(_) | Self::Misaligned(_) => Status::BLOOMLINE_INVALID_ARGUMENT,
            Self::NotEmpty => Status::BLOOMLINE_NOT_EMPTY,
            Self::OutOfMemory { .. } => Status::BLOOMLINE_OUT_OF_MEMORY,
            Self::Core(error) => match error.kind() {
                ErrorKind::OutOfMemory => Status::BLOOMLINE_OUT_OF_MEMORY,
                ErrorKind::Argument => Status::BLOOMLINE_SIZING,
                ErrorKind::Mismatch => Status::BLOOMLINE_MISMATCH,
                _ => Status::BLOOMLINE_DECODE,
            },
            Self::BufferTooSmall { .. } => Status::BLOOMLINE_BUFFER_TOO_SMALL,
            Self::Io(error) if error.kind() == io::ErrorKind::OutOfMemory => Status::BLOOMLINE_OUT_OF_MEMORY,
            Self::Io(_) => Status::BLOOMLINE_IO,
            Self::File { error, .. } => error.status(),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null(what) => write!(f, "{what} is a null pointer"),
            Self::TooLong(what) => write!(f, "{what} is longer than any object can be"),
            Self::Misaligned(what) => write!(f, "{what} is not aligned for its element type"),
            Self::NotEmpty => write!(f, "keys have been inserted: set this before the first key"),
            Self::Core(error) => error.fmt(f),
            Self::OutOfMemory { bytes } => write!(f, "out of memory: cannot allocate {bytes} bytes"),
            Self::BufferTooSmall { needed, capacity } => {
                write!(f, "a buffer of {capacity} bytes is too small: {needed} bytes are needed")
            }
            // The path comes last, because long messages are cut.
            Self::File { path, error } => write!(f, "{error}: {}", path.display()),
            Self::Io(error) => error.fmt(f),
        }
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<bloomline_core::Error> for Error {
    fn from(error: bloomline_core::Error) -> Self {
        Self::Core(error)
    }
}

/// Has room for the core crate's longest message and a NUL. Stored inline, so that a failed allocation can be reported.
const MESSAGE_BYTES: usize = 256;

#[derive(Clone, Copy)]
struct Message {
    bytes: [u8; MESSAGE_BYTES],
    length: usize,
}

impl Message {
    const EMPTY: Self = Self { bytes: [0; MESSAGE_BYTES], length: 0 };
}

// Truncates between characters, so that the message stays UTF-8.
impl Write for Message {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = MESSAGE_BYTES - 1 - self.length;
        let fits = (0..=room.min(text.len())).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(0);
        self.bytes[self.length..][..fits].copy_from_slice(&text.as_bytes()[..fits]);
        self.length += fits;
        Ok(())
    }
}

thread_local! {
    // Neither needs dropping, so both are usable until the thread ends.
    static STATUS: Cell<Status> = const { Cell::new(Status::BLOOMLINE_OK) };
    static MESSAGE: Cell<Message> = const { Cell::new(Message::EMPTY) };
}

#[cold]
pub(crate) fn record(error: &Error) -> Status {
    let mut message = Message::EMPTY;
    // Truncation is not an error, and nothing else can fail.
    let _ = write!(message, "{error}");
    MESSAGE.set(message);
    STATUS.set(error.status());
    error.status()
}

/// Returns the result of `work`. If it fails, records the error and returns `otherwise`.
#[inline]
pub(crate) fn or_record<T>(otherwise: T, work: impl FnOnce() -> Result<T, Error>) -> T {
    work().unwrap_or_else(|error| {
        record(&error);
        otherwise
    })
}

#[inline]
pub(crate) fn status_of(work: impl FnOnce() -> Result<(), Error>) -> Status {
    work().map_or_else(|error| record(&error), |()| Status::BLOOMLINE_OK)
}

/// Returns a message, in English, about this thread's last failed call. It is a NUL-terminated string of at most 255
/// bytes, empty if no call has failed, and never null. It is valid until the thread's next failure, its next
/// `bloomline_clear_error` or its end. A successful call does not change it.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_last_error() -> *const c_char {
    MESSAGE.with(|message| message.as_ptr().cast_const().cast())
}

/// Returns the status of this thread's last failed call, or BLOOMLINE_OK if no call has failed. Like errno, it is not
/// changed by a successful call.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_last_status() -> Status {
    STATUS.get()
}

/// Clears this thread's last error. Call it before functions that report failure through `bloomline_last_status` only.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_clear_error() {
    MESSAGE.set(Message::EMPTY);
    STATUS.set(Status::BLOOMLINE_OK);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_messages_are_cut_between_characters_before_a_nul() {
        for (text, expected) in [("a", 255), ("ä", 254), ("€", 255)] {
            let mut message = Message::EMPTY;
            (0..300).for_each(|_| message.write_str(text).unwrap());
            assert_eq!(message.length, expected);
            assert!(message.bytes.starts_with(text.repeat(expected / text.len()).as_bytes()));
            assert_eq!(message.bytes[expected], 0);
            let mut at_once = Message::EMPTY;
            at_once.write_str(&text.repeat(300)).unwrap();
            assert_eq!(at_once.bytes, message.bytes);
        }
    }

    #[test]
    fn too_little_memory_for_a_file_is_too_little_memory() {
        let status = |kind: io::ErrorKind| Error::Io(kind.into()).status() as i32;
        assert_eq!(status(io::ErrorKind::OutOfMemory), Status::BLOOMLINE_OUT_OF_MEMORY as i32);
        assert_eq!(status(io::ErrorKind::NotFound), Status::BLOOMLINE_IO as i32);
    }
}
