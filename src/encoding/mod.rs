//! Encoding and decoding, as `docs/format.md` specifies. The formats of the variants are in the variants' own files.
#![forbid(unsafe_code)]

mod compact;
mod footer;
mod lanes;
mod standalone;

use alloc::vec::Vec;
use core::convert::Infallible;

pub(crate) use compact::{compact_bytes, read_compact, write_compact, write_compact_lanes};
pub use footer::{StandaloneFooter, StandaloneKind};
pub(crate) use footer::{VERSION, signed, split, split_filter, verify};
pub(crate) use lanes::{LANE_BYTES, Lanes, with_fewest_lanes, with_fewest_lanes_of_both};
pub(crate) use standalone::{read_standalone, split_last_standalone, with_standalone};

/// Takes the parts of an encoding one after the other, and never fails.
pub(crate) fn append_to(out: &mut Vec<u8>) -> impl FnMut(&[u8]) -> Result<(), Infallible> {
    |part| {
        out.extend_from_slice(part);
        Ok(())
    }
}
