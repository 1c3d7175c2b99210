//! Contenders in C++, which build.rs compiles with the loops of loops.h.

use std::ffi::c_void;

use crate::filter::Filter;
use crate::keys::Keys;

/// RocksDB's own filter since format version 5, built for this CPU, as RocksDB's Makefile does it.
pub const ROCKSDB: &str = "RocksDB";
/// Built as Debian does it, for every CPU of the architecture.
pub const ROCKSDB_DEBIAN: &str = "RocksDB (Debian)";
/// bloomline's C++ header, built for this CPU.
pub const HEADER: &str = "C++ header";
/// Built for every CPU of the architecture, so it chooses the kernel at run time.
pub const HEADER_ANY: &str = "C++ header, any CPU";
/// bloomline's C library.
pub const C_LIBRARY: &str = "C library";

/// What is not measured, and why.
pub const WITHOUT: Option<&str> = option_env!("WITHOUT_CPP");

/// The functions of loops.h, in the same order.
#[repr(C)]
pub struct Functions {
    make: extern "C" fn(usize, f64, i32) -> *mut c_void,
    free: unsafe extern "C" fn(*mut c_void),
    insert: ByHash<()>,
    count: ByHash<usize>,
    count_branching: ByHash<usize>,
    insert_keys: ByKey<()>,
    count_keys: ByKey<usize>,
}

/// Given a filter and `usize` hashes.
type ByHash<R> = unsafe extern "C" fn(*mut c_void, *const u64, usize) -> R;
/// Given a filter and `usize` keys, as their bytes, and the offsets at which each starts and the last ends.
type ByKey<R> = unsafe extern "C" fn(*mut c_void, *const u8, *const u32, usize) -> R;
/// Given a compact filter of `usize` bytes and `usize` hashes.
type InBytes = unsafe extern "C" fn(*const u8, usize, *const u64, usize) -> usize;

#[allow(dead_code, reason = "not all are compiled")]
unsafe extern "C" {
    safe static rocksdb_native: [Functions; 1];
    safe static rocksdb_debian: [Functions; 1];
    safe static boost_native: [Functions; 2];
    safe static header_native: [Functions; 3];
    safe static header_any: [Functions; 3];
    safe static capi: [Functions; 2];
    safe static header_native_opened: [InBytes; 2];
    safe static header_any_opened: [InBytes; 2];
    safe static capi_opened: [InBytes; 2];
}

/// The contenders that were compiled, of each source.
pub static CONTENDERS: &[&[(&str, &Functions)]] = &[
    #[cfg(rocksdb)]
    &[(ROCKSDB, &rocksdb_native[0]), (ROCKSDB_DEBIAN, &rocksdb_debian[0])],
    #[cfg(boost)]
    &[("Boost.Bloom, 64 bytes", &boost_native[0]), ("Boost.Bloom, 32 bytes", &boost_native[1])],
    #[cfg(header)]
    &[
        (HEADER, &header_native[0]),
        ("C++ header, by a call", &header_native[1]),
        ("C++ header, batch", &header_native[2]),
        (HEADER_ANY, &header_any[0]),
        ("C++ header, any CPU, by a call", &header_any[1]),
        ("C++ header, any CPU, batch", &header_any[2]),
    ],
    #[cfg(capi)]
    &[(C_LIBRARY, &capi[0]), ("C library, batch", &capi[1])],
];

/// The builds of the header, and the C library, each with loops over lookups in bytes that are opened for each, and that are kept open.
pub static OPENED: &[(&str, &[InBytes; 2])] = &[
    #[cfg(header)]
    (HEADER, &header_native_opened),
    #[cfg(header)]
    (HEADER_ANY, &header_any_opened),
    #[cfg(capi)]
    (C_LIBRARY, &capi_opened),
];

/// The number of hashes found in a compact filter.
pub fn count_in(count: InBytes, bytes: &[u8], hashes: &[u64]) -> usize {
    // SAFETY: both are as long as given.
    unsafe { count(bytes.as_ptr(), bytes.len(), hashes.as_ptr(), hashes.len()) }
}

pub struct Cpp {
    functions: &'static Functions,
    filter: *mut c_void,
    size_bytes: usize,
}

impl Cpp {
    /// With as many probes as the library chooses if `k` is `None`.
    pub fn new(functions: &'static Functions, size_bytes: usize, bits_per_key: f64, k: Option<u32>) -> Self {
        assert!((64..=u32::MAX as usize).contains(&size_bytes), "64 bytes to 4 GiB");
        let filter = (functions.make)(size_bytes, bits_per_key, k.map_or(0, |k| k as i32));
        Self { functions, filter, size_bytes }
    }

    fn by_hash<R>(&self, function: ByHash<R>, hashes: &[u64]) -> R {
        // SAFETY: `make` returned the filter, and the hashes are as many as given. Callers that insert have
        // `&mut self`.
        unsafe { function(self.filter, hashes.as_ptr(), hashes.len()) }
    }

    fn by_key<R>(&self, function: ByKey<R>, keys: &Keys) -> R {
        let (bytes, starts) = keys.parts();
        // SAFETY: as in `by_hash`, and each key has a start and an end within the bytes.
        unsafe { function(self.filter, bytes.as_ptr(), starts.as_ptr(), starts.len() - 1) }
    }
}

impl Drop for Cpp {
    fn drop(&mut self) {
        // SAFETY: `make` returned it.
        unsafe { (self.functions.free)(self.filter) }
    }
}

impl Filter for Cpp {
    fn byte_len(&self) -> usize {
        self.size_bytes
    }

    fn insert_all(&mut self, hashes: &[u64]) {
        self.by_hash(self.functions.insert, hashes);
    }

    fn count(&self, hashes: &[u64], with_branch: bool) -> usize {
        let Functions { count, count_branching, .. } = self.functions;
        self.by_hash(if with_branch { *count_branching } else { *count }, hashes)
    }

    fn insert_keys(&mut self, keys: &Keys) {
        self.by_key(self.functions.insert_keys, keys);
    }

    fn count_keys(&self, keys: &Keys) -> usize {
        self.by_key(self.functions.count_keys, keys)
    }
}
