//! An index over files, which are filters of different sizes in a few banks, with names (section 13 of the format).

mod builder;
mod footer;
mod names;
mod plan;
mod view;

pub use builder::IndexBuilder;
pub use footer::{FileVersion, IndexFooter};
pub use view::IndexView;
