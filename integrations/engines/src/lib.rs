//! [`bloomline`]'s filters in Rust's storage engines, with one line of code.
//!
//! The README has the line for each engine. What an engine needs besides is written at [`Bloomline`]'s implementation of
//! that engine's `FilterPolicy`.
//!
//! Each table stores the name of the policy that created its filters. An engine reads tables of other policies without
//! their filters. When it rewrites such a table, the table gets bloomline's.
#![forbid(unsafe_code)]
#![cfg_attr(
    not(any(feature = "rusty-leveldb", feature = "slatedb", feature = "sstable", feature = "surrealkv")),
    allow(dead_code, reason = "used only with an engine, which a feature selects")
)]

#[cfg(feature = "slatedb")]
mod entries;
#[cfg(any(feature = "rusty-leveldb", feature = "sstable"))]
mod leveldb;
mod policy;
#[cfg(feature = "slatedb")]
mod slatedb;
#[cfg(feature = "surrealkv")]
mod surrealkv;

pub use policy::Bloomline;
#[cfg(feature = "slatedb")]
pub use slatedb::BloomlineStandard;
