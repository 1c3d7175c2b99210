//! Standalone bytes, for files and networks (section 5 of the format). Variants encode theirs in their own files, with
//! the same methods.
#![forbid(unsafe_code)]

use crate::blocks::BlockSlice;
use crate::error::DecodeError;
use crate::footer::{StandaloneFooter, checksum, split_filter};
use crate::hash::Seed;
use crate::kind::StandaloneKind;
use crate::lanes::{LANE_BYTES, Lanes, with_fewest_lanes};
use crate::mask::ProbeCount;

/// Calls `write` with the lanes, then with the footer that follows them.
pub(crate) fn encode<E>(
    blocks: BlockSlice<'_>,
    k: ProbeCount,
    seed: Seed,
    keys: Option<u64>,
    mut write: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<(), E> {
    with_fewest_lanes([blocks], |[lanes]| {
        let lanes = lanes.as_bytes();
        let n_lanes = (lanes.len() / LANE_BYTES) as u64;
        let (k, seed) = (k.get(), seed.get());
        let footer = StandaloneFooter::new(StandaloneKind::Blocked, n_lanes, k, seed, keys, checksum(lanes));
        write(lanes)?;
        write(&footer.to_bytes())
    })
}

pub(crate) fn read_standalone(
    bytes: &[u8],
) -> Result<(Lanes<'_>, ProbeCount, StandaloneFooter), DecodeError> {
    let (lanes, footer) = split_filter(bytes, StandaloneKind::Blocked)?;
    let k = footer.probe_count(ProbeCount::new)?;
    footer.check_size(lanes)?;
    Ok((Lanes::new(lanes).ok_or(footer.wrong_size(lanes))?, k, footer))
}

/// Splits off the last of several filters' standalone bytes.
pub(crate) fn split_last_standalone(bytes: &[u8]) -> Result<(&[u8], &[u8]), DecodeError> {
    let (before, footer) = split_filter(bytes, StandaloneKind::Blocked)?;
    let start = footer.body_len().and_then(|lanes| before.len().checked_sub(lanes));
    let start = start.ok_or(footer.wrong_size(before))?;
    Ok(bytes.split_at(start))
}

/// The methods that write standalone bytes, by a filter's `encode` and `standalone_len`.
macro_rules! standalone_io {
    () => {
        /// Returns the standalone bytes, with checksums, for a file or a network.
        #[doc(alias = "to_bytes")]
        #[must_use]
        pub fn to_standalone(&self) -> Vec<u8> {
            let mut bytes = Vec::with_capacity(self.standalone_len());
            let Ok(()) = self.encode(|part| {
                bytes.extend_from_slice(part);
                Ok::<_, core::convert::Infallible>(())
            });
            bytes
        }

        /// Writes the standalone bytes to a file, a socket, a `Vec` or any other writer, and flushes it. Copies at most
        /// a small part at a time. Requires the feature `std`.
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
}
pub(crate) use standalone_io;
