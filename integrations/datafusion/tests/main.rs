//! The tests, in one program.

mod common;
mod damage;
#[cfg(feature = "file-index")]
mod file_index;
#[cfg(feature = "file-index")]
mod file_index_codec;
#[cfg(feature = "file-index")]
mod file_index_random;
mod golden;
#[cfg(feature = "join-filters")]
mod join_filters;
#[cfg(feature = "join-filters")]
mod join_rule;
mod partitions;
mod random;
mod registered;
mod sql;
