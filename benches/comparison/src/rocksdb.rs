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
