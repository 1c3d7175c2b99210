//! Modular filters: several filters of blocks that answer together.
#![forbid(unsafe_code)]

mod filter;
mod modules;
mod owned_view;
mod view;

pub use filter::ModularBloomFilter;
pub(super) use modules::next;
pub use owned_view::OwnedModularView;
pub use view::ModularView;
