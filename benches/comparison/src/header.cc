// bloomline's C++ header, by each way to look up. Compiled once for each set of flags, with the namespace under another
// name, because the linker keeps only one of several functions of the same name.

#include <algorithm>
#include <bloomline/bloomline.hpp>
#include <string_view>
#include <utility>

#include "loops.h"

namespace {

struct Base {
  Base(size_t size_bytes, double bits_per_key, int k)
      : bloom(std::move(*bloomline::filter::with_sizing(Size(size_bytes, bits_per_key, k)))) {}

  static bloomline::sizing Size(size_t size_bytes, double bits_per_key, unsigned k) {
    const auto keys = static_cast<uint64_t>(8.0 * static_cast<double>(size_bytes) / bits_per_key);
    const auto chosen = *bloomline::sizing::for_bits_per_key(keys, bits_per_key);
    // Rounding may have chosen a block more than there are.
    return *bloomline::sizing::of(size_bytes / 64, k ? k : chosen.k(), k ? 1 : chosen.n_modules());
  }

  [[gnu::always_inline]] void Insert(uint64_t hash) { bloom.insert_hash(hash); }
  [[gnu::always_inline]] bool Contains(uint64_t hash) const { return bloom.contains_hash(hash); }
  uint64_t HashOf(const char *key, size_t n) const { return bloom.hash_key(std::string_view(key, n)); }

  bloomline::filter bloom;
};

struct Inlined : Base, Loops<Inlined> {
  using Base::Base;
};

// Not inlined, so that no lookup shares the work that a loop does once.
struct Call : Base, Loops<Call> {
  using Base::Base;
  [[gnu::noinline]] bool Contains(uint64_t hash) const { return bloom.contains_hash(hash); }
};

struct Batch : Base, Loops<Batch> {
  using Base::Base;
  static constexpr size_t kBatch = 1024;  // As in filter.rs.

  void InsertAll(const uint64_t *hashes, size_t n) {
    for (size_t i = 0; i < n; i += kBatch) bloom.insert_batch(hashes + i, std::min(kBatch, n - i));
  }

  template <bool kBranching>
  size_t Count(const uint64_t *hashes, size_t n) {
    bool found[kBatch];
    size_t count = 0;
    for (size_t i = 0; i < n; i += kBatch) {
      const size_t size = std::min(kBatch, n - i);
      bloom.contains_batch(hashes + i, size, found);
      // Sums bytes, which the compiler vectorizes, so that little besides the lookups is timed.
      for (size_t start = 0; start < size; start += 128) {
        uint8_t sum = 0;
        for (size_t j = start; j < std::min(start + 128, size); j++) sum += Found<kBranching>(found[j], hashes[i + j]);
        count += sum;
      }
    }
    return count;
  }
};

// Lookups in compact bytes that are opened for each, and in a view that is kept. Opaque to the compiler, so that
// nothing is done once before the loop.
size_t CountOpened(const void *bytes, size_t size, const uint64_t *hashes, size_t n) {
  size_t count = 0;
  for (size_t i = 0; i < n; i++) {
    asm volatile("" : "+r"(bytes), "+r"(size));
    count += bloomline::filter_view::compact_contains_hash({bytes, size}, hashes[i]);
  }
  return count;
}

size_t CountKept(const void *bytes, size_t size, const uint64_t *hashes, size_t n) {
  const auto opened = bloomline::filter_view::from_compact({bytes, size});
  const auto *view = &*opened;
  size_t count = 0;
  for (size_t i = 0; i < n; i++) {
    asm volatile("" : "+r"(view));
    count += view->contains_hash(hashes[i]);
  }
  return count;
}

}  // namespace

extern "C" const Functions FUNCTIONS[] = {functions<Inlined>(), functions<Call>(), functions<Batch>()};
extern "C" decltype(&CountOpened) const OPENED[] = {CountOpened, CountKept};
