//! The example `inspect` describes what tables hold, damaged or not.

#[path = "../inspect.rs"]
#[expect(dead_code, reason = "`main` is not called")]
mod inspect;

use bloomline::sstable::{FilterBlockBuilder, FilterPolicy, PartitionIndexBuilder};

use inspect::description;

/// A filter block of 20 filters, each for 50 keys of a data block of 4 kB.
fn block() -> Vec<u8> {
    let mut filters = FilterBlockBuilder::new(&FilterPolicy::with_bits_per_key(10.0).unwrap());
    for key in 0..1000_u64 {
        if key % 50 == 0 {
            filters.start_block(key / 50 * 4096);
        }
        filters.insert(key);
    }
    filters.finish().unwrap()
}

#[track_caller]
fn describes(bytes: &[u8], texts: &[&str]) {
    let description = description(bytes).unwrap();
    assert!(texts.iter().all(|text| description.contains(text)), "{description}");
}

#[test]
fn parts_of_tables_are_described() {
    let (mut short, mut long) = (Vec::new(), Vec::new());
    let policy = FilterPolicy::with_bits_per_key(10.0).unwrap();
    policy.create_filter(["ant", "bee"], &mut short);
    policy.create_filter(0..1000_u64, &mut long);
    describes(&short, &["filter in compact bytes: 8 bytes, k = 16", "keys: about 2 "]);
    describes(&long, &["filter in compact bytes: 1280 bytes, k = 7", "keys: about 9", "FPR: "]);
    let mut modules = Vec::new();
    FilterPolicy::with_fpr(0.0001).unwrap().create_filter(0..3000_u64, &mut modules);
    describes(&modules, &["compact bytes: 2 modules, 7552 bytes in all, k = 6", "keys: about 29", "FPR: "]);
    describes(&block(), &["20 filters, none for 19 ranges of 2048 bytes", "be read: 0\nkeys: about "]);
    let mut index = PartitionIndexBuilder::new();
    for (key, start) in [("ant", 0), ("cat", 4001), ("elk", 8002)] {
        index.add(key, start, 4001).unwrap();
    }
    describes(&index.finish(), &["partition index: 3 partitions"]);
    for other in [&b""[..], b"ant\n", &[0xff; 1000]] {
        assert!(description(other).unwrap_err().to_string().contains("not a partition index"));
    }
}

#[test]
fn damage_is_counted() {
    let mut damaged = block();
    let first = damaged.len() - 5 - 4 * 39 - 1;
    damaged[first] = 0xff;
    describes(&damaged, &["20 filters", "cannot be read: 1\n"]);
    // Half a million filters, each of the same 4 MB: to read all would take hours.
    let filters = vec![0x25; (4 << 20) + 1];
    let end = (filters.len() as u32).to_le_bytes();
    let offsets = [0_u32.to_le_bytes(), end].concat().repeat(500_000);
    describes(&[&filters, &*offsets, &end, &[11]].concat(), &["filter block: ", "cannot be read: "]);
}
