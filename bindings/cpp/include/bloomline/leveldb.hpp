// A filter policy for LevelDB, on top of bloomline.hpp. Link with leveldb.
//
// Its filters have the name and the bytes of LevelDBFilterPolicy in the C package's leveldb.h, so that a database can
// change between the two without a rebuild. Databases written with another policy stay readable, because LevelDB uses a
// table's filters only if they carry the name of the current policy.
//
// SPDX-License-Identifier: MIT OR Apache-2.0
#ifndef BLOOMLINE_LEVELDB_HPP
#define BLOOMLINE_LEVELDB_HPP

#include <leveldb/filter_policy.h>
#include <leveldb/slice.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "bloomline.hpp"

namespace bloomline {
inline namespace v0_1 {

/// For leveldb::Options::filter_policy. It must outlive the databases that use it. Any number of threads may use it at
/// once.
///
/// If LevelDB is built without RTTI, as its own CMake files do, compile this header with -fno-rtti as well.
class leveldb_filter_policy : public leveldb::FilterPolicy {
 public:
  /// Creates filters of `bits_per_key` bits for each distinct key: 10 for 1% false positives. If `bits_per_key` is not
  /// in (0, 64], throws a `std::runtime_error`, or prints the error and aborts where exceptions are disabled.
  explicit leveldb_filter_policy(double bits_per_key)
      : empty_(filter_builder::with_bits_per_key(bits_per_key).value()) {}

  /// Creates filters of at most `most_modules` modules, 1 to 16. Pass 1 for a database that mostly asks for keys that
  /// it has, so that each lookup reads one cache line. The policy still reads filters of any number of modules.
  leveldb_filter_policy(double bits_per_key, unsigned most_modules)
      : empty_(filter_builder::with_bits_per_key(bits_per_key, most_modules).value()) {}

  const char *Name() const override { return policy_name; }

  void CreateFilter(const leveldb::Slice *keys, int n, std::string *dst) const override {
    filter_builder builder = empty_;
    builder.reserve(n > 0 ? static_cast<size_t>(n) : 0);
    for (int i = 0; i < n; ++i) builder.insert(keys[i]);
    // LevelDB expects no failure here. One byte is not a filter, so lookups return true.
    if (n < 0 || builder.finish_compact(*dst)) dst->push_back('\0');
  }

  bool KeyMayMatch(const leveldb::Slice &key, const leveldb::Slice &filter) const override {
    if (!filter_view::compact_contains_hash(filter, hash_key(key))) return false;
    if (!filter_view::is_compact(filter)) unusable_filters_.fetch_add(1, std::memory_order_relaxed);
    return true;
  }

  /// How many lookups got bytes that are not a filter, and so could not save a read. If it is above 0, some filters are
  /// damaged, are of a different version, or could not be built for lack of memory.
  uint64_t unusable_filters() const { return unusable_filters_.load(std::memory_order_relaxed); }

 private:
  const filter_builder empty_;
  mutable std::atomic<uint64_t> unusable_filters_{0};
};

}  // namespace v0_1
}  // namespace bloomline
#endif
