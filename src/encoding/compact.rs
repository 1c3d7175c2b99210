//! Section 4 of the format: compact bytes, for use inside a container.

use alloc::vec::Vec;

use super::footer::{VERSION, check_version};
use super::lanes::{Lanes, with_fewest_lanes};
use crate::blocks::{BlockSlice, LANES};
use crate::error::DecodeError;
use crate::mask::ProbeCount;
use crate::short::{self, Lane, MOST_LANES};

pub(crate) fn write_compact(out: &mut Vec<u8>, blocks: BlockSlice<'_>, k: ProbeCount) {
    with_fewest_lanes(blocks, |lanes| write(out, lanes.as_bytes(), k));
}

/// [`write_compact`] with exactly `n_lanes` lanes: all lanes of the blocks, or fewer, which the blocks then share.
pub(crate) fn write_compact_lanes(out: &mut Vec<u8>, blocks: BlockSlice<'_>, n_lanes: usize, k: ProbeCount) {
    if n_lanes.is_multiple_of(LANES) {
        write(out, blocks.as_slice().as_flattened(), k);
    } else {
        let lanes = &mut [Lane::default(); MOST_LANES][..n_lanes];
        short::unite(blocks, lanes);
        write(out, lanes.as_flattened(), k);
    }
}

fn write(out: &mut Vec<u8>, lanes: &[u8], k: ProbeCount) {
    out.reserve(lanes.len() + 1);
    out.extend_from_slice(lanes);
    out.push((VERSION << 4) | (k.get() - 1) as u8);
}

pub(crate) fn compact_bytes(blocks: BlockSlice<'_>) -> usize {
    with_fewest_lanes(blocks, |lanes| lanes.as_bytes().len() + 1)
}

#[inline]
pub(crate) fn read_compact(bytes: &[u8]) -> Result<(Lanes<'_>, ProbeCount), DecodeError> {
    let length = DecodeError::Length { found: bytes.len() };
    let (&trailer, lanes) = bytes.split_last().ok_or(length)?;
    let lanes = Lanes::new(lanes).ok_or(length)?;
    check_version(trailer >> 4)?;
    Ok((lanes, ProbeCount::from_four_bits(trailer)))
}
