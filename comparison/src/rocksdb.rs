//! RocksDB's own filter, since format version 5: C++ that build.rs compiles.

use crate::filter::{Filter, Line};
use crate::keys::Keys;

/// Built for this CPU, as RocksDB's Makefile does it.
pub const ROCKSDB: &str = "RocksDB";
/// Built as Debian does it, for every CPU of the architecture.
pub const ROCKSDB_DEBIAN: &str = "RocksDB (Debian)";

/// Why RocksDB is left out.
pub const WITHOUT: Option<&str> = option_env!("WITHOUT_ROCKSDB");

/// The functions of rocksdb.cc, in the same order.
#[repr(C)]
struct Functions {
    probes: extern "C" fn(i32) -> i32,
    insert: unsafe extern "C" fn(*const Bits, *const u64, usize),
    count: unsafe extern "C" fn(*const Bits, *const u64, usize) -> usize,
    count_branching: unsafe extern "C" fn(*const Bits, *const u64, usize) -> usize,
    insert_keys: unsafe extern "C" fn(*const Bits, *const u8, *const u32, usize),
    count_keys: unsafe extern "C" fn(*const Bits, *const u8, *const u32, usize) -> usize,
}

#[repr(C)]
struct Bits {
    data: *mut u8,
    size_bytes: u32,
    probes: i32,
}

#[cfg(rocksdb)]
unsafe extern "C" {
    safe static rocksdb_native_functions: Functions;
    safe static rocksdb_debian_functions: Functions;
}

/// A way to compile RocksDB.
#[derive(Clone, Copy)]
pub struct Build {
    pub name: &'static str,
    functions: &'static Functions,
}

/// The builds of RocksDB, or none if its source is missing.
pub static BUILDS: &[Build] = &[
    #[cfg(rocksdb)]
    Build { name: ROCKSDB, functions: &rocksdb_native_functions },
    #[cfg(rocksdb)]
    Build { name: ROCKSDB_DEBIAN, functions: &rocksdb_debian_functions },
];

impl Build {
    /// The number of probes that RocksDB chooses.
    pub fn probes_for(&self, bits_per_key: f64) -> u32 {
        (self.functions.probes)((bits_per_key * 1000.0).round() as i32) as u32
    }
}

pub struct RocksDb {
    build: Build,
    lines: Vec<Line>,
    probes: u32,
}

impl RocksDb {
    pub fn new(build: Build, size_bytes: usize, probes: u32) -> Self {
        assert!((64..=u32::MAX as usize).contains(&size_bytes), "64 bytes to 4 GiB");
        Self { build, lines: vec![Line([0; 8]); size_bytes / 64], probes }
    }

    fn bits(&self) -> Bits {
        Bits {
            data: self.lines.as_ptr().cast_mut().cast(),
            size_bytes: self.byte_len() as u32,
            probes: self.probes as i32,
        }
    }

    fn bits_mut(&mut self) -> Bits {
        Bits { data: self.lines.as_mut_ptr().cast(), ..self.bits() }
    }
}

// RocksDB reads and writes only within the filter's `size_bytes`, whose memory `lines` owns.
impl Filter for RocksDb {
    fn byte_len(&self) -> usize {
        self.lines.len() * 64
    }

    fn insert_all(&mut self, hashes: &[u64]) {
        // SAFETY: the hashes are as many as given, and the filter is ours alone.
        unsafe { (self.build.functions.insert)(&self.bits_mut(), hashes.as_ptr(), hashes.len()) }
    }

    fn count(&self, hashes: &[u64]) -> usize {
        // SAFETY: the hashes are as many as given; lookups only read the filter.
        unsafe { (self.build.functions.count)(&self.bits(), hashes.as_ptr(), hashes.len()) }
    }

    fn count_branching(&self, hashes: &[u64]) -> usize {
        // SAFETY: as in `count`.
        unsafe { (self.build.functions.count_branching)(&self.bits(), hashes.as_ptr(), hashes.len()) }
    }

    fn insert_keys(&mut self, keys: &Keys) {
        let (bytes, starts, n) = keys.parts();
        // SAFETY: each of the n keys has a start and an end within the bytes; the filter is ours alone.
        unsafe { (self.build.functions.insert_keys)(&self.bits_mut(), bytes.as_ptr(), starts.as_ptr(), n) }
    }

    fn count_keys(&self, keys: &Keys) -> usize {
        let (bytes, starts, n) = keys.parts();
        // SAFETY: each of the n keys has a start and an end within the bytes; lookups only read the filter.
        unsafe { (self.build.functions.count_keys)(&self.bits(), bytes.as_ptr(), starts.as_ptr(), n) }
    }
}

#[cfg(test)]
mod tests {
    use bloomline::mix;

    use super::*;
    use crate::keys::SHAPES;

    #[test]
    fn builds_agree_lose_no_key_and_have_the_published_fpr() {
        if let Some(reason) = WITHOUT {
            eprintln!("skipped: without RocksDB, because {reason}");
            return;
        }
        let keys: Vec<u64> = (0..1_000_000).map(mix).collect();
        let absent: Vec<u64> = (0..4_000_000).map(|i| mix((1 << 40) + i)).collect();
        let answers = BUILDS.iter().map(|&build| {
            assert_eq!(
                [6.0, 8.0, 10.0, 12.0, 16.0, 100.0].map(|bits| build.probes_for(bits)),
                [4, 5, 6, 8, 9, 24]
            );
            let mut filter = RocksDb::new(build, 10 * keys.len() / 8, build.probes_for(10.0));
            filter.insert_all(&keys);
            assert_eq!(filter.count(&keys), keys.len());
            assert_eq!(filter.count_branching(&keys), keys.len());
            let fpr = filter.count(&absent) as f64 / absent.len() as f64;
            assert!((0.0094..0.0099).contains(&fpr), "{fpr}");
            absent.chunks(100).map(|hashes| filter.count(hashes)).collect::<Vec<_>>()
        });
        let answers: Vec<_> = answers.collect();
        assert_eq!(answers.len(), 2);
        assert_eq!(answers[0], answers[1]);
    }

    #[test]
    fn builds_hash_keys_alike() {
        for shape in SHAPES {
            let (keys, absent) = (Keys::new(0..10_000, shape), Keys::new(1 << 40..(1 << 40) + 10_000, shape));
            let positives = BUILDS.iter().map(|&build| {
                let mut filter = RocksDb::new(build, 12_480, 6);
                filter.insert_keys(&keys);
                assert_eq!(filter.count_keys(&keys), 10_000, "{}", shape.name);
                let positives = filter.count_keys(&absent);
                assert!((50..150).contains(&positives), "{}: {positives}", shape.name);
                positives
            });
            assert!(positives.collect::<Vec<_>>().windows(2).all(|two| two[0] == two[1]), "{}", shape.name);
        }
    }
}
