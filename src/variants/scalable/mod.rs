//! `ScalableBloomFilter`: a series of filters that grows with an unknown number of keys.

mod batches;
mod bytes;
mod filter;
mod lookups;
mod series;
mod union;

pub use filter::ScalableBloomFilter;
