//! The aggregates.

mod build;
mod union;
mod window;

pub use build::Build;
pub use union::Union;
pub use window::{InWindow, Planner};
