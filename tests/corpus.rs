//! The fuzz targets on stable Rust, over the inputs that fuzzers have saved, and over bytes from proptest.

mod common;

use std::{env, fs};

use arbitrary::{Arbitrary, Unstructured};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

fn replay(target: &str, cases: u32, check: impl Fn(&[u8])) {
    let folder = format!("{}/fuzz/corpus/{target}", env!("CARGO_MANIFEST_DIR"));
    let mut replayed = 0;
    for file in fs::read_dir(&folder).unwrap_or_else(|error| panic!("{folder}: {error}")) {
        let path = file.expect("a name").path();
        println!("{}", path.display());
        check(&fs::read(&path).expect("a file of the corpus"));
        replayed += 1;
    }
    assert!(replayed >= 20, "{folder} has {replayed} files");

    let cases = common::cases(cases);
    let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
    // `arbitrary` ends a list at an even byte, so with random bytes half of all programs would be empty.
    let byte = prop_oneof![7 => any::<u8>().prop_map(|byte| byte | 1), 1 => any::<u8>()];
    let bytes = prop::collection::vec(byte, 0..1_000);
    TestRunner::new(config)
        .run(&bytes, |bytes| {
            check(&bytes);
            Ok(())
        })
        .unwrap_or_else(|error| panic!("{error}"));
}

macro_rules! replay {
    ($($target:ident by $property:ident: $cases:literal,)*) => {
        const REPLAYED: &[&str] = &[$(stringify!($target)),*];

        $(
            #[test]
            fn $target() {
                replay(stringify!($target), $cases, |bytes| {
                    // What libfuzzer-sys does with its bytes.
                    if let Ok(input) = common::$property::Input::arbitrary_take_rest(Unstructured::new(bytes)) {
                        common::$property::check(input);
                    }
                });
            }
        )*
    };
}

replay! {
    bank by bank_programs: 100,
    decode by decode: 100,
    hash by hash_oracle: 1_000,
    lockstep by kernel_comparison: 100,
    model by model: 100,
    sizing by sizing_guarantees: 100,
    // A case is of one of four types.
    variants by variants: 400,
}

#[test]
fn all_fuzz_targets_are_replayed() {
    let manifest = format!("{}/fuzz/Cargo.toml", env!("CARGO_MANIFEST_DIR"));
    let manifest = fs::read_to_string(manifest).expect("the manifest of the fuzz targets");
    let binaries = manifest.split("[[bin]]\n").skip(1);
    let mut targets: Vec<_> = binaries.filter_map(|binary| binary.split('"').nth(1)).collect();
    targets.sort_unstable();
    assert_eq!(targets, REPLAYED);
}
