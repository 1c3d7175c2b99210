fn lookups_in_filters() -> i32 {
    for k in [6, 11] {
        let mut filter = bloomline::BloomFilter::with_blocks(40, k).unwrap();
        (0..1000_u32).for_each(|key| _ = filter.insert(key.to_le_bytes()));
        let shared = bloomline::AtomicBloomFilter::from(filter.clone());
        let (mut found, mut found_shared) = (0, 0);
        for key in 0..2000_u32 {
            found += u32::from(filter.contains(key.to_le_bytes()));
            found_shared += u32::from(shared.contains(key.to_le_bytes()));
        }
        if found_shared != found || !(1000..=1050).contains(&found) {
            return k as i32;
        }
    }
    0
}
