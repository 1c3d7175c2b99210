//! bloomline's C ABI: what `include/bloomline/bloomline.h` declares, which cbindgen makes from the comments here.
//!
//! What C hands over is checked for null, lengths and alignment before Rust sees it; `Option<&T>` and `Option<Box<T>>`
//! are C's pointers to opaque types, null being `None`. The rest is the caller's word, given once at the top of the
//! header: pointers that are not null point at what their function asks for. No function panics on any argument, and
//! `extern "C"` lets no panic pass.
#![deny(missing_docs, unsafe_op_in_unsafe_fn)]
// The header's words are for callers in C, and say at its top what holds for every function.
#![allow(clippy::missing_safety_doc)]

mod buffer;

// In the order in which the header declares what they export.
mod error;

mod filter;

mod view;

mod builder;

mod policy;

mod hash;
