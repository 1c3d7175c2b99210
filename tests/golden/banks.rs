// Made by tests/golden/make.py from docs/format.md. Do not edit.

/// (bytes, slots, n_blocks, k, seed). Slot s has the keys "{s}-{i}", as text, for i in 0..s % 7. Their
/// number is unknown if it is 4. bank-3-slots.bin has other keys: docs/format.md, section 12.
pub const BANKS: &[(&[u8], usize, usize, u32, u64)] = &[
    (include_bytes!("bank-0-slots.bin"), 0, 3, 6, 0x0000_0000_0000_0000),
    (include_bytes!("bank-9-slots.bin"), 9, 2, 1, 0x0000_0000_0000_0000),
    (include_bytes!("bank-17-slots.bin"), 17, 1, 8, 0x0000_0000_0000_5eed),
    (include_bytes!("bank-33-slots.bin"), 33, 3, 9, 0x0000_0000_0000_0000),
    (include_bytes!("bank-100-slots.bin"), 100, 2, 16, 0x0000_0000_0000_0000),
    (include_bytes!("bank-512-slots.bin"), 512, 1, 6, 0x0000_0000_0000_5eed),
    (include_bytes!("bank-513-slots.bin"), 513, 2, 7, 0x0000_0000_0000_0000),
    (include_bytes!("bank-600-slots.bin"), 600, 1, 12, 0xffff_ffff_ffff_ffff),
];
