//! Lanes: the body of a filter, read in place.

use crate::blocks::{BLOCK_BYTES, BlockSlice};
use crate::short::{self, Lane, MOST_LANES, ShortLanes};

pub(crate) const LANE_BYTES: usize = size_of::<Lane>();

/// Lanes read in place.
#[derive(Clone, Copy)]
pub(crate) enum Lanes<'a> {
    /// Whole blocks.
    Blocks(BlockSlice<'a>),
    /// Fewer lanes than fill whole blocks.
    Short(ShortLanes<'a>),
}

impl<'a> Lanes<'a> {
    /// `None` for a length that no filter has.
    #[inline]
    pub(crate) fn new(bytes: &'a [u8]) -> Option<Self> {
        if let (blocks, []) = bytes.as_chunks() {
            return BlockSlice::new(blocks).map(Self::Blocks);
        }
        match bytes.as_chunks() {
            (lanes, []) => ShortLanes::new(lanes).map(Self::Short),
            _ => None,
        }
    }

    pub(crate) fn as_bytes(self) -> &'a [u8] {
        match self {
            Self::Blocks(blocks) => blocks.as_slice().as_flattened(),
            Self::Short(short) => short.as_bytes(),
        }
    }

    pub(crate) fn iter(self) -> impl Iterator<Item = u64> {
        let (lanes, _) = self.as_bytes().as_chunks();
        lanes.iter().copied().map(u64::from_le_bytes)
    }

    /// Calls `read` with whole blocks that return the same answers, on the stack if the filter is short.
    pub(crate) fn with_blocks<T>(self, read: impl FnOnce(BlockSlice<'_>) -> T) -> T {
        let mut scratch;
        read(match self {
            Self::Blocks(blocks) => blocks,
            Self::Short(short) => {
                scratch = [[0; BLOCK_BYTES]; MOST_LANES];
                short.to_blocks(&mut scratch)
            }
        })
    }
}

/// Calls `read` with the fewest lanes that represent these blocks.
pub(crate) fn with_fewest_lanes<T>(blocks: BlockSlice<'_>, read: impl FnOnce(Lanes<'_>) -> T) -> T {
    let mut scratch = [Lane::default(); MOST_LANES];
    read(short::shortest(blocks, &mut scratch).map_or(Lanes::Blocks(blocks), Lanes::Short))
}

/// The same for two filters with the same number of blocks: calls `read` with each filter's part of the fewest lanes
/// that represent their union.
pub(crate) fn with_fewest_lanes_of_both<T>(
    ours: BlockSlice<'_>,
    theirs: BlockSlice<'_>,
    read: impl FnOnce(Lanes<'_>, Lanes<'_>) -> T,
) -> T {
    let mut scratch = [[Lane::default(); MOST_LANES]; 2];
    match short::shortest_of_both(ours, theirs, &mut scratch) {
        Some([ours, theirs]) => read(Lanes::Short(ours), Lanes::Short(theirs)),
        None => read(Lanes::Blocks(ours), Lanes::Blocks(theirs)),
    }
}
