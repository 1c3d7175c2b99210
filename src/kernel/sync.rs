//! The atomics of `choice` and `shared`. Tests that compile these two files replace this file with their own atomics.
#![forbid(unsafe_code)]

#[cfg(target_has_atomic = "64")]
pub(super) use core::sync::atomic::AtomicU64;
pub(super) use core::sync::atomic::{AtomicU8, Ordering};
