//! The ranges of what callers may request. [`sizing`](crate::sizing) publishes them, and errors quote them.

/// The most bits per key that can be requested, because above it each further bit gains next to nothing in a 512-bit
/// block.
pub const MAX_BITS_PER_KEY: f64 = 64.0;

/// The lowest false-positive rate that can be requested, the rate of four modules at [`MAX_BITS_PER_KEY`].
pub const MIN_FPR: f64 = 5.432e-13;

/// The rate of one module at [`MAX_BITS_PER_KEY`].
pub(crate) const ONE_MODULE_MIN_FPR: f64 = 1.263e-8;

/// The lowest false-positive rate that can be requested of a scalable filter. This is the rate of 64 filters of 1.263e-8,
/// which is the lowest of one module, because no process has memory for more filters of a series.
pub const SCALABLE_MIN_FPR: f64 = 64.0 * ONE_MODULE_MIN_FPR;
