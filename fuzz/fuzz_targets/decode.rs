//! Arbitrary bytes are an error or a filter, as compact and as standalone bytes.
#![no_main]

#[path = "../../tests/common/properties.rs"]
mod properties;

use libfuzzer_sys::fuzz_target;
use xxhash_rust::xxh64::xxh64;

fuzz_target!(|input: (&[u8], &[u8])| {
    let (key, bytes) = input;
    properties::decoders_survive(bytes, key);

    // No fuzzer guesses a checksum: give it the right one, so that the checks behind it are reached.
    let written = include_bytes!("../../tests/golden/standalone-empty.bin");
    let mut forged = bytes.to_vec();
    if let (Some(footer), Some(model)) = (forged.last_chunk_mut::<64>(), written.last_chunk::<64>()) {
        footer[24..32].copy_from_slice(&model[24..32]);
        footer[56..].copy_from_slice(&model[56..]);
        let checksum = xxh64(&footer[..48], 0);
        footer[48..56].copy_from_slice(&checksum.to_le_bytes());
        properties::decoders_survive(&forged, key);
    }
});
