//! The tests, in one program.

mod common;
mod damage;
mod files;
mod golden;
#[cfg(feature = "join-filters")]
mod join_filters;
#[cfg(feature = "join-filters")]
mod join_rule;
mod limits;
mod partitions;
mod proto;
mod random;
mod refused;
mod registered;
mod sql;
