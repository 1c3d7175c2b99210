//! The aggregates.

mod build;
mod union;

pub use build::Build;
pub use union::Union;
