// RocksDB's FastLocalBloom and the hash of its keys, from RocksDB's own headers, in loops like those of the Rust
// contenders. Compiled once for each build of RocksDB, in a namespace of its own.

#ifdef __AVX2__
#define HAVE_AVX2  // As RocksDB's own build does for such a CPU.
#endif

#include "util/bloom_impl.h"

namespace {

using namespace ROCKSDB_NAMESPACE;

struct Filter {
  char* data;
  uint32_t size_bytes;
  int probes;
};

int Probes(int millibits_per_key) { return FastLocalBloomImpl::ChooseNumProbes(millibits_per_key); }

inline void InsertHash(const Filter& filter, uint64_t hash) {
  FastLocalBloomImpl::AddHash(Lower32of64(hash), Upper32of64(hash), filter.size_bytes, filter.probes, filter.data);
}

inline bool ContainsHash(const Filter& filter, uint64_t hash) {
  return FastLocalBloomImpl::HashMayMatch(Lower32of64(hash), Upper32of64(hash), filter.size_bytes, filter.probes,
                                          filter.data);
}

// Prefetches eight hashes ahead, as RocksDB does when it builds a filter.
size_t Insert(const Filter* filter, const uint64_t* hashes, size_t n) {
  constexpr size_t kAhead = 8;
  for (size_t i = 0; i < n; i++) {
    if (i + kAhead < n) {
      uint32_t offset;
      FastLocalBloomImpl::PrepareHash(Lower32of64(hashes[i + kAhead]), filter->size_bytes, filter->data, &offset);
    }
    InsertHash(*filter, hashes[i]);
  }
  return n;
}

size_t Count(const Filter* filter, const uint64_t* hashes, size_t n) {
  size_t count = 0;
  for (size_t i = 0; i < n; i++) count += ContainsHash(*filter, hashes[i]);
  return count;
}

size_t CountBranching(const Filter* filter, const uint64_t* hashes, size_t n) {
  size_t count = 0;
  for (size_t i = 0; i < n; i++) {
    if (ContainsHash(*filter, hashes[i])) {
      asm volatile("" : : "r"(hashes[i]));  // Work that needs a branch.
      count++;
    }
  }
  return count;
}

/// The hash of the key number i of those that lie end to end in `bytes`.
inline uint64_t HashOf(const char* bytes, const uint32_t* starts, size_t i) {
  return GetSliceHash64(Slice(bytes + starts[i], starts[i + 1] - starts[i]));
}

size_t InsertKeys(const Filter* filter, const char* bytes, const uint32_t* starts, size_t n) {
  for (size_t i = 0; i < n; i++) InsertHash(*filter, HashOf(bytes, starts, i));
  return n;
}

size_t CountKeys(const Filter* filter, const char* bytes, const uint32_t* starts, size_t n) {
  size_t count = 0;
  for (size_t i = 0; i < n; i++) count += ContainsHash(*filter, HashOf(bytes, starts, i));
  return count;
}

}  // namespace

// The same order as in rocksdb.rs.
struct Functions {
  decltype(&Probes) probes;
  decltype(&Insert) insert;
  decltype(&Count) count;
  decltype(&CountBranching) count_branching;
  decltype(&InsertKeys) insert_keys;
  decltype(&CountKeys) count_keys;
};

extern "C" const Functions FUNCTIONS = {Probes, Insert, Count, CountBranching, InsertKeys, CountKeys};
