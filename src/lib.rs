#![doc = include_str!("../README.md")]
#![no_std]
#![deny(missing_docs, unsafe_op_in_unsafe_fn)]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

#[cfg(target_has_atomic = "64")]
mod atomic;
mod blocks;
mod builder;
mod encoding;
mod error;
mod estimate;
mod filter;
mod hash;
mod kernel;
mod limits;
mod mask;
#[cfg(feature = "serde")]
mod serde;
mod short;
pub mod sizing;
pub mod sstable;
pub mod variants;
mod view;

#[cfg(target_has_atomic = "64")]
pub use atomic::AtomicBloomFilter;
pub use builder::FilterBuilder;
pub use encoding::{StandaloneFooter, StandaloneKind};
#[cfg(feature = "std")]
pub use error::RestoreError;
pub use error::{DecodeError, HashChanged, MismatchError, SizingError};
pub use estimate::KeyEstimate;
pub use filter::BloomFilter;
pub use hash::{hash_key, mix};
pub use kernel::Kernel;
pub use sizing::Sizing;
pub use view::BloomView;

#[doc = include_str!("../docs/format.md")]
pub mod format {}

#[doc = include_str!("../docs/embedding.md")]
pub mod embedding {}
