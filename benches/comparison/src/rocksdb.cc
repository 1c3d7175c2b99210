// RocksDB's FastLocalBloom and the hash of its keys, from RocksDB's own headers. Compiled once for each build of
// RocksDB, in a namespace of its own.

#ifdef __AVX2__
#define HAVE_AVX2  // As RocksDB's own build does for such a CPU.
#endif

#include <cmath>
#include <new>

#include "loops.h"
#include "util/bloom_impl.h"

namespace {

using namespace ROCKSDB_NAMESPACE;

struct RocksDb : Loops<RocksDb> {
  RocksDb(size_t bytes, double bits_per_key, int k)
      : data(static_cast<char *>(operator new(bytes, kLine))), size_bytes(static_cast<uint32_t>(bytes)) {
    probes = k ? k : FastLocalBloomImpl::ChooseNumProbes(static_cast<int>(std::lround(bits_per_key * 1000)));
    memset(data, 0, bytes);
  }

  ~RocksDb() { operator delete(data, kLine); }

  void Insert(uint64_t hash) {
    FastLocalBloomImpl::AddHash(Lower32of64(hash), Upper32of64(hash), size_bytes, probes, data);
  }

  // Prefetches eight hashes ahead, as RocksDB does when it builds a filter.
  void InsertAll(const uint64_t *hashes, size_t n) {
    constexpr size_t kAhead = 8;
    for (size_t i = 0; i < n; i++) {
      if (i + kAhead < n) {
        uint32_t offset;
        FastLocalBloomImpl::PrepareHash(Lower32of64(hashes[i + kAhead]), size_bytes, data, &offset);
      }
      Insert(hashes[i]);
    }
  }

  bool Contains(uint64_t hash) const {
    return FastLocalBloomImpl::HashMayMatch(Lower32of64(hash), Upper32of64(hash), size_bytes, probes, data);
  }

  uint64_t HashOf(const char *key, size_t n) const { return GetSliceHash64(Slice(key, n)); }

  static constexpr std::align_val_t kLine{64};
  char *data;
  uint32_t size_bytes;
  int probes;
};

}  // namespace

extern "C" const Functions FUNCTIONS[] = {functions<RocksDb>()};
