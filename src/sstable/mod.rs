//! Filters for databases with SSTables like LevelDB's. Create them when you write a table, and query them before you
//! read a data block.
//!
//! | a table has | written by | read by |
//! |---|---|---|
//! | one filter: the default | [`FilterPolicy::builder`] | [`FilterPolicy::try_key_may_match`] |
//! | filters of a few thousand keys each, and an index of them | [`PartitionedFilterBuilder`] | [`PartitionIndex`] |
//! | a filter for each 2 KiB of its data, as in LevelDB | [`FilterBlockBuilder`] | [`FilterBlockReader`] |
//!
//! [Embedding](crate::embedding) helps you choose, and lists the mistakes that lose keys.
#![forbid(unsafe_code)]

mod filter_block;
mod partitioned;
mod policy;

pub use filter_block::{FilterBlockBuilder, FilterBlockReader};
pub use partitioned::{Ended, PartitionIndex, PartitionIndexBuilder, PartitionedFilterBuilder};
pub use policy::FilterPolicy;
