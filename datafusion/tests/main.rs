//! The tests, in one program.

mod common;
mod damage;
mod files;
mod golden;
mod limits;
mod partitions;
mod proto;
mod random;
mod registered;
mod sql;
