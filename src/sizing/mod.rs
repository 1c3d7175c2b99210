//! Filter sizes: bits per key, k and the false-positive rate (FPR), for 512-bit blocks and for standard filters.
//!
//! # How large a filter is
//!
//! [`Sizing::for_fpr`] returns these sizes. [`BloomFilter::with_fpr`](crate::BloomFilter::with_fpr) allocates up to 1 %
//! more, so that the filter [can be folded](Sizing::foldable):
//!
//! | keys | FPR 1 % | FPR 0.1 % | FPR 0.01 % |
//! |---|---|---|---|
//! | bits per key, k | 9.93, 6 | 15.59, 9 | 22.09, 12 |
//! | 1 million | 1.24 MB | 1.95 MB | 2.76 MB |
//! | 1 billion | 1.24 GB | 1.95 GB | 2.76 GB |
//!
//! A standard filter, whose probes go to any of its bits, takes 9.59, 14.38 and 19.17 bits per key, but up to one cache
//! miss per probe. The difference is the price of one cache line per lookup.
//!
//! You may find "18 MB for a billion URLs at 1 %" quoted. It is wrong, because no filter of that FPR takes less than
//! log2(100) = 6.6 bits per key, which is 830 MB for a billion keys.
//!
//! The other way round, these bits per key give this FPR:
//!
//! | bits per key | best k | FPR |
//! |---|---|---|
//! | 8 | 5 | 2.343 % |
//! | 10 | 6 | 0.973 % |
//! | 12 | 7 | 0.419 % |
//! | 16 | 9 | 0.0858 % |
//! | 20 | 11 | 0.0201 % |
//! | 24 | 12 | 0.00544 % |
//!
//! # Don't know the number of keys?
//!
//! - [`FilterBuilder`](crate::FilterBuilder) collects hashes and sizes the filter at the end.
//! - Or build a large filter of a [foldable](Sizing::foldable) size, then [`fold`](crate::BloomFilter::fold) it.
//! - If you don't even know an upper limit, [`variants::ScalableBloomFilter`](crate::variants::ScalableBloomFilter)
//!   grows. It also [continues](crate::variants::ScalableBloomFilter::from_filter) from a filter of fixed size.
//!
//! To estimate how many keys a filter holds, see [`KeyEstimate`](crate::KeyEstimate).
//!
//! # The model
//!
//! The textbook formula (1 − e^(−k/b))^k, with b bits per key, is for standard filters. With blocks, some get more keys
//! than others, which raises the FPR: at 16 bits per key, the true FPR is twice the textbook's. The model used here is
//! exact for random hashes. The number of keys per block is Poisson-distributed with a mean of 512 ÷ bits per key
//! (Putze, Sanders and Singler, "Cache-, hash- and space-efficient Bloom filters", 2007), and within a block each key
//! uses the lanes of its [mask](crate::format). Only basic arithmetic is used, so every CPU with IEEE 754 arithmetic
//! computes the same sizes. 32-bit x86 without SSE2 does not have it, so targets such as `i586-unknown-linux-gnu`
//! compute with the x87 unit's 80 bits, and may choose one block or one probe more or less. Filters of a given size
//! have the same bits there too, and are read everywhere. To unite filters across such targets, give both the same
//! [number of blocks and k](crate::BloomFilter::with_blocks).
#![forbid(unsafe_code)]

mod blocked;
mod checks;
mod search;
pub mod standard;

pub use crate::limits::{MAX_BITS_PER_KEY, MIN_FPR, SCALABLE_MIN_FPR};
pub use blocked::{Sizing, best_k, bits_per_key, fpr};
pub(crate) use blocked::{bits_per_key_of, estimated_fpr, lanes_for, lowest_fpr};
pub(crate) use checks::{checked_bits_per_key, checked_fpr};
