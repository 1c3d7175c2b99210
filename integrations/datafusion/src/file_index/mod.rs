//! An index over the files of a table, so that a query of a key opens the few files that possibly have it.

mod asked;
mod builder;
mod catalog;
mod codec;
mod column_scan;
mod columns;
mod index_file;
mod late;
mod listed;
mod source;
mod sql;
mod table;
mod watch;

pub use builder::{FileIndexBuilder, FileIndexReport, Others};
pub use catalog::attach_index;
pub use codec::FileIndexCodec;
pub use sql::register_file_index;
pub use table::IndexedTable;
