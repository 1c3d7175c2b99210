//! Other members of the family than the crate's own [`BloomFilter`](crate::BloomFilter), for other needs.
//!
//! They take the same keys, hashes and seeds, and keep the same promises: a key that was inserted is found, the bits are
//! the same on every CPU, and malformed bytes are an error.
//!
//! | filter | when to take it | bits per key at 1 %, 0.1 %, 0.01 % | cache misses per lookup, at most |
//! |---|---|---|---|
//! | [`BloomFilter`](crate::BloomFilter) | nearly always: one cache line per key, SIMD | 9.93, 15.59, 22.09 | 1 |
//! | [`StandardBloomFilter`] | memory or bandwidth is scarcer than time, or the rate is below 0.01 % | 9.59, 14.38, 19.17 | k: 7, 10, 13 |
//! | [`CountingBloomFilter`] | keys must be taken out again, and the filter cannot be built anew | 49.7, 78.0, 110.5 | 1 |
//! | [`ScalableBloomFilter`] | nobody knows how many keys will come | at 100 times the guess 21.2, 29.8, 40.0 | filters: 7 at 100 times the guess |
//! | [`Frontier`] | a queue that takes nothing twice, for crawlers: over a `BloomFilter`, or a filter that grows | as its filter | as its filter |
#![forbid(unsafe_code)]

mod counting;
mod frontier;
mod scalable;
mod standard;

pub use counting::CountingBloomFilter;
pub use frontier::Frontier;
pub use scalable::ScalableBloomFilter;
pub use standard::StandardBloomFilter;
