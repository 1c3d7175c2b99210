//! The header is what cbindgen makes of the sources.

use std::fs;
use std::path::Path;

#[test]
fn the_header_is_that_of_the_sources() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(folder.join("cbindgen.toml")).unwrap();
    let made = Path::new(env!("CARGO_TARGET_TMPDIR")).join("bloomline.h");
    let committed = folder.join("include/bloomline/bloomline.h");
    cbindgen::generate_with_config(folder, config).unwrap().write_to_file(&made);
    assert!(
        fs::read(&committed).unwrap() == fs::read(&made).unwrap(),
        "to see the difference: diff {0} {1}; to accept it: cp {1} {0}",
        committed.display(),
        made.display()
    );
}
