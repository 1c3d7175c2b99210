//! Filters that remove keys, grow, save bits or queue URLs.
//!
//! All accept the same keys, hashes and seeds, and give the same guarantees. A key that was inserted is found, the bits
//! are the same on every CPU, and malformed bytes are an error. [`BloomFilter`](crate::BloomFilter) is the right choice
//! unless a row below describes your case.
//!
//! | if | use | bits per key at 1%, 0.1%, 0.01% | cache misses per lookup, at most |
//! |---|---|---|---|
//! | none of the below applies | [`BloomFilter`](crate::BloomFilter), with one cache line per key, or two modules for rates below 0.05% | 9.93, 15.72, 19.87 | 1, 1, and 1 for nearly all absent keys and 2 for present ones |
//! | the last 1% to 2% of the bits matter more than time | [`StandardBloomFilter`], which probes anywhere | 9.59, 14.38, 19.17 | 7, 10, 13, which are its k |
//! | keys must be removed, and the filter cannot be rebuilt | [`CountingBloomFilter`], a counter for each bit | 49.7, 78.6, 110.5 | 1 |
//! | the number of keys is unknown | [`ScalableBloomFilter`], which adds filters as keys come | 21.2, 29.7, 33.6 at 100 times the initial capacity | one per filter, so 7 at 100 times the initial capacity, and twice as many for present keys at rates below 0.05% |
//! | a crawler needs a queue that accepts each item once | [`Frontier`], a queue over a `BloomFilter`, or over a filter that grows | as its filter | as its filter |

mod counting;
mod frontier;
mod scalable;
mod standard;

pub use counting::CountingBloomFilter;
pub use frontier::Frontier;
pub use scalable::ScalableBloomFilter;
pub use standard::StandardBloomFilter;
