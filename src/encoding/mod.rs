//! Encoding and decoding, as `docs/format.md` specifies. The formats of the variants are in the variants' own files.
#![forbid(unsafe_code)]

mod compact;
mod footer;
mod lanes;
mod standalone;

use alloc::vec::Vec;
use core::convert::Infallible;

pub(crate) use compact::{compact_len, read_compact, with_compact, write_compact_lanes};
pub use footer::{StandaloneFooter, StandaloneKind};
pub(crate) use footer::{UNKNOWN_KEYS, VERSION, checksum, seal, split, split_filter, verify};
pub(crate) use lanes::{LANE_BYTES, Lanes, with_fewest_lanes, with_fewest_lanes_of_both};
pub(crate) use standalone::{read_standalone, split_last_standalone, with_standalone};

/// Takes the parts of an encoding one after the other, and never fails.
pub(crate) fn append_to(out: &mut Vec<u8>) -> impl FnMut(&[u8]) -> Result<(), Infallible> {
    |part| {
        out.extend_from_slice(part);
        Ok(())
    }
}

/// The methods that write and read standalone bytes, the same for every filter: by its `encode`, `standalone_len` and
/// `from_standalone`.
macro_rules! standalone_io {
    (write) => {
        /// Returns the standalone bytes, with checksums: for a file or a network.
        #[doc(alias = "to_bytes")]
        #[must_use]
        pub fn to_standalone(&self) -> Vec<u8> {
            let mut bytes = Vec::with_capacity(self.standalone_len());
            let Ok(()) = self.encode(crate::encoding::append_to(&mut bytes));
            bytes
        }

        /// Writes the standalone bytes to a file, a socket, a `Vec` or another writer, and flushes it. Copies a
        /// small part at a time. Requires the feature `std`.
        ///
        /// # Errors
        ///
        /// The writer's errors.
        #[doc(alias = "save")]
        #[cfg(feature = "std")]
        pub fn write_standalone(&self, mut out: impl std::io::Write) -> std::io::Result<()> {
            self.encode(|part| out.write_all(part))?;
            out.flush()
        }
    };
    (read) => {
        /// Reads standalone bytes from a file, a socket or another reader, to its end, and checks them as
        /// [`from_standalone`](Self::from_standalone) does. Requires the feature `std`.
        ///
        /// Takes memory for the bytes, and up to as much spare room, beside the filter. Limit untrusted input with
        /// [`Read::take`](std::io::Read::take).
        ///
        /// # Errors
        ///
        /// [`ReadError::Io`](crate::ReadError::Io) if the input cannot be read,
        /// [`ReadError::Decode`](crate::ReadError::Decode) if `from_standalone` refuses the bytes.
        #[doc(alias = "load")]
        #[cfg(feature = "std")]
        pub fn read_standalone(mut input: impl std::io::Read) -> Result<Self, crate::ReadError> {
            let mut bytes = Vec::new();
            input.read_to_end(&mut bytes)?;
            Ok(Self::from_standalone(&bytes)?)
        }
    };
}
pub(crate) use standalone_io;
