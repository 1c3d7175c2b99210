// The loops of the contenders in C++, like those of the contenders in Rust in filter.rs.
#pragma once

#include <cstddef>
#include <cstdint>

/// A filter's class derives from it, and has a constructor with the parameters of `make`, `Insert`, `Contains` and
/// `HashOf`.
template <typename Filter>
struct Loops {
  void InsertAll(const uint64_t *hashes, size_t n) {
    for (size_t i = 0; i < n; i++) filter().Insert(hashes[i]);
  }

  template <bool kBranching>
  size_t Count(const uint64_t *hashes, size_t n) {
    size_t count = 0;
    for (size_t i = 0; i < n; i++) count += Found<kBranching>(filter().Contains(hashes[i]), hashes[i]);
    return count;
  }

  template <bool kBranching>
  static size_t Found(bool found, uint64_t hash) {
    if (kBranching && found) asm volatile("" : : "r"(hash));  // Work that needs a branch.
    return found;
  }

  Filter &filter() { return *static_cast<Filter *>(this); }
};

// The same order as in cpp.rs.
struct Functions {
  // Makes an empty filter. With k = 0, the library chooses k for the bits per key.
  void *(*make)(size_t size_bytes, double bits_per_key, int k);
  void (*free)(void *filter);
  void (*insert)(void *filter, const uint64_t *hashes, size_t n);
  size_t (*count)(void *filter, const uint64_t *hashes, size_t n);
  size_t (*count_branching)(void *filter, const uint64_t *hashes, size_t n);
  // Key i is the bytes at the offsets starts[i] to starts[i + 1].
  void (*insert_keys)(void *filter, const char *bytes, const uint32_t *starts, size_t n);
  size_t (*count_keys)(void *filter, const char *bytes, const uint32_t *starts, size_t n);
};

template <typename Filter>
constexpr Functions functions() {
  return {
      [](size_t size_bytes, double bits_per_key, int k) -> void * { return new Filter(size_bytes, bits_per_key, k); },
      [](void *filter) { delete static_cast<Filter *>(filter); },
      [](void *filter, const uint64_t *hashes, size_t n) { static_cast<Filter *>(filter)->InsertAll(hashes, n); },
      [](void *filter, const uint64_t *hashes, size_t n) {
        return static_cast<Filter *>(filter)->template Count<false>(hashes, n);
      },
      [](void *filter, const uint64_t *hashes, size_t n) {
        return static_cast<Filter *>(filter)->template Count<true>(hashes, n);
      },
      [](void *erased, const char *bytes, const uint32_t *starts, size_t n) {
        Filter &filter = *static_cast<Filter *>(erased);
        for (size_t i = 0; i < n; i++) filter.Insert(filter.HashOf(bytes + starts[i], starts[i + 1] - starts[i]));
      },
      [](void *erased, const char *bytes, const uint32_t *starts, size_t n) {
        Filter &filter = *static_cast<Filter *>(erased);
        size_t count = 0;
        for (size_t i = 0; i < n; i++) {
          count += filter.Contains(filter.HashOf(bytes + starts[i], starts[i + 1] - starts[i]));
        }
        return count;
      },
  };
}
