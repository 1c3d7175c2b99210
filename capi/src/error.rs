//! What went wrong, remembered for each thread.

use core::cell::Cell;
use core::ffi::c_char;
use core::fmt::{self, Write};

use bloomline_core::{DecodeError, HashChanged, MismatchError, SizingError};

/// How a call ended.
#[repr(i32)]
#[derive(Clone, Copy)]
#[allow(non_camel_case_types, reason = "they are C's")]
pub enum Status {
    /// As asked.
    BLOOMLINE_OK = 0,
    /// A pointer is null where it must not be, numbers are not aligned to their size, or a length is greater than
    /// that of any object.
    BLOOMLINE_INVALID_ARGUMENT = 1,
    /// A size, a rate, a k or a factor out of range.
    BLOOMLINE_SIZING = 2,
    /// The filters differ in blocks, k or seed, so they cannot be combined.
    BLOOMLINE_MISMATCH = 3,
    /// The bytes are no filter, or are damaged.
    BLOOMLINE_DECODE = 4,
    /// Memory cannot be had.
    BLOOMLINE_OUT_OF_MEMORY = 5,
    /// The buffer is shorter than what was to be written to it. Nothing was.
    BLOOMLINE_BUFFER_TOO_SMALL = 6,
    /// A seed is set before the first key, and keys have been added.
    BLOOMLINE_NOT_EMPTY = 7,
    /// The library was built with a hash that gives other values than the format asks for.
    BLOOMLINE_HASH_CHANGED = 8,
}

pub(crate) enum Error {
    Null(&'static str),
    TooLong(&'static str),
    Misaligned(&'static str),
    NotEmpty,
    Sizing(SizingError),
    Mismatch(MismatchError),
    Decode(DecodeError),
    HashChanged(HashChanged),
    OutOfMemory { bytes: usize },
    BufferTooSmall { needed: usize, capacity: usize },
}

impl Error {
    fn status(&self) -> Status {
        match self {
            Self::Null(_) | Self::TooLong(_) | Self::Misaligned(_) => Status::BLOOMLINE_INVALID_ARGUMENT,
            Self::NotEmpty => Status::BLOOMLINE_NOT_EMPTY,
            Self::Sizing(SizingError::OutOfMemory { .. }) | Self::OutOfMemory { .. } => {
                Status::BLOOMLINE_OUT_OF_MEMORY
            }
            Self::Sizing(_) => Status::BLOOMLINE_SIZING,
            Self::Mismatch(_) => Status::BLOOMLINE_MISMATCH,
            Self::Decode(DecodeError::HashChanged(_)) | Self::HashChanged(_) => {
                Status::BLOOMLINE_HASH_CHANGED
            }
            Self::Decode(_) => Status::BLOOMLINE_DECODE,
            Self::BufferTooSmall { .. } => Status::BLOOMLINE_BUFFER_TOO_SMALL,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null(what) => write!(f, "{what}: a null pointer"),
            Self::TooLong(what) => write!(f, "{what}: longer than any object can be"),
            Self::Misaligned(what) => write!(f, "{what}: not aligned to its numbers"),
            Self::NotEmpty => write!(f, "a seed is set before the first key"),
            Self::Sizing(error) => error.fmt(f),
            Self::Mismatch(error) => error.fmt(f),
            Self::Decode(error) => error.fmt(f),
            Self::HashChanged(error) => error.fmt(f),
            Self::OutOfMemory { bytes } => write!(f, "the allocator refused {bytes} bytes"),
            Self::BufferTooSmall { needed, capacity } => {
                write!(f, "a buffer of {capacity} bytes is too small: {needed} are needed")
            }
        }
    }
}

impl From<SizingError> for Error {
    fn from(error: SizingError) -> Self {
        Self::Sizing(error)
    }
}

impl From<MismatchError> for Error {
    fn from(error: MismatchError) -> Self {
        Self::Mismatch(error)
    }
}

impl From<DecodeError> for Error {
    fn from(error: DecodeError) -> Self {
        Self::Decode(error)
    }
}

impl From<HashChanged> for Error {
    fn from(error: HashChanged) -> Self {
        Self::HashChanged(error)
    }
}

/// Room for the longest message of the core crate, and a NUL. In place, so that a failure to allocate can be told.
const MESSAGE_BYTES: usize = 256;

#[derive(Clone, Copy)]
struct Message {
    bytes: [u8; MESSAGE_BYTES],
    length: usize,
}

impl Message {
    const EMPTY: Self = Self { bytes: [0; MESSAGE_BYTES], length: 0 };
}

// Cuts what has no room, between characters.
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
    // Nothing in them needs dropping, so they serve until the thread's end.
    static STATUS: Cell<Status> = const { Cell::new(Status::BLOOMLINE_OK) };
    static MESSAGE: Cell<Message> = const { Cell::new(Message::EMPTY) };
}

#[cold]
pub(crate) fn record(error: &Error) -> Status {
    let mut message = Message::EMPTY;
    // A message cut short is no failure, and nothing else can be one.
    let _ = write!(message, "{error}");
    MESSAGE.set(message);
    STATUS.set(error.status());
    error.status()
}

/// What `work` gives, or else `otherwise`, with the failure recorded.
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

/// What went wrong in the last failed call on this thread, in English: a string that ends in a NUL, and lives until
/// the thread's next failure or its end. Never null: empty if there was no failure. A call that succeeds leaves it as
/// it is.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_last_error() -> *const c_char {
    MESSAGE.with(|message| message.as_ptr().cast_const().cast())
}

/// The status of the last failed call on this thread, BLOOMLINE_OK if there was none. A call that succeeds leaves it
/// as it is, like errno.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_last_status() -> Status {
    STATUS.get()
}

/// Forgets the last failure of this thread: before calls that tell of a failure by `bloomline_last_status` only.
#[unsafe(no_mangle)]
pub extern "C" fn bloomline_clear_error() {
    MESSAGE.set(Message::EMPTY);
    STATUS.set(Status::BLOOMLINE_OK);
}
