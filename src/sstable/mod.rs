//! For databases with SSTables in LevelDB's manner: filters are made when a table is written, and asked before a data
//! block is read.
//!
//! | a table has | written by | read by |
//! |---|---|---|
//! | a filter for each 2 KiB of its data, as LevelDB's | [`FilterBlockBuilder`] | [`FilterBlockReader`] |
//! | one filter | [`FilterPolicy::create_filter`] | [`FilterPolicy::key_may_match`] |
//! | a filter for some thousand keys each, and an index of them | [`PartitionedFilterBuilder`] | [`PartitionIndex`] |
//!
//! [Embedding](crate::embedding) says which to take.
#![forbid(unsafe_code)]

mod filter_block;
mod partitioned;
mod policy;

pub use filter_block::{FilterBlockBuilder, FilterBlockError, FilterBlockReader};
pub use partitioned::{
    Partition, PartitionIndex, PartitionIndexBuilder, PartitionIndexError, PartitionedFilterBuilder,
};
pub use policy::{FilterPolicy, Policy};
