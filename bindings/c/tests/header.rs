//! The header is what cbindgen makes of the sources, and passes bytes in one way.

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

/// Keys and filters are `void`, and a filter comes before a key. Only paths and texts of the library are `char`.
#[test]
fn bytes_have_one_type_and_one_order() {
    let header = include_str!("../include/bloomline/bloomline.h");
    let code: Vec<_> = header.lines().filter(|line| !line.trim_start().starts_with(['/', '*'])).collect();
    let (mut n_texts, mut n_pairs) = (0, 0);
    for declaration in code.concat().split(';') {
        let texts = declaration.replace("const char *path", "").replace("const char *bloomline_", "");
        assert!(!texts.contains("char"), "{declaration}");
        n_texts += usize::from(texts.len() < declaration.len());
        if let (Some(bytes), Some(key)) = (declaration.find("void *bytes"), declaration.find("void *key")) {
            assert!(bytes < key, "{declaration}");
            n_pairs += 1;
        }
    }
    assert_eq!((n_texts, n_pairs), (8, 2));
}
