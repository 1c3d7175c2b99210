/* Filter policies for LevelDB, on top of bloomline.h: leveldb_filterpolicy_t for C, a leveldb::FilterPolicy for C++.
 * Link with bloomline and leveldb.
 *
 * Databases written with another policy stay readable: LevelDB asks a table's filters only where their policy's name is
 * that of its own.
 */
#ifndef BLOOMLINE_LEVELDB_H
#define BLOOMLINE_LEVELDB_H

#include <leveldb/c.h>
#include <stdlib.h>

#include "bloomline.h"

#ifdef __cplusplus
extern "C" {
#endif

static inline void bloomline_leveldb_destroy(void *policy) {
  bloomline_policy_free((bloomline_policy_t *)policy);
}

static inline char *bloomline_leveldb_create_filter(void *policy, const char *const *keys, const size_t *lengths,
                                                    int n, size_t *filter_length) {
  char *filter = n < 0 ? NULL
                       : bloomline_policy_create_filter((const bloomline_policy_t *)policy, keys, lengths,
                                                        (size_t)n, filter_length);
  /* LevelDB knows no failure here. One byte is no filter, so lookups answer true. */
  if (filter == NULL && (filter = (char *)malloc(1)) != NULL) {
    *filter = 0;
    *filter_length = 1;
  }
  return filter;
}

static inline uint8_t bloomline_leveldb_key_may_match(void *policy, const char *key, size_t length,
                                                      const char *filter, size_t filter_length) {
  return bloomline_policy_key_may_match((const bloomline_policy_t *)policy, key, length, filter, filter_length);
}

static inline const char *bloomline_leveldb_name(void *policy) {
  (void)policy;
  return bloomline_policy_name();
}

/**
 * A filter policy for leveldb_options_set_filter_policy that takes over `policy`, which may still be asked for
 * bloomline_policy_unusable_filters. leveldb_filterpolicy_destroy frees both, after the database is closed. Null for
 * null.
 */
static inline leveldb_filterpolicy_t *bloomline_leveldb_filterpolicy_from(bloomline_policy_t *policy) {
  if (policy == NULL) return NULL;
  return leveldb_filterpolicy_create(policy, bloomline_leveldb_destroy, bloomline_leveldb_create_filter,
                                     bloomline_leveldb_key_may_match, bloomline_leveldb_name);
}

/**
 * A filter policy for leveldb_options_set_filter_policy, of `bits_per_key` for each distinct key: 10 for 1 % false
 * positives. leveldb_filterpolicy_destroy frees it, after the database is closed.
 *
 * Null if `bits_per_key` is not above 0 and at most 64; bloomline_last_error then says so.
 */
static inline leveldb_filterpolicy_t *bloomline_leveldb_filterpolicy_create(double bits_per_key) {
  return bloomline_leveldb_filterpolicy_from(bloomline_policy_with_bits_per_key(bits_per_key));
}

#ifdef __cplusplus
} /* extern "C" */

#include <leveldb/filter_policy.h>
#include <leveldb/slice.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace bloomline {

/**
 * A filter policy for leveldb::Options::filter_policy. It must outlive the databases that use it, any number of threads
 * at once.
 *
 * Where LevelDB is built without type information, as by its own CMake files, this must be too: -fno-rtti.
 */
class LevelDBFilterPolicy : public leveldb::FilterPolicy {
 public:
  /**
   * Filters of `bits_per_key` for each distinct key: 10 for 1 % false positives. Throws std::invalid_argument if
   * `bits_per_key` is not above 0 and at most 64; without exceptions, prints that and aborts.
   */
  explicit LevelDBFilterPolicy(double bits_per_key) : policy_(bloomline_policy_with_bits_per_key(bits_per_key)) {
    if (policy_ != nullptr) return;
#if defined(__cpp_exceptions) || defined(__EXCEPTIONS) || defined(_CPPUNWIND)
    throw std::invalid_argument(bloomline_last_error());
#else
    std::fprintf(stderr, "bloomline: %s\n", bloomline_last_error());
    std::abort();
#endif
  }

  LevelDBFilterPolicy(const LevelDBFilterPolicy &) = delete;
  LevelDBFilterPolicy &operator=(const LevelDBFilterPolicy &) = delete;

  ~LevelDBFilterPolicy() override { bloomline_policy_free(policy_); }

  const char *Name() const override { return bloomline_policy_name(); }

  void CreateFilter(const leveldb::Slice *keys, int n, std::string *dst) const override {
    const size_t n_keys = n > 0 ? static_cast<size_t>(n) : 0;
    const char *few_starts[kFew];
    size_t few_lengths[kFew];
    std::vector<const char *> many_starts(n_keys > kFew ? n_keys : 0);
    std::vector<size_t> many_lengths(many_starts.size());
    const char **starts = n_keys > kFew ? many_starts.data() : few_starts;
    size_t *lengths = n_keys > kFew ? many_lengths.data() : few_lengths;
    for (size_t i = 0; i < n_keys; ++i) {
      starts[i] = keys[i].data();
      lengths[i] = keys[i].size();
    }
    size_t length = 0;
    const std::unique_ptr<char, decltype(&std::free)> filter(
        n < 0 ? nullptr : bloomline_policy_create_filter(policy_, starts, lengths, n_keys, &length), &std::free);
    if (filter != nullptr) {
      dst->append(filter.get(), length);
    } else {
      // LevelDB knows no failure here. One byte is no filter, so lookups answer true.
      dst->push_back('\0');
    }
  }

  bool KeyMayMatch(const leveldb::Slice &key, const leveldb::Slice &filter) const override {
    return bloomline_policy_key_may_match(policy_, key.data(), key.size(), filter.data(), filter.size());
  }

  /** How many lookups met bytes that are no filter, and so could spare nothing: see bloomline.h. */
  uint64_t unusable_filters() const { return bloomline_policy_unusable_filters(policy_); }

 private:
  // LevelDB makes filters of tens of keys: they need no memory of their own.
  static constexpr size_t kFew = 256;

  bloomline_policy_t *const policy_;
};

}  // namespace bloomline
#endif /* __cplusplus */

#endif /* BLOOMLINE_LEVELDB_H */
