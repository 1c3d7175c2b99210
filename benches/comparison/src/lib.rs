//! bloomline and other filters behind one interface, and the timing that compares them.

pub mod cpp;
pub mod filter;
pub mod keys;
pub mod line_up;
pub mod machine;
pub mod queries;
pub mod race;
pub mod results;
