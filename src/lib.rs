//! A Bloom filter whose lookups read one cache line, for hot paths.
//!
//! A lookup hashes the key, picks one block of 512 bits (a cache line), and tests one to sixteen bits of it with SIMD.
//! The answer is "definitely absent" or "possibly present". False positives occur at a rate that you choose, but false
//! negatives never occur.
//!
//! In the loop `hashes.iter().filter(|&&h| filter.contains_hash(h)).count()`, lookups overlap, and each runs in 1 to 2
//! ns from cache. Hashing a key of 16 bytes adds 2 to 3 ns (Zen 4, Zen 5 and Emerald Rapids).
//!
//! ```
//! use bloomline::BloomFilter;
//!
//! let mut seen = BloomFilter::with_fpr(1_000_000, 0.01)?; // 1 million keys at 1% false positives cost 1.24 MB
//! seen.insert("user4291");
//! assert!(seen.contains("user4291")); // possibly present
//! assert!(!seen.contains("user4292")); // definitely absent
//! # Ok::<(), bloomline::Error>(())
//! ```
//!
//! # Choose a type
//!
//! | type | use it to |
//! |---|---|
//! | [`BloomFilter`] | insert and look up keys, if you know their number roughly |
//! | [`FilterBuilder`] | build a filter of keys whose number you don't know in advance |
//! | [`BloomView`] | look up keys in bytes that you borrow |
//! | [`OwnedView`] | look up keys in bytes that the view keeps: part of a mapped file (`bytes::Bytes`), a cache entry ([`AlignedBytes`]) |
//! | [`AtomicBloomFilter`] | insert and look up from many threads at once |
//! | [`bank`] | find out which of many filters or files have a key, by one lookup |
//! | [`variants`] | remove keys, grow without limit, use fewer bits per key, or queue URLs |
//! | [`sstable`] | write and read the filters of a database's tables |
//!
//! # Keys
//!
//! A [`Key`] is text, a byte string or an integer of up to 64 bits. Equal integers of different types are the same key,
//! here and in C, Python, SQL and on the command line:
//!
//! ```
//! # use bloomline::{BloomFilter, hash_key};
//! # let mut filter = BloomFilter::with_fpr(1_000, 1e-6)?;
//! filter.insert(42_u64);
//! filter.insert("user4291".to_string());
//! assert!(filter.contains(42_i32) && filter.contains(b"user4291"));
//! assert!(!filter.contains("42"));
//!
//! let hash = filter.hash_key(42); // hash once, look up in many filters with the same seed
//! assert!(filter.contains_hash(hash));
//! # Ok::<(), bloomline::Error>(())
//! ```
//!
//! Methods that end in `_hash` or `_batch` accept 64-bit hashes, from `hash_key` or your own if all their bits are well
//! mixed ([`mix`] repairs weak hashes).
//!
//! # Size a filter
//!
//! [`BloomFilter::with_fpr`] accepts the number of distinct keys and a false-positive rate. [`Sizing`] computes a size
//! without building a filter, and [`sizing`] has the model and a table of sizes. With more keys than expected, the
//! filter still finds all of them, but its false-positive rate rises.
//!
//! If you only know the most keys that may come, build for that number, then fold the filter:
//!
//! ```
//! # use bloomline::BloomFilter;
//! let mut filter = BloomFilter::with_blocks(1 << 14, 6)?; // a power of two can be halved again and again
//! filter.extend(0..20_000);
//! filter.shrink_to_fpr(0.01)?;
//! assert_eq!(filter.n_blocks(), 512);
//! assert!(filter.estimated_fpr() < 0.01);
//! # Ok::<(), bloomline::Error>(())
//! ```
//!
//! # Build a filter while writing an SSTable
//!
//! ```
//! use bloomline::{BloomView, FilterBuilder};
//!
//! let mut builder = FilterBuilder::with_bits_per_key(10.0)?;
//! for key in ["ant", "bee", "bee", "cat"] {
//!     builder.insert(key); // versions of a key may repeat
//! }
//! let mut table = Vec::new();
//! builder.finish_compact(&mut table)?;
//!
//! assert!(BloomView::from_compact(&table)?.contains("bee"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Compact bytes, which are the filter's bits and one byte, rely on the checksum of the table. If a file has no
//! checksum, append the filter's standalone bytes instead, and open them as an [`OwnedView`] of the mapped
//! file, as the example `table` does.
//!
//! [`sstable::FilterPolicy`] does the same in the shape of LevelDB's filter policies. [`embedding`] is a guide for
//! owners of a table format.
//!
//! # Look up one key in many tables
//!
//! Hash the key once, then ask all filters in one call, which overlaps the waits for memory:
//!
//! ```
//! # use bloomline::{BloomFilter, BloomView, hash_key};
//! # let tables = [BloomFilter::with_fpr(1_000, 0.01)?, BloomFilter::with_fpr(2_000, 0.01)?];
//! let hash = hash_key("user4291", 0);
//! let possibly_in = BloomView::which_contain(&tables, hash);
//! # assert_eq!(possibly_in.count(), 0);
//! # Ok::<(), bloomline::Error>(())
//! ```
//!
//! If there are 16 filters or more of one size, a [`bank::FilterBank`] of them answers faster, and a
//! [`bank::IndexBuilder`] writes an index over filters of any size.
//!
//! # Look up many keys in one filter
//!
//! ```
//! # use bloomline::BloomFilter;
//! # let filter = BloomFilter::with_fpr(1_000, 0.01)?;
//! let hashes = ["ant", "bee", "cat"].map(|key| filter.hash_key(key));
//! let mut found = [false; 3];
//! filter.contains_batch(&hashes, &mut found); // overlaps the waits for memory
//! # assert_eq!(found, [false; 3]);
//! # Ok::<(), bloomline::Error>(())
//! ```
//!
//! If lookups are slow, see [`tuning`].
//!
//! # Share one filter between threads
//!
//! Any number of threads may look up keys in a [`BloomFilter`] or [`BloomView`]. To insert at the same time, use an
//! [`AtomicBloomFilter`]. To build with several threads, give each its own filter, and unite them with
//! [`union_with`](BloomFilter::union_with).
//!
//! # Store a filter and read it in place
//!
//! ```
//! # use bloomline::{BloomFilter, BloomView};
//! # let filter = BloomFilter::with_fpr(1_000, 0.01)?;
//! let mut file = Vec::new(); // or a `std::fs::File`
//! filter.write_standalone(&mut file)?;
//!
//! let view = BloomView::from_standalone(&file)?; // compares all bytes with their checksums
//! let copy = BloomFilter::from_standalone(&file)?; // compares them too, and copies them, so you can insert more
//! # assert!(copy == filter && copy.as_view() == view);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Standalone bytes are for files and networks. If a mapped file is too large to read, open it by
//! [`BloomView::from_standalone_unverified`], but damaged bits then lose keys. Compact bytes
//! ([`BloomFilter::to_compact`]) are the bits and one more byte, so they rely on the length and the checksum of their
//! container. [`mod@format`] specifies both.
//!
//! # Count keys, in one filter or in two
//!
//! [`estimated_keys`](BloomFilter::estimated_keys) of a filter, and [`estimated_union`](BloomView::estimated_union) and
//! [`estimated_intersection`](BloomView::estimated_intersection) of its [view](BloomFilter::as_view), return a
//! [`KeyEstimate`] with its standard error, which is 0.25% for 10,000 keys at 10 bits per key, and less for more keys.
//! A filter that is too full returns `None`.
//!
//! # When not to use it
//!
//! - If you delete keys, rebuild the filter, or use a [`CountingBloomFilter`](variants::CountingBloomFilter).
//! - If you need exact answers or a list of the keys, keep a set.
//! - If attackers choose the keys, no key is lost, but they can raise the false-positive rate, whatever the seed.
//!
//! # Guarantees
//!
//! - An inserted key is always found, after union, fold, shrinking or encoding, on any CPU, and by any later release.
//! - Within a version of the [format](mod@format), bits and bytes never change, and every later release reads version
//!   2.
//! - Malformed standalone bytes are an error, unless you open them unverified. Compact bytes rely on the length and the
//!   checksum of their container. As long as these hold, malformed bytes are an error or "possibly present". They never
//!   cause a panic, a read out of bounds or an allocation out of proportion to the bytes.
//! - If memory runs out, constructors, decoders and copies return an error. Functions that return no `Result` abort, as
//!   `Vec` does.
//! - The minimum Rust version is 1.89. A patch release never raises it.
//!
//! # Features
//!
//! - `std` (default): Readers and writers, and the environment variable [`BLOOMLINE_KERNEL`](Kernel#the-environment).
//!   Without it, the crate is [`no_std`](#no_std) with `alloc`. With and without it, the kernel (the code for one
//!   instruction set) is chosen at run time, except on bare metal, where the build's target features choose.
//! - `huge-pages`: Filters of 2 MiB and more are in huge pages, where Linux grants them. Adds `memmap2`.
//! - `serde`: Filters [serialize](#serde) as their standalone bytes. Adds `serde_core`.
//! - `log`: A warning says that a [`variants::Frontier`] exceeds its capacity, or that
//!   [`BLOOMLINE_KERNEL`](Kernel#the-environment) names no kernel. Adds `log`.
//!
//! No feature, target or build flag changes a bit of the output, except for [sizes](sizing#the-model) computed on
//! 32-bit x86 without SSE2.
//!
//! ## `serde`
//!
//! A filter is a value like any other. Damaged bytes are an error:
//!
//! ```
//! # #[cfg(feature = "serde")]
//! # {
//! # use bloomline::BloomFilter;
//! # let mut filter = BloomFilter::with_fpr(1_000, 0.01)?;
//! # filter.insert("user4291");
//! let bytes = postcard::to_allocvec(&filter)?;
//! let filter: BloomFilter = postcard::from_bytes(&bytes)?;
//! assert!(filter.contains("user4291"));
//! # }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Prefer binary formats, because formats without a type for bytes, such as JSON, write each byte as a number.
//!
//! ## `no_std`
//!
//! With `default-features = false` in your `Cargo.toml`, filters, builders and views need an allocator, but no operating
//! system. To store a filter, encode it into a vector:
//!
//! ```
//! extern crate alloc;
//! use alloc::vec::Vec;
//! use bloomline::{BloomView, Error, FilterBuilder};
//!
//! fn encoded(keys: &[&str]) -> Result<Vec<u8>, Error> {
//!     let (mut builder, mut bytes) = (FilterBuilder::with_bits_per_key(10.0)?, Vec::new());
//!     keys.iter().for_each(|key| builder.insert(key));
//!     builder.finish_compact(&mut bytes)?;
//!     Ok(bytes)
//! }
//!
//! let bytes = encoded(&["ant", "bee"])?;
//! assert!(BloomView::from_compact(&bytes)?.contains("bee"));
//! # Ok::<(), Box<dyn core::error::Error>>(())
//! ```
#![no_std]
#![deny(missing_docs, unsafe_code, unsafe_op_in_unsafe_fn)]
#![cfg_attr(docsrs, feature(doc_cfg))]

extern crate alloc;
#[cfg(any(feature = "std", test))]
extern crate std;

mod aligned_bytes;
#[cfg(target_has_atomic = "64")]
mod atomic;
pub mod bank;
mod bitmap;
// Unsafe code is only in the modules that allow it here.
#[allow(unsafe_code)]
mod blocks;
mod builder;
mod compact;
#[allow(unsafe_code)]
mod detect;
mod digits;
mod error;
mod estimate;
mod extend;
mod filter;
mod fold;
mod footer;
mod hash;
#[allow(unsafe_code)]
mod kernel;
mod key;
mod kind;
mod lanes;
mod limits;
mod mask;
mod math;
mod memory;
mod modules;
#[allow(unsafe_code)]
mod owned;
#[cfg(feature = "serde")]
mod serde;
pub mod sizing;
pub mod sstable;
mod standalone;
pub mod variants;
mod view;

pub use aligned_bytes::AlignedBytes;
#[cfg(target_has_atomic = "64")]
pub use atomic::AtomicBloomFilter;
pub use builder::FilterBuilder;
pub use error::{Error, ErrorKind};
pub use estimate::KeyEstimate;
pub use filter::BloomFilter;
pub use footer::StandaloneFooter;
pub use hash::{hash_key, mix};
pub use kernel::Kernel;
pub use key::Key;
pub use kind::StandaloneKind;
pub use owned::{Owned, OwnedView};
pub use sizing::Sizing;
pub use view::BloomView;

#[doc = include_str!("../docs/format.md")]
pub mod format {}

#[doc = include_str!("../docs/embedding.md")]
pub mod embedding {}

#[doc = include_str!("../docs/tuning.md")]
pub mod tuning {}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(doctest)]
#[doc = include_str!("../docs/engine-filter.md")]
struct EngineFilter;
