//! Encoding and decoding, as `docs/format.md` specifies. The formats of the variants are in the variants' own files.
#![forbid(unsafe_code)]

mod compact;
mod footer;
mod lanes;
mod standalone;

pub(crate) use compact::{compact_bytes, read_compact, write_compact, write_compact_lanes};
pub use footer::{StandaloneFooter, StandaloneKind};
pub(crate) use footer::{VERSION, signed, split, split_filter, verify};
pub(crate) use lanes::{LANE_BYTES, Lanes, with_fewest_lanes, with_fewest_lanes_of_both};
pub(crate) use standalone::{read_standalone, split_last_standalone, with_standalone};
