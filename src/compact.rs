//! Compact bytes, for use inside a container (section 4 of the format).
#![forbid(unsafe_code)]

use alloc::vec::Vec;

use crate::blocks::{BLOCK_BYTES, BlockSlice};
use crate::error::{Error, ErrorKind};
use crate::footer::VERSION;
use crate::lanes::{self, LANE_BYTES, Lane, Lanes, MOST_LANES, with_fewest_lanes};
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
    let tail = Tail::new(modules.len(), k);
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
    out.extend_from_slice(Tail::new(modules.len(), k).as_bytes());
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

#[inline]
pub(crate) fn read_compact(bytes: &[u8]) -> Result<(Lanes<'_>, ProbeCount), Error> {
    let length = || wrong_length(bytes);
    if bytes.len() % BLOCK_BYTES == MOST_TAIL {
        return read_modules(bytes);
    }
    let (&trailer, lanes) = bytes.split_last().ok_or_else(length)?;
    let lanes = Lanes::new(lanes).ok_or_else(length)?;
    Ok((lanes, probe_count(trailer, VERSION)?))
}

#[inline]
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

#[inline]
fn probe_count(trailer: u8, form: u8) -> Result<ProbeCount, Error> {
    let is_of_form = trailer >> 4 == form;
    is_of_form.then_some(ProbeCount::from_four_bits(trailer)).ok_or_else(|| {
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
