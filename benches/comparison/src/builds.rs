//! Ways to build a filter.

use bloomline::{BloomFilter, FilterBuilder};

use crate::keys::Keys;
use crate::line_up::BITS_PER_KEY;

pub const BUILDER: &str = "bloomline FilterBuilder";

/// Builds a filter of keys and returns its bytes, as they would be written to a file.
pub type FromKeys = fn(&Keys) -> Vec<u8>;

pub const FROM_KEYS: [(&str, FromKeys); 3] = [
    (BUILDER, |keys| {
        let (mut builder, mut bytes) = (builder(), Vec::new());
        keys.iter().for_each(|key| builder.insert(key));
        builder.finish_compact(&mut bytes).expect("enough memory");
        bytes
    }),
    ("bloomline, number of keys known", |keys| {
        let mut filter = bloomline_for(keys.iter().len());
        keys.iter().for_each(|key| _ = filter.insert(key));
        filter.to_compact()
    }),
    ("fastbloom, number of keys known", |keys| {
        let n = keys.iter().len();
        let mut filter = fastbloom::BloomFilter::with_num_bits(BITS_PER_KEY * n).expected_items(n);
        keys.iter().for_each(|key| _ = filter.insert(key));
        filter.as_slice().iter().flat_map(|word| word.to_le_bytes()).collect()
    }),
];

fn bloomline_for(keys: usize) -> BloomFilter {
    BloomFilter::with_bits_per_key(keys as u64, BITS_PER_KEY as f64).expect("enough memory")
}

fn builder() -> FilterBuilder {
    FilterBuilder::with_bits_per_key(BITS_PER_KEY as f64).expect("valid")
}
