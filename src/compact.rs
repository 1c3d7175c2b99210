//! Compact bytes, for use inside a container (section 4 of the format).

use alloc::vec::Vec;

use crate::blocks::{BLOCK_BYTES, BlockSlice};
use crate::error::{Error, ErrorKind};
use crate::footer::VERSION;
use crate::lanes::{self, LANE_BYTES, Lane, Lanes, MOST_LANES, ShortLanes, with_fewest_lanes};
use crate::mask::ProbeCount;
use crate::modules::{MOST_MODULES, Modules};

/// The most bytes after the lanes. There are two after several modules. Compact bytes of one module never have such a
/// length, nor [`MODULES_FORM`] in the highest four bits of their last byte, so a reader that knows only one module
/// finds an error.
const MOST_TAIL: usize = 2;
const MODULES_FORM: u8 = 3;

/// The length of compact bytes.
pub(crate) fn len(n_lanes: usize, n_modules: usize) -> usize {
    n_lanes * LANE_BYTES + if n_modules == 1 { 1 } else { MOST_TAIL }
}

/// Calls `write` with the lanes and the tail that follows them.
pub(crate) fn with_compact<T>(
    modules: Modules<'_>,
    k: ProbeCount,
    write: impl FnOnce(&[u8], &[u8]) -> T,
) -> T {
    let tail = Tail::new(modules.n_modules(), k);
    with_fewest_lanes([modules], |[lanes]| write(lanes.as_bytes(), tail.as_bytes()))
}

/// Appends compact bytes with exactly `n_lanes` lanes. These are all lanes of the blocks, or fewer lanes that the
/// blocks of one module share.
pub(crate) fn write_compact_lanes(out: &mut Vec<u8>, modules: Modules<'_>, n_lanes: usize, k: ProbeCount) {
    let blocks = modules.blocks.as_slice().as_flattened();
    if LANE_BYTES * n_lanes == blocks.len() {
        out.extend_from_slice(blocks);
    } else {
        let lanes = &mut [Lane::default(); MOST_LANES][..n_lanes];
        lanes::unite(modules.blocks, lanes);
        out.extend_from_slice(lanes.as_flattened());
    }
    out.extend_from_slice(Tail::new(modules.n_modules(), k).as_bytes());
}

/// The bytes after the lanes: the number of modules if there are several, and the trailer.
struct Tail([u8; MOST_TAIL]);

impl Tail {
    fn new(n_modules: usize, k: ProbeCount) -> Self {
        let form = if n_modules == 1 { VERSION } else { MODULES_FORM };
        Self([n_modules as u8, form << 4 | (k.get() - 1) as u8])
    }

    fn as_bytes(&self) -> &[u8] {
        &self.0[usize::from(self.0[0] == 1)..]
    }
}

/// The blocks of compact bytes of one module. `None` for other compact bytes, and for bytes that are not compact. So
/// return the next two functions, and [`read_compact`] reads all.
// A few instructions without a call, for callers that open the bytes for each lookup.
#[inline(always)]
pub(crate) fn one_module(bytes: &[u8]) -> Option<(BlockSlice<'_>, ProbeCount)> {
    let (&trailer, lanes) = bytes.split_last()?;
    let (blocks, []) = lanes.as_chunks() else { return None };
    Some((BlockSlice::new(blocks)?, k_of(trailer, VERSION)?))
}

/// The lanes of compact bytes of a short filter.
#[inline(always)]
pub(crate) fn short(bytes: &[u8]) -> Option<(ShortLanes<'_>, ProbeCount)> {
    let (&trailer, lanes) = bytes.split_last()?;
    let (lanes, []) = lanes.as_chunks() else { return None };
    Some((ShortLanes::new(lanes)?, k_of(trailer, VERSION)?))
}

/// The blocks of the first of two modules, and of both.
#[inline(always)]
pub(crate) fn two_modules(bytes: &[u8]) -> Option<(BlockSlice<'_>, BlockSlice<'_>, ProbeCount)> {
    let (blocks, &[2, trailer]) = bytes.as_chunks() else { return None };
    let (first, both) = (BlockSlice::new(&blocks[..blocks.len() / 2])?, BlockSlice::new(blocks)?);
    blocks.len().is_multiple_of(2).then_some((first, both, k_of(trailer, MODULES_FORM)?))
}

/// k of a trailer of this form.
// One comparison, after which the compiler knows that k − 1 has four bits.
#[inline(always)]
fn k_of(trailer: u8, form: u8) -> Option<ProbeCount> {
    let k_less_1 = trailer ^ form << 4;
    (k_less_1 < 16).then_some(ProbeCount::from_four_bits(k_less_1))
}

#[inline(never)]
pub(crate) fn read_compact(bytes: &[u8]) -> Result<(Lanes<'_>, ProbeCount), Error> {
    // Without the division of any number of modules.
    if let Some((first, blocks, k)) = two_modules(bytes) {
        let module_blocks = first.as_slice().len();
        return Ok((Lanes::Blocks(Modules { blocks, module_blocks }), k));
    }
    if bytes.len() % BLOCK_BYTES == MOST_TAIL {
        return read_modules(bytes);
    }
    let length = || wrong_length(bytes);
    let (&trailer, lanes) = bytes.split_last().ok_or_else(length)?;
    Ok((Lanes::new(lanes).ok_or_else(length)?, probe_count(trailer, VERSION)?))
}

fn read_modules(bytes: &[u8]) -> Result<(Lanes<'_>, ProbeCount), Error> {
    let length = || wrong_length(bytes);
    let (lanes, &[n_modules, trailer]) = bytes.split_last_chunk().ok_or_else(length)?;
    let blocks = BlockSlice::new(lanes.as_chunks().0).ok_or_else(length)?;
    let k = probe_count(trailer, MODULES_FORM)?;
    let n_modules = usize::from(n_modules);
    if !(2..=MOST_MODULES).contains(&n_modules) {
        let text = "in compact bytes, the number of modules cannot be {}: they are damaged, or a faulty or newer program \
                    wrote them";
        return Err(Error::damaged(text, [n_modules as u64]));
    }
    Ok((Lanes::Blocks(Modules::new(blocks, n_modules).ok_or_else(length)?), k))
}

fn probe_count(trailer: u8, form: u8) -> Result<ProbeCount, Error> {
    k_of(trailer, form).ok_or_else(|| {
        let text = "a compact filter ends in a byte from 0x20 to 0x2f, or 0x30 to 0x3f if it has several modules, not \
                    {hex}: the bytes were cut or damaged, or are of a newer version";
        Error::new(ErrorKind::Unrecognized, text, [trailer.into()])
    })
}

fn wrong_length(bytes: &[u8]) -> Error {
    let text = "a compact filter has 8·L + 1 bytes, L being 1 to 63 or a multiple of 8, or 64·B + 2 in B blocks of \
                several modules, not {}: the bytes were cut, or are something else";
    Error::new(ErrorKind::Unrecognized, text, [bytes.len() as u64])
}
