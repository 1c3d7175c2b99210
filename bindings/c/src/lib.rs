//! bloomline's C ABI, declared in `include/bloomline/bloomline.h`, which cbindgen generates from the comments here.
//!
//! Pointers, lengths and alignment from C are checked before Rust uses them. `Option<&T>` and `Option<Box<T>>` are C's
//! pointers to opaque types, with null as `None`. The rest is the caller's obligation, stated once at the top of the
//! header. For example, a pointer that is not null must point to what its function requires. No function panics on any
//! argument, and `extern "C"` aborts rather than let a panic out.
#![deny(missing_docs, unsafe_op_in_unsafe_fn)]
// The comments become the C header, whose top states the contract of every function.
#![allow(clippy::missing_safety_doc)]

// The header declares the modules' functions in this order.
mod error;

mod filter;

mod view;

mod bank;

mod atomic;

mod file;

mod builder;

mod policy;

mod hash;

mod buffer;
