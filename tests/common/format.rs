//! A filter by sections 2 and 3 of the format, which shares no code with the crate.

use bloomline::{BloomFilter, BloomView, Sizing};

/// The hash of a key in each module.
pub fn hashes(hash: u64) -> impl Iterator<Item = u64> {
    let step = |hash: u64| (hash ^ (hash >> 32)).wrapping_mul(0xC4CE_B9FE_1A85_EC53);
    std::iter::successors(Some(hash), move |&hash| Some(step(step(hash))))
}

/// The bits of a hash in the lanes of its block.
pub fn mask(hash: u64, k: u32) -> [u64; 8] {
    let x = hash.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let y = (x ^ (x >> 32)).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    let mut lanes = [0; 8];
    for j in 0..k as usize {
        let i = ((x >> 61) as usize + j) % 8;
        let word = if j < 8 { x } else { y };
        lanes[i] |= 1 << ((word >> (13 + 6 * i)) & 63);
    }
    lanes
}

#[derive(Clone)]
pub struct Reference {
    /// The blocks of each module.
    pub modules: Vec<Vec<[u64; 8]>>,
    k: u32,
}

impl Reference {
    pub fn new(sizing: Sizing) -> Self {
        let module = vec![[0; 8]; sizing.n_blocks() / sizing.n_modules()];
        Self { modules: vec![module; sizing.n_modules()], k: sizing.k() }
    }

    /// The bits of a filter.
    pub fn of(filter: &BloomFilter) -> Self {
        let compact = filter.to_compact();
        // Lanes that all blocks share are written once.
        let (lanes, _) = compact.as_chunks::<8>();
        let stride = lanes.len() / filter.n_blocks();
        let lane = |at: usize| u64::from_le_bytes(lanes[at % lanes.len()]);
        let blocks: Vec<_> =
            (0..filter.n_blocks()).map(|b| std::array::from_fn(|i| lane(stride * b + i))).collect();
        let modules = blocks.chunks(filter.n_blocks() / filter.n_modules()).map(<[_]>::to_vec).collect();
        Self { modules, k: filter.k() }
    }

    /// The block of a hash in each module, and its bits there.
    fn masks(&self, hash: u64) -> impl Iterator<Item = (usize, [u64; 8])> + use<> {
        let (n_blocks, k) = (self.modules[0].len() as u128, self.k);
        hashes(hash).map(move |hash| (((u128::from(hash) * n_blocks) >> 64) as usize, mask(hash, k)))
    }

    /// Returns whether a bit changed.
    pub fn insert(&mut self, hash: u64) -> bool {
        let was_in = self.contains(hash);
        for ((block, mask), module) in self.masks(hash).zip(&mut self.modules) {
            module[block].iter_mut().zip(mask).for_each(|(lane, bits)| *lane |= bits);
        }
        !was_in
    }

    pub fn contains(&self, hash: u64) -> bool {
        let has = |module: &[[u64; 8]], (block, mask): (usize, [u64; 8])| {
            module[block].iter().zip(mask).all(|(lane, bits)| lane & bits == bits)
        };
        self.modules.iter().zip(self.masks(hash)).all(|(module, mask)| has(module, mask))
    }

    /// The compact bytes, with every block in full.
    pub fn to_compact(&self) -> Vec<u8> {
        let lanes = self.modules.iter().flatten().flatten();
        let mut bytes: Vec<u8> = lanes.flat_map(|lane| lane.to_le_bytes()).collect();
        match self.modules.len() as u8 {
            1 => bytes.push(0x1f + self.k as u8),
            n_modules => bytes.extend([n_modules, 0x2f + self.k as u8]),
        }
        bytes
    }

    pub fn to_filter(&self, seed: u64) -> BloomFilter {
        let compact = self.to_compact();
        BloomView::from_compact_with_seed(&compact, seed)
            .expect("whole blocks")
            .to_filter()
            .expect("enough memory")
    }
}
