//! The goldens and the agreement of the kernels, in a module that JavaScript calls.

use bloomline::{BloomFilter, BloomView, Kernel, mix};

/// The number of checks that passed: 1,000 for each kernel.
#[unsafe(no_mangle)]
pub extern "C" fn passed() -> u32 {
    let golden = include_bytes!("../golden/standalone-100-blocks.bin");
    let view = BloomView::from_standalone(golden).unwrap();
    let mut passed = 0;
    for kernel in Kernel::available() {
        let mut filter =
            BloomFilter::with_blocks(100, 11).unwrap().with_seed(0x5eed).unwrap().with_kernel(kernel);
        filter.extend((0..1000_u32).map(|number| number.to_string()));
        assert!(filter.to_standalone() == golden);
        let hashes: Vec<u64> = (0..1000).map(mix).collect();
        let mut found = [false; 1000];
        filter.contains_batch(&hashes, &mut found);
        for (&hash, &found) in hashes.iter().zip(&found) {
            assert!(found == view.contains_hash(hash) && found == filter.contains_hash(hash));
            passed += 1;
        }
    }
    passed
}
