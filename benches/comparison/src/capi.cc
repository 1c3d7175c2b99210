// bloomline's C library, whose every lookup is a call.

#include <algorithm>
#include <bloomline/bloomline.h>

#include "loops.h"

namespace {

struct Base {
  // With bits per key, the library would choose the size, too.
  Base(size_t size_bytes, double, int k) : bloom(bloomline_filter_with_blocks(size_bytes / 64, k ? k : 6)) {}
  ~Base() { bloomline_filter_free(bloom); }

  void Insert(uint64_t hash) { bloomline_filter_insert_hash(bloom, hash); }
  bool Contains(uint64_t hash) const { return bloomline_filter_contains_hash(bloom, hash); }
  uint64_t HashOf(const char *key, size_t n) const { return bloomline_filter_hash_key(bloom, key, n); }

  bloomline_filter_t *bloom;
};

struct Call : Base, Loops<Call> {
  using Base::Base;
};

struct Batch : Base, Loops<Batch> {
  using Base::Base;
  static constexpr size_t kBatch = 1024;  // As in filter.rs.

  void InsertAll(const uint64_t *hashes, size_t n) {
    for (size_t i = 0; i < n; i += kBatch) bloomline_filter_insert_batch(bloom, hashes + i, std::min(kBatch, n - i));
  }

  template <bool kBranching>
  size_t Count(const uint64_t *hashes, size_t n) {
    bool found[kBatch];
    size_t count = 0;
    for (size_t i = 0; i < n; i += kBatch) {
      const size_t size = std::min(kBatch, n - i);
      bloomline_filter_contains_batch(bloom, hashes + i, size, found);
      for (size_t j = 0; j < size; j++) count += Found<kBranching>(found[j], hashes[i + j]);
    }
    return count;
  }
};

size_t CountOpened(const void *bytes, size_t size, const uint64_t *hashes, size_t n) {
  size_t count = 0;
  for (size_t i = 0; i < n; i++) count += bloomline_compact_contains_hash(bytes, size, hashes[i]);
  return count;
}

size_t CountKept(const void *bytes, size_t size, const uint64_t *hashes, size_t n) {
  bloomline_view_t *view = bloomline_view_from_compact(bytes, size);
  size_t count = 0;
  for (size_t i = 0; i < n; i++) count += bloomline_view_contains_hash(view, hashes[i]);
  bloomline_view_free(view);
  return count;
}

}  // namespace

extern "C" const Functions FUNCTIONS[] = {functions<Call>(), functions<Batch>()};
extern "C" decltype(&CountOpened) const OPENED[] = {CountOpened, CountKept};
