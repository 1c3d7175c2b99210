//! Compact bytes, for use inside a container (sections 4 and 14 of the format).
#![forbid(unsafe_code)]

use alloc::vec::Vec;

use crate::blocks::{BlockSlice, LANES};
use crate::error::DecodeError;
use crate::footer::VERSION;
use crate::lanes::{self, Lane, Lanes, MOST_LANES, with_fewest_lanes};
use crate::mask::ProbeCount;
use crate::sizing::MOST_MODULES;

/// Calls `write` with the lanes and the trailer that follows them.
pub(crate) fn with_compact<T>(
    blocks: BlockSlice<'_>,
    k: ProbeCount,
    write: impl FnOnce(&[u8], &[u8]) -> T,
) -> T {
    with_fewest_lanes([blocks], |[lanes]| write(lanes.as_bytes(), &[trailer(VERSION, k)]))
}

/// Appends compact bytes with exactly `n_lanes` lanes. These are all lanes of the blocks, or fewer lanes that the
/// blocks share.
pub(crate) fn write_compact_lanes(out: &mut Vec<u8>, blocks: BlockSlice<'_>, n_lanes: usize, k: ProbeCount) {
    if n_lanes.is_multiple_of(LANES) {
        out.extend_from_slice(blocks.as_slice().as_flattened());
    } else {
        let lanes = &mut [Lane::default(); MOST_LANES][..n_lanes];
        lanes::unite(blocks, lanes);
        out.extend_from_slice(lanes.as_flattened());
    }
    out.push(trailer(VERSION, k));
}

/// Appends the compact bytes of two modules or more.
pub(crate) fn write_compact_modules(
    out: &mut Vec<u8>,
    modules: BlockSlice<'_>,
    n_modules: usize,
    k: ProbeCount,
) {
    out.extend_from_slice(modules.as_slice().as_flattened());
    out.extend([n_modules as u8, trailer(MODULES_FORM, k)]);
}

fn trailer(form: u8, k: ProbeCount) -> u8 {
    form << 4 | (k.get() - 1) as u8
}

pub(crate) fn compact_len(blocks: BlockSlice<'_>) -> usize {
    with_fewest_lanes([blocks], |[lanes]| lanes.as_bytes().len() + 1)
}

#[inline]
pub(crate) fn read_compact(bytes: &[u8]) -> Result<(Lanes<'_>, ProbeCount), DecodeError> {
    let length = DecodeError::Length { found: bytes.len() };
    let (&trailer, lanes) = bytes.split_last().ok_or(length)?;
    let lanes = Lanes::new(lanes).ok_or(length)?;
    Ok((lanes, probe_count(trailer, VERSION)?))
}

/// The number of bytes after the blocks of several modules. Compact bytes without modules never have this length, nor
/// [`MODULES_FORM`] in the highest four bits of their last byte, so a reader without modules finds an error.
pub(crate) const MODULES_TAIL: usize = 2;
const MODULES_FORM: u8 = 3;

/// The blocks of all modules, and the number of modules.
#[inline]
pub(crate) fn read_compact_modules(bytes: &[u8]) -> Result<(BlockSlice<'_>, usize, ProbeCount), DecodeError> {
    let length = DecodeError::Length { found: bytes.len() };
    let (blocks, &[n_modules, trailer]) = bytes.split_last_chunk::<MODULES_TAIL>().ok_or(length)?;
    let (blocks, []) = blocks.as_chunks() else { return Err(length) };
    let blocks = BlockSlice::new(blocks).ok_or(length)?;
    let k = probe_count(trailer, MODULES_FORM)?;
    let n_modules = usize::from(n_modules);
    if !(2..=MOST_MODULES).contains(&n_modules) {
        return Err(DecodeError::Footer { field: "number of modules", found: n_modules as u64 });
    }
    if !blocks.as_slice().len().is_multiple_of(n_modules) {
        return Err(length);
    }
    Ok((blocks, n_modules, k))
}

#[inline]
fn probe_count(trailer: u8, form: u8) -> Result<ProbeCount, DecodeError> {
    let is_of_form = trailer >> 4 == form;
    is_of_form.then_some(ProbeCount::from_four_bits(trailer)).ok_or(DecodeError::Trailer { found: trailer })
}
