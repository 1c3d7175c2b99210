//! The atomics of `choice` and `shared`, which tests replace with their own.
#![forbid(unsafe_code)]

#[cfg(target_has_atomic = "64")]
pub(super) use core::sync::atomic::AtomicU64;
pub(super) use core::sync::atomic::{AtomicU8, Ordering};
