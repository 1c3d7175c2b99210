//! bloomline and other filters behind one interface, and the timing that compares them.

pub mod baseline;
pub mod batch;
pub mod builds;
pub mod contender;
pub mod keys;
pub mod line_up;
pub mod machine;
pub mod memory;
pub mod queries;
pub mod race;
pub mod rates;
pub mod results;
pub mod rocksdb;
pub mod small_pages;
