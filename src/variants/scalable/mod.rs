//! `ScalableBloomFilter`: a series of filters that grows with an unknown number of keys.

mod bytes;
mod filter;
mod series;

pub use filter::ScalableBloomFilter;
