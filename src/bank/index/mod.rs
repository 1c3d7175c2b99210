//! An index over files, which are filters of different sizes in a few banks, with names (section 13 of the format).

mod index_builder;
mod index_footer;
mod index_view;
mod names;
mod plan;

pub use index_builder::IndexBuilder;
pub use index_footer::{FileVersion, IndexFooter};
pub use index_view::IndexView;
