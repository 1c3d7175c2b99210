//! Filters for databases with SSTables like LevelDB's: create them when you write a table, and query them before you
//! read a data block.
//!
//! | a table has | written by | read by |
//! |---|---|---|
//! | a filter for each 2 KiB of its data, as in LevelDB | [`FilterBlockBuilder`] | [`FilterBlockReader`] |
//! | one filter | [`FilterPolicy::builder`] or [`create_filter`](FilterPolicy::create_filter) | [`FilterPolicy::key_may_match`] |
//! | filters of a few thousand keys each, and an index of them | [`PartitionedFilterBuilder`] | [`PartitionIndex`] |
//!
//! [Embedding](crate::embedding) helps you choose.
#![forbid(unsafe_code)]

mod filter_block;
mod partitioned;
mod policy;

pub use filter_block::{FilterBlockBuilder, FilterBlockError, FilterBlockReader};
pub use partitioned::{
    Ended, PartitionError, PartitionIndex, PartitionIndexBuilder, PartitionIndexError,
    PartitionedFilterBuilder,
};
pub use policy::FilterPolicy;
