//! RocksDB's own filter since format version 5, which is C++ that build.rs compiles.

use std::cell::UnsafeCell;

use crate::filter::{Filter, Line};
use crate::keys::Keys;

/// Built for this CPU, as RocksDB's Makefile does it.
pub const ROCKSDB: &str = "RocksDB";
/// Built as Debian does it, for every CPU of the architecture.
pub const ROCKSDB_DEBIAN: &str = "RocksDB (Debian)";

/// The message if RocksDB is not measured.
pub const WITHOUT: Option<&str> = option_env!("WITHOUT_ROCKSDB");

/// The functions of rocksdb.cc, in the same order.
#[repr(C)]
struct Functions {
    probes: extern "C" fn(i32) -> i32,
    insert: ByHash,
    count: ByHash,
    count_branching: ByHash,
    insert_keys: ByKey,
    count_keys: ByKey,
}

/// Given a filter and `usize` hashes.
type ByHash = unsafe extern "C" fn(*const Bits, *const u64, usize) -> usize;
/// Given a filter and `usize` keys, as their bytes, and the offsets at which each starts and the last ends.
type ByKey = unsafe extern "C" fn(*const Bits, *const u8, *const u32, usize) -> usize;

#[repr(C)]
struct Bits {
    data: *mut Line,
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
    /// Written to by C++ in inserts, which have `&mut self`.
    lines: Vec<UnsafeCell<Line>>,
    probes: u32,
}

impl RocksDb {
    pub fn new(build: Build, size_bytes: usize, probes: u32) -> Self {
        assert!((64..=u32::MAX as usize).contains(&size_bytes), "64 bytes to 4 GiB");
        let lines = (0..size_bytes / 64).map(|_| UnsafeCell::new(Line([0; 8]))).collect();
        Self { build, lines, probes }
    }

    fn bits(&self) -> Bits {
        let data = self.lines.as_ptr().cast_mut().cast();
        Bits { data, size_bytes: self.byte_len() as u32, probes: self.probes as i32 }
    }

    fn by_hash(&self, function: ByHash, hashes: &[u64]) -> usize {
        // SAFETY: the hashes are as many as given. RocksDB accesses only the filter's bytes, which `lines` owns, and
        // writes only when it inserts, which the callers do with `&mut self`.
        unsafe { function(&self.bits(), hashes.as_ptr(), hashes.len()) }
    }

    fn by_key(&self, function: ByKey, keys: &Keys) -> usize {
        let (bytes, starts) = keys.parts();
        // SAFETY: as in `by_hash`, and each key has a start and an end within the bytes.
        unsafe { function(&self.bits(), bytes.as_ptr(), starts.as_ptr(), starts.len() - 1) }
    }
}

impl Filter for RocksDb {
    fn byte_len(&self) -> usize {
        self.lines.len() * 64
    }

    fn insert_all(&mut self, hashes: &[u64]) {
        self.by_hash(self.build.functions.insert, hashes);
    }

    fn count(&self, hashes: &[u64], with_branch: bool) -> usize {
        let Functions { count, count_branching, .. } = self.build.functions;
        self.by_hash(if with_branch { *count_branching } else { *count }, hashes)
    }

    fn insert_keys(&mut self, keys: &Keys) {
        self.by_key(self.build.functions.insert_keys, keys);
    }

    fn count_keys(&self, keys: &Keys) -> usize {
        self.by_key(self.build.functions.count_keys, keys)
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
            let probes = [6.0, 8.0, 10.0, 12.0, 16.0, 100.0].map(|bits| build.probes_for(bits));
            assert_eq!(probes, [4, 5, 6, 8, 9, 24]);
            let mut filter = RocksDb::new(build, 10 * keys.len() / 8, build.probes_for(10.0));
            filter.insert_all(&keys);
            assert_eq!([false, true].map(|branch| filter.count(&keys, branch)), [keys.len(); 2]);
            let fpr = filter.count(&absent, false) as f64 / absent.len() as f64;
            assert!((0.0094..0.0099).contains(&fpr), "{fpr}");
            absent.chunks(100).map(|hashes| filter.count(hashes, false)).collect::<Vec<_>>()
        });
        let [native, debian] = answers.collect::<Vec<_>>().try_into().expect("two builds");
        assert_eq!(native, debian);
    }

    #[test]
    fn builds_hash_keys_alike() {
        for shape in &SHAPES {
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
