//! Section 5 of the format: standalone bytes, for files and networks.

use super::footer::{StandaloneFooter, StandaloneKind, checksum, split_filter};
use super::lanes::{LANE_BYTES, Lanes, with_fewest_lanes};
use crate::blocks::BlockSlice;
use crate::error::DecodeError;
use crate::hash::Seed;
use crate::mask::ProbeCount;

/// Calls `write` with the lanes and the footer that follows them.
pub(crate) fn with_standalone<T>(
    blocks: BlockSlice<'_>,
    k: ProbeCount,
    seed: Seed,
    keys: Option<u64>,
    write: impl FnOnce(&[u8], &[u8]) -> T,
) -> T {
    with_fewest_lanes(blocks, |lanes| {
        let lanes = lanes.as_bytes();
        let n_lanes = (lanes.len() / LANE_BYTES) as u64;
        let (k, seed) = (k.get(), seed.get());
        let footer = StandaloneFooter::new(StandaloneKind::Blocked, n_lanes, k, seed, keys, checksum(lanes));
        write(lanes, &footer.to_bytes())
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
