//! The library inlined into a shared object.

pub use bloomline;

include!("lookups.rs");

#[unsafe(no_mangle)]
pub extern "C" fn lookups() -> i32 {
    lookups_in_filters()
}
