//! Filter banks, in which one lookup answers for many filters.
//!
//! "Which of these thousand tables may have the key?" costs a cache miss for each filter, or a request to an object
//! store. A [`FilterBank`] stores the filters transposed. For each bit of a block there is a row, with one bit for each
//! filter, and a lookup ANDs the k rows of the key. The rows of one block number, a region, lie side by side. The bits,
//! and so the false positives, are the filters' own. In the literature, this is a bit-sliced or interleaved Bloom
//! filter, but here within blocks.
//!
//! A bank's filters have one size. An [`IndexBuilder`] writes an index over files, whose filters have any size, with
//! their names.
//!
//! ```
//! use bloomline::BloomFilter;
//! use bloomline::bank::{FilterBank, SlotBitmap};
//!
//! let mut tables = Vec::new();
//! for keys in [["ant", "bee"], ["bee", "cat"]] {
//!     let mut filter = BloomFilter::with_blocks(64, 6)?; // one size for all
//!     filter.extend(keys);
//!     tables.push(filter);
//! }
//! let bank = FilterBank::from_filters(&tables)?;
//!
//! let mut found = SlotBitmap::new();
//! bank.as_view().find("bee", &mut found);
//! assert!(found.iter().eq([0, 1])); // the slots, in the order of the tables
//! assert!(!bank.as_view().find("dog", &mut found)); // definitely absent from all
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod bank_footer;
mod bank_view;
mod bitmap;
mod checksum;
mod filter_bank;
mod index;
mod shape;

pub use bank_footer::BankFooter;
pub use bank_view::BankView;
pub use bitmap::{SlotBitmap, SlotIter};
pub use filter_bank::FilterBank;
pub use index::{FileVersion, IndexBuilder, IndexFooter, IndexView};
