//! The library inlined into a program too, whose copy of the library is in `plugin`.

use plugin::bloomline;

include!("lookups.rs");

fn main() {
    std::process::exit(plugin::lookups() + lookups_in_filters())
}
