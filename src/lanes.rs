//! The lanes of a filter, in whole blocks of one module or several, or in a short filter (section 3 of the format). A
//! short filter saves space for few keys, because its blocks overlap and wrap around.

use crate::blocks::{BLOCK_BYTES, Block, BlockSlice, LANES, lanes_of};
use crate::mask::block_index;
use crate::modules::Modules;

/// The most lanes of a short filter. Above that, whole blocks waste little.
pub(crate) const MOST_LANES: usize = 63;

/// A lane's bytes, little-endian.
pub(crate) type Lane = [u8; 8];

/// Lanes from the start of one block to the start of the next. This is the largest power of two, at most a whole block,
/// that divides the number of lanes, so that every lane is in the same number of blocks.
#[inline]
fn stride(n_lanes: usize) -> usize {
    1 << n_lanes.trailing_zeros().min(LANES.ilog2())
}

/// Number of blocks of a filter with `n_lanes` lanes, short or not.
#[inline]
pub(crate) fn n_blocks(n_lanes: usize) -> usize {
    n_lanes / stride(n_lanes)
}

/// The lanes of a short filter, read in place.
#[derive(Clone, Copy)]
pub(crate) struct ShortLanes<'a>(&'a [Lane]);

impl<'a> ShortLanes<'a> {
    /// `None` for a number of lanes that no short filter has.
    #[inline]
    pub(crate) fn new(lanes: &'a [Lane]) -> Option<Self> {
        let fits = lanes.len() <= MOST_LANES && !lanes.len().is_multiple_of(LANES);
        fits.then_some(Self(lanes))
    }

    #[inline]
    pub(crate) fn n_blocks(self) -> usize {
        n_blocks(self.0.len())
    }

    #[inline]
    pub(crate) fn as_slice(self) -> &'a [Lane] {
        self.0
    }

    /// The first lane of the block that a hash falls in, below the number of lanes.
    #[inline]
    pub(crate) fn first_lane_of(self, hash: u64) -> usize {
        block_index(hash, self.n_blocks()) * stride(self.0.len())
    }

    #[inline]
    pub(crate) fn block_of(self, hash: u64) -> Block {
        self.block(block_index(hash, self.n_blocks()))
    }

    #[inline]
    pub(crate) fn block(self, index: usize) -> Block {
        let mut block = [0; size_of::<Block>()];
        let (copies, _) = block.as_chunks_mut();
        let mut lane = index * stride(self.0.len());
        for copy in copies {
            *copy = self.0[lane];
            lane += 1;
            if lane == self.0.len() {
                lane = 0;
            }
        }
        block
    }
}

/// Merges whole blocks into the lanes of a short filter with as many blocks. Each lane gets the bits of all blocks that
/// share it.
pub(crate) fn unite(blocks: BlockSlice<'_>, united: &mut [Lane]) {
    let stride = stride(united.len());
    for (index, block) in blocks.as_slice().iter().enumerate() {
        let mut i = index * stride;
        for lane in lanes_of(block) {
            united[i] = (u64::from_le_bytes(united[i]) | lane).to_le_bytes();
            i += 1;
            if i == united.len() {
                i = 0;
            }
        }
    }
}

pub(crate) const LANE_BYTES: usize = size_of::<Lane>();

/// Lanes read in place.
#[derive(Clone, Copy)]
pub(crate) enum Lanes<'a> {
    /// Whole blocks, of one module or more.
    Blocks(Modules<'a>),
    /// Fewer lanes than fill whole blocks, of one module.
    Short(ShortLanes<'a>),
}

impl<'a> Lanes<'a> {
    /// The lanes of one module. `None` for a length that no filter has.
    #[inline]
    pub(crate) fn new(bytes: &'a [u8]) -> Option<Self> {
        if let (blocks, []) = bytes.as_chunks() {
            return Some(Self::Blocks(Modules::one(BlockSlice::new(blocks)?)));
        }
        match bytes.as_chunks() {
            (lanes, []) => ShortLanes::new(lanes).map(Self::Short),
            _ => None,
        }
    }

    #[inline]
    pub(crate) fn as_bytes(self) -> &'a [u8] {
        match self {
            Self::Blocks(Modules { blocks, .. }) => blocks.as_slice().as_flattened(),
            Self::Short(short) => short.as_slice().as_flattened(),
        }
    }

    #[inline]
    pub(crate) fn n_modules(self) -> usize {
        match self {
            Self::Blocks(modules) => modules.n_modules(),
            Self::Short(_) => 1,
        }
    }

    /// Number of blocks of all modules.
    #[inline]
    pub(crate) fn n_blocks(self) -> usize {
        match self {
            Self::Blocks(Modules { blocks, .. }) => blocks.as_slice().len(),
            Self::Short(short) => short.n_blocks(),
        }
    }

    pub(crate) fn iter(self) -> impl Iterator<Item = u64> {
        let (lanes, _) = self.as_bytes().as_chunks();
        lanes.iter().copied().map(u64::from_le_bytes)
    }

    /// Calls `read` with whole blocks that return the same answers. The blocks of a short filter are copied to the
    /// stack.
    pub(crate) fn with_blocks<T>(self, read: impl FnOnce(Modules<'_>) -> T) -> T {
        let mut scratch;
        read(match self {
            Self::Blocks(modules) => modules,
            Self::Short(short) => {
                // No more blocks than lanes.
                scratch = [[0; BLOCK_BYTES]; MOST_LANES];
                let blocks = &mut scratch[..short.n_blocks()];
                for (index, block) in blocks.iter_mut().enumerate() {
                    *block = short.block(index);
                }
                Modules::one(BlockSlice::new(blocks).expect("a short filter has at least one block"))
            }
        })
    }
}

/// Calls `read` with the fewest lanes that represent the blocks of each filter. All filters must have the same number
/// of blocks and modules, and get the same number of lanes.
///
/// A copy of a short filter has whole blocks. While all blocks that would share a lane agree in it, the copy is written
/// and counted like the original.
pub(crate) fn with_fewest_lanes<const N: usize, T>(
    filters: [Modules<'_>; N],
    read: impl FnOnce([Lanes<'_>; N]) -> T,
) -> T {
    let n_blocks = filters[0].blocks.as_slice().len();
    if !filters[0].is_one() {
        return read(filters.map(Lanes::Blocks));
    }
    let mut scratch = [[Lane::default(); MOST_LANES]; N];
    // A short filter's number of lanes is its number of blocks, which is odd, times the stride.
    for n_lanes in [1, 2, 4].map(|stride| stride * n_blocks) {
        if n_blocks.is_multiple_of(2) || n_lanes > MOST_LANES {
            break;
        }
        for (lanes, filter) in scratch.iter_mut().zip(filters) {
            lanes.fill(Lane::default());
            unite(filter.blocks, &mut lanes[..n_lanes]);
        }
        let short = scratch.each_ref().map(|lanes| ShortLanes(&lanes[..n_lanes]));
        let agree = |(short, filter): (ShortLanes<'_>, Modules<'_>)| {
            filter.blocks.as_slice().iter().enumerate().all(|(i, block)| short.block(i) == *block)
        };
        if short.into_iter().zip(filters).all(agree) {
            return read(short.map(Lanes::Short));
        }
    }
    read(filters.map(Lanes::Blocks))
}
