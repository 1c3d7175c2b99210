/* Filter policies for LevelDB, on top of bloomline.h: leveldb_filterpolicy_t for C, a leveldb::FilterPolicy for C++.
 * Link with bloomline and leveldb.
 *
 * Databases written with another policy stay readable: LevelDB uses a table's filters only if they carry the name of
 * the current policy.
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
                       : (char *)bloomline_policy_create_filter((const bloomline_policy_t *)policy,
                                                                (const void *const *)keys, lengths, (size_t)n,
                                                                filter_length);
  /* LevelDB expects no failure here, and frees the filter with free. One byte is not a filter, so lookups return true.
   */
  if (filter == NULL && (filter = (char *)malloc(1)) != NULL) {
    *filter = 0;
    *filter_length = 1;
  }
  return filter;
}

static inline uint8_t bloomline_leveldb_key_may_match(void *policy, const char *key, size_t length,
                                                      const char *filter, size_t filter_length) {
  return bloomline_policy_key_may_match((const bloomline_policy_t *)policy, filter, filter_length, key, length);
}

static inline const char *bloomline_leveldb_name(void *policy) {
  (void)policy;
  return bloomline_policy_name();
}

/**
 * Wraps `policy` as a filter policy for leveldb_options_set_filter_policy, and takes ownership of it. You may still
 * call bloomline_policy_unusable_filters on `policy`. After closing the database, free both with
 * leveldb_filterpolicy_destroy. Returns null if `policy` is null.
 */
static inline leveldb_filterpolicy_t *bloomline_leveldb_filterpolicy_from(bloomline_policy_t *policy) {
  if (policy == NULL) return NULL;
  return leveldb_filterpolicy_create(policy, bloomline_leveldb_destroy, bloomline_leveldb_create_filter,
                                     bloomline_leveldb_key_may_match, bloomline_leveldb_name);
}

/**
 * Creates a filter policy for leveldb_options_set_filter_policy, with `bits_per_key` for each distinct key: 10 for 1%
 * false positives. After closing the database, free it with leveldb_filterpolicy_destroy.
 *
 * Returns null if `bits_per_key` is not in (0, 64]; bloomline_last_error then describes the error.
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
 * A filter policy for leveldb::Options::filter_policy. It must outlive the databases that use it. Any number of threads
 * may use it at once.
 *
 * If LevelDB is built without RTTI, as its own CMake files do, compile this header with -fno-rtti as well.
 */
class LevelDBFilterPolicy : public leveldb::FilterPolicy {
 public:
  /**
   * Creates filters of `bits_per_key` for each distinct key: 10 for 1% false positives. Throws std::invalid_argument
   * if `bits_per_key` is not in (0, 64]; if exceptions are disabled, prints the error and aborts.
   */
  explicit LevelDBFilterPolicy(double bits_per_key) : policy_(bloomline_policy_with_bits_per_key(bits_per_key)) {
    Require(policy_ != nullptr);
  }

  /**
   * Creates filters of at most `most_modules` modules: see bloomline_policy_set_most_modules. Reports a number that is
   * not 1 to 16 as above.
   */
  LevelDBFilterPolicy(double bits_per_key, size_t most_modules) : LevelDBFilterPolicy(bits_per_key) {
    Require(bloomline_policy_set_most_modules(policy_, most_modules) == BLOOMLINE_OK);
  }

  LevelDBFilterPolicy(const LevelDBFilterPolicy &) = delete;
  LevelDBFilterPolicy &operator=(const LevelDBFilterPolicy &) = delete;

  ~LevelDBFilterPolicy() override { bloomline_policy_free(policy_); }

  const char *Name() const override { return bloomline_policy_name(); }

  void CreateFilter(const leveldb::Slice *keys, int n, std::string *dst) const override {
    const size_t n_keys = n > 0 ? static_cast<size_t>(n) : 0;
    const void *few_starts[kFew];
    size_t few_lengths[kFew];
    std::vector<const void *> many_starts(n_keys > kFew ? n_keys : 0);
    std::vector<size_t> many_lengths(many_starts.size());
    const void **starts = n_keys > kFew ? many_starts.data() : few_starts;
    size_t *lengths = n_keys > kFew ? many_lengths.data() : few_lengths;
    for (size_t i = 0; i < n_keys; ++i) {
      starts[i] = keys[i].data();
      lengths[i] = keys[i].size();
    }
    size_t length = 0;
    const std::unique_ptr<void, decltype(&bloomline_free)> filter(
        n < 0 ? nullptr : bloomline_policy_create_filter(policy_, starts, lengths, n_keys, &length), &bloomline_free);
    if (filter != nullptr) {
      dst->append(static_cast<const char *>(filter.get()), length);
    } else {
      // LevelDB expects no failure here. One byte is not a filter, so lookups return true.
      dst->push_back('\0');
    }
  }

  bool KeyMayMatch(const leveldb::Slice &key, const leveldb::Slice &filter) const override {
    return bloomline_policy_key_may_match(policy_, filter.data(), filter.size(), key.data(), key.size());
  }

  /** How many lookups got bytes that are not a filter, and so could not save a read: see bloomline.h. */
  uint64_t unusable_filters() const { return bloomline_policy_unusable_filters(policy_); }

 private:
  static void Require(bool is_valid) {
    if (is_valid) return;
#if defined(__cpp_exceptions) || defined(__EXCEPTIONS) || defined(_CPPUNWIND)
    throw std::invalid_argument(bloomline_last_error());
#else
    std::fprintf(stderr, "bloomline: %s\n", bloomline_last_error());
    std::abort();
#endif
  }

  // LevelDB creates filters of tens of keys: for those, arrays on the stack save allocations.
  static constexpr size_t kFew = 256;

  bloomline_policy_t *const policy_;
};

}  // namespace bloomline
#endif /* __cplusplus */

#endif /* BLOOMLINE_LEVELDB_H */
