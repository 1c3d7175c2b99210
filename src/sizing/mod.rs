//! How large a filter must be for a false-positive rate (FPR), with bits per key and k, for filters of 512-bit blocks, in
//! one module or several, and for standard filters.
//!
//! # How large a filter is
//!
//! [`Sizing::for_fpr`] returns these sizes. [`BloomFilter::with_fpr`](crate::BloomFilter::with_fpr) allocates up to 1%
//! more, so that the filter [can be folded](Sizing::rounded_to_fold):
//!
//! | keys | FPR 1% | FPR 0.1% | FPR 0.01% |
//! |---|---|---|---|
//! | bits per key | 9.93 | 15.72 | 19.87 |
//! | k, modules | 6, 1 | 8, 1 | 6, 2 |
//! | 1 million | 1.24 MB | 1.97 MB | 2.48 MB |
//! | 1 billion | 1.24 GB | 1.97 GB | 2.48 GB |
//!
//! A standard filter, whose probes go to any of its bits, needs only 9.59, 14.38 and 19.17 bits per key, but a lookup
//! costs up to one cache miss per probe. So the difference is the price of one cache line per lookup.
//!
//! # Modules
//!
//! A block that gets more keys than the average has more false positives. If a filter is divided into **modules**,
//! filters with hashes of their own that must all have a key, a key whose block is too full in one module rarely meets a
//! full block in the next. So low rates need fewer bits. A lookup of a present key reads one cache line of each module.
//! A lookup of an absent key mostly reads only one line, because it reads the line of a further module only if all
//! modules before it have the key by mistake:
//!
//! | FPR | bits per key in 1, 2, 3, 4 modules | in a standard filter | lines of an absent key | of a present key |
//! |---|---|---|---|---|
//! | 1% | **9.93**, 9.71, 9.66, 9.71 | 9.59 | 1, 1.10, 1.26, 1.45 | 1, 2, 3, 4 |
//! | 0.1% | **15.72**, 14.66, 14.57, 14.62 | 14.38 | 1, 1.03, 1.11, 1.22 | 1, 2, 3, 4 |
//! | 0.01% | 22.09, **19.87**, 19.54, 19.43 | 19.17 | 1, 1.01, 1.05, 1.11 | 1, 2, 3, 4 |
//! | 10⁻⁶ | 39.01, **31.45**, 29.80, 29.32 | 28.76 | 1, 1.00, 1.01, 1.03 | 1, 2, 3, 4 |
//!
//! [`Sizing::for_fpr`], and everything else that computes a size, chooses the bold ones, because a further module is made
//! only where it saves at least 7% of the bits. That is one module for rates down to 0.05%, and two below. If most lookups
//! are of present keys, or the last percent of the bits matters more than time, ask for fewer or more modules by
//! [`Sizing::for_fpr_within`], [`FilterBuilder::with_most_modules`](crate::FilterBuilder::with_most_modules) or
//! [`FilterPolicy::with_most_modules`](crate::sstable::FilterPolicy::with_most_modules).
//!
//! You may find "18 MB for a billion URLs at 1%" quoted. This is wrong, because no filter of that FPR has less than
//! log2(100) = 6.6 bits per key, which is 830 MB for a billion keys.
//!
//! If you know the bits per key instead, these give this FPR:
//!
//! | bits per key | best k | FPR |
//! |---|---|---|
//! | 8 | 5 | 2.343% |
//! | 10 | 6 | 0.973% |
//! | 12 | 7 | 0.419% |
//! | 16 | 9 | 0.0858% |
//! | 20 | 6, in 2 modules | 0.00946% |
//! | 24 | 7, in 2 modules | 0.00176% |
//!
//! # Don't know the number of keys?
//!
//! - [`FilterBuilder`](crate::FilterBuilder) collects hashes and sizes the filter at the end.
//! - Or build a large filter of a [foldable](Sizing::rounded_to_fold) size, then [`fold`](crate::BloomFilter::fold) it.
//! - If you don't even know an upper limit, [`variants::ScalableBloomFilter`](crate::variants::ScalableBloomFilter)
//!   grows. It also [continues](crate::variants::ScalableBloomFilter::from_filter) from a filter of fixed size.
//!
//! To estimate how many keys a filter holds, see [`KeyEstimate`](crate::KeyEstimate).
//!
//! # The model
//!
//! The textbook formula (1 − e^(−k/b))^k, with b bits per key, is for standard filters. Some blocks get more keys than
//! the average, which raises the FPR. For example, at 16 bits per key the true FPR is twice the textbook's. The model
//! used here is exact for random hashes and many blocks. The number of keys per block is Poisson-distributed with a mean
//! of 512 ÷ bits per key (Putze, Sanders and Singler, "Cache-, hash- and space-efficient Bloom filters", 2007), and
//! within a block each key uses the lanes of its [mask](crate::format). In few blocks the number is binomial, and in one
//! it is constant, so a small filter has a lower FPR than the model's.
//!
//! Only basic arithmetic is used, so every CPU with IEEE 754 arithmetic computes the same sizes. However, 32-bit x86
//! without SSE2 does not have it, so targets such as `i586-unknown-linux-gnu` compute with the x87 unit's 80 bits, and
//! may choose one block or one probe more or less. Filters of a given size have the same bits there too, and are read
//! everywhere. To unite filters across such targets, give both the same
//! [number of blocks and k](crate::BloomFilter::with_blocks).

mod blocked;
mod checks;
mod model;
mod per_key;
mod search;
pub mod standard;

pub use crate::limits::{MAX_BITS_PER_KEY, MIN_FPR, SCALABLE_MIN_FPR};
pub(crate) use blocked::CompactSize;
pub use blocked::Sizing;
pub(crate) use checks::checked_fpr;
#[cfg(test)]
pub(crate) use model::EVALUATIONS;
pub use model::{best_k, fpr};
pub(crate) use model::{best_probe_count, bits_per_key_of, estimated_fpr, lowest_fpr};
pub(crate) use per_key::{PerKey, Request, modules_of};
