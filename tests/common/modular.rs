//! Programs of operations on modular filters, compared with a filter of blocks for each module.

use bloomline::sizing::ModularSizing;
use bloomline::variants::{ModularBloomFilter, ModularView};
use bloomline::{BloomFilter, Kernel, mix};

use super::standard::{Input, MOST_OPERATIONS, Operation};

#[derive(Clone)]
struct Model {
    filter: ModularBloomFilter,
    modules: Vec<BloomFilter>,
}

/// Runs a standard filter's operations, but folds instead of intersecting, which modules cannot.
pub fn modular(input: &Input<'_>) {
    let n_modules = usize::from(input.k / 16 % 5) + 1;
    let (n_blocks, k) = (usize::from(input.size_bits % 48) + 1, u32::from(input.k % 16) + 1);
    let sizing = ModularSizing::new(n_modules, n_blocks, k).expect("in range");
    let filter = ModularBloomFilter::with_sizing(sizing).unwrap().with_seed(input.seed).unwrap();
    let module = BloomFilter::with_blocks(n_blocks, k).unwrap();
    let mut first = Model { filter, modules: vec![module; n_modules] };
    let mut second = first.clone();
    for (operation, kernel) in input
        .operations
        .iter()
        .take(MOST_OPERATIONS)
        .zip(Kernel::available().collect::<Vec<_>>().iter().cycle())
    {
        first.filter = first.filter.with_kernel(*kernel);
        let n_blocks = first.filter.n_blocks();
        match operation {
            Operation::InsertKey(key) => first.insert(first.filter.hash_key(key)),
            Operation::InsertHash(hash) => first.insert(*hash),
            Operation::Batch(start, count) => {
                let numbers = u64::from(*start)..u64::from(*start) + u64::from(*count);
                let hashes: Vec<u64> = numbers.map(mix).collect();
                first.filter.insert_batch(&hashes);
                hashes.iter().for_each(|&hash| first.add(hash));
            }
            Operation::ContainsHash(hash) => {
                assert_eq!(first.filter.contains_hash(*hash), has(&first.modules, *hash));
            }
            Operation::Swap => std::mem::swap(&mut first, &mut second),
            Operation::Copy => second = first.clone(),
            Operation::Union => {
                let is_united = first.filter.union_with(&second.filter).is_ok();
                assert_eq!(is_united, n_blocks == second.filter.n_blocks());
                for (module, other) in first.modules.iter_mut().zip(&second.modules) {
                    assert_eq!(module.union_with(other).is_ok(), is_united);
                }
            }
            Operation::Intersect => {
                let factor = (2..8).find(|factor| n_blocks.is_multiple_of(*factor)).unwrap_or(1);
                first.filter.fold(factor).expect("a divisor");
                first.modules.iter_mut().for_each(|module| module.fold(factor).expect("a divisor"));
            }
            Operation::Clear => {
                first.filter.clear();
                first.modules.iter_mut().for_each(BloomFilter::clear);
            }
            Operation::Standalone => (),
        }
        first.check();
    }
}

/// A key's hash in each module, as in the format.
pub fn hashes_of(hash: u64) -> impl Iterator<Item = u64> {
    let step = |hash: u64| (hash ^ (hash >> 32)).wrapping_mul(0xC4CE_B9FE_1A85_EC53);
    std::iter::successors(Some(hash), move |&hash| Some(step(step(hash))))
}

/// Returns whether all of these modules have the key.
pub fn has(modules: &[BloomFilter], hash: u64) -> bool {
    modules.iter().zip(hashes_of(hash)).all(|(module, hash)| module.contains_hash(hash))
}

impl Model {
    fn insert(&mut self, hash: u64) {
        assert_eq!(self.filter.insert_hash(hash), !has(&self.modules, hash));
        self.add(hash);
    }

    fn add(&mut self, hash: u64) {
        assert!(self.filter.contains_hash(hash), "a key was lost");
        self.modules.iter_mut().zip(hashes_of(hash)).for_each(|(module, hash)| _ = module.insert_hash(hash));
    }

    /// Checks the bits. The model continues with the copy decoded from its bytes.
    fn check(&mut self) {
        let bytes = self.filter.to_standalone();
        let view = ModularView::from_standalone(&bytes).expect("our own bytes");
        let hashes: Vec<u64> = (0..64).map(mix).collect();
        let mut found = [false; 64];
        for (at, bytes) in bytes[..view.byte_len()].chunks(64 * view.n_blocks()).enumerate() {
            let compact = [bytes, &[0x1f + view.k() as u8]].concat();
            assert!(
                BloomFilter::from_compact(&compact).unwrap() == self.modules[at],
                "wrong bits for its keys"
            );
            view.truncated(at + 1).expect("in range").contains_batch(&hashes, &mut found);
            let first = &self.modules[..=at];
            assert!(hashes.iter().zip(found).all(|(&hash, found)| has(first, hash) == found));
        }
        let copy = view.to_filter().expect("a small filter");
        assert!(copy == self.filter && copy.known_keys() == self.filter.known_keys());
        self.filter = copy;
    }
}
