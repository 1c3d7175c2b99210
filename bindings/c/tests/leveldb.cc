// The filter policies in LevelDB itself, the C package's and the C++ header's: they lose no key whatever the database
// does with its tables, their filters save reads, and damage on disk costs time, not keys.
//
//   leveldb [KEYS]      100,000 by default
#include <bloomline/bloomline.h>
#include <bloomline/leveldb.h>
#include <bloomline/leveldb.hpp>
#include <leveldb/db.h>
#include <leveldb/filter_policy.h>
#include <leveldb/options.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <sstream>
#include <thread>

#include "both_policies.h"
#include "leveldb_support.h"

namespace {

// `found` is streamed into the message, after the condition expected.
#define CHECK(condition, found)                                                         \
  do {                                                                                  \
    if (!(condition)) {                                                                 \
      std::ostringstream text;                                                          \
      text << __FILE__ ":" << __LINE__ << ": expected " #condition "; found " << found; \
      throw std::runtime_error(text.str());                                             \
    }                                                                                   \
  } while (false)

constexpr size_t kAllKeys = 100'000;
size_t keys = kAllKeys;

using Policy = std::unique_ptr<const leveldb::FilterPolicy>;
using Database = std::unique_ptr<leveldb::DB>;

Policy bloomline_of(double bits_per_key) { return std::make_unique<BothPolicies>(bits_per_key); }
Policy built_in_of(int bits_per_key) { return Policy(leveldb::NewBloomFilterPolicy(bits_per_key)); }

// Forwards to another policy, and counts the calls.
class Watched : public leveldb::FilterPolicy {
 public:
  explicit Watched(Policy policy) : policy_(std::move(policy)) {}

  const char *Name() const override { return policy_->Name(); }

  void CreateFilter(const leveldb::Slice *keys, int n, std::string *filters) const override {
    policy_->CreateFilter(keys, n, filters);
    std::lock_guard<std::mutex> lock(mutex_);
    for (int i = 1; i < n; ++i) repeats_ += keys[i] == keys[i - 1];
  }

  bool KeyMayMatch(const leveldb::Slice &key, const leveldb::Slice &filter) const override {
    // Copied to memory of exactly their size, so that the sanitizers see reads beyond it.
    const std::vector<char> key_copy(key.data(), key.data() + key.size());
    const std::vector<char> filter_copy(filter.data(), filter.data() + filter.size());
    const bool answer = policy_->KeyMayMatch(leveldb::Slice(key_copy.data(), key_copy.size()),
                                             leveldb::Slice(filter_copy.data(), filter_copy.size()));
    std::lock_guard<std::mutex> lock(mutex_);
    ++queries_;
    matched_ += answer;
    return answer;
  }

  void forget_calls() { queries_ = matched_ = 0; }

  size_t queries() const { return queries_; }
  size_t matched() const { return matched_; }
  // Keys given to filters that already had them.
  size_t repeats() const { return repeats_; }

 private:
  const Policy policy_;
  mutable std::mutex mutex_;
  mutable size_t queries_ = 0, matched_ = 0, repeats_ = 0;
};

leveldb::Options options_of(const leveldb::FilterPolicy *policy) {
  leveldb::Options options;
  options.create_if_missing = true;
  // Small, so that few keys fill several levels of tables.
  options.write_buffer_size = 1 << 20;
  options.filter_policy = policy;
  return options;
}

Database open(const std::string &path, const leveldb::Options &options) {
  leveldb::DB *database = nullptr;
  must(leveldb::DB::Open(options, path, &database));
  return Database(database);
}

Database open(const std::string &path, const leveldb::FilterPolicy *policy) {
  return open(path, options_of(policy));
}

// What a database must contain.
class Model {
 public:
  Model(size_t n_keys, size_t distinct) : versions_(n_keys), distinct_(distinct) {}

  // Each key once, unordered.
  void fill(leveldb::DB *database) {
    for (size_t i = 0; i < versions_.size(); ++i) put(database, i, 1);
  }

  // Puts, overwrites and deletes of keys at random.
  void change(leveldb::DB *database, size_t changes, uint32_t seed) {
    for (size_t change = 1; change <= changes; ++change) {
      const size_t i = mix(mix(seed) + change) % versions_.size();
      if (change % 7 == 0) {
        must(database->Delete({}, key_of(i)));
        versions_[i] = 0;
      } else {
        put(database, i, (seed << 24) + static_cast<uint32_t>(change));
        // Twice in a row, so that a filter gets the key twice.
        if (change % 5 == 0) put(database, i, versions_[i] + (1 << 23));
      }
    }
  }

  void check(leveldb::DB *database) const {
    size_t wrong = 0, first = 0;
    std::string value;
    for (size_t i = 0; i < versions_.size(); ++i) {
      const leveldb::Status status = database->Get({}, key_of(i), &value);
      const bool right = versions_[i] == 0 ? status.IsNotFound() : status.ok() && value == value_at(i);
      if (!right && wrong++ == 0) first = i;
    }
    CHECK(wrong == 0, wrong << " of " << versions_.size() << " keys lost or with another value, key " << first
                            << " first");
  }

  size_t size() const { return versions_.size(); }

 private:
  std::string value_at(size_t i) const { return value_of(i << 32 | versions_[i], 100, distinct_); }

  void put(leveldb::DB *database, size_t i, uint32_t version) {
    versions_[i] = version;
    must(database->Put({}, key_of(i), value_at(i)));
  }

  // 0 where the key is absent.
  std::vector<uint32_t> versions_;
  size_t distinct_;
};

// Gets `n` keys that were never put; none may be found.
void get_missing(leveldb::DB *database, size_t present, size_t n) {
  std::string value;
  for (size_t i = 0; i < n; ++i) {
    const leveldb::Status status = database->Get({}, key_of(present + i), &value);
    CHECK(status.IsNotFound(), status.ToString());
  }
}

std::vector<std::string> new_keys(size_t n, uint64_t first) {
  std::vector<std::string> keys(n);
  for (size_t i = 0; i < n; ++i) keys[i] = key_of(first + i);
  return keys;
}

void survives_changes_and_compactions() {
  const Directory directory;
  const std::string path = directory / "database";
  Watched policy(bloomline_of(10));
  // Values that compress to a half.
  Model model(keys, 50);
  Database database = open(path, &policy);
  model.fill(database.get());
  for (const uint32_t seed : {1, 2}) {
    model.change(database.get(), keys / seed, seed);
    model.check(database.get());
    compact(database.get());
    model.check(database.get());
  }
  database.reset();
  database = open(path, &policy);
  model.check(database.get());
  CHECK(policy.repeats() > 0, "no filter of repeated keys");
  policy.forget_calls();
  get_missing(database.get(), keys, 4 * keys);
  // 1% at most, by 10 bits for each distinct key of a filter, and five standard deviations.
  const double most = 0.01 * static_cast<double>(policy.queries());
  std::printf("  %zu of %zu gets match\n", policy.matched(), policy.queries());
  CHECK(policy.queries() > 3 * keys, policy.queries() << " queries");
  CHECK(policy.matched() < 1.2 * most + 5 * std::sqrt(most), policy.matched() << " matches of " << policy.queries());
}

// The filter that the C functions make, without LevelDB.
std::string direct_filter(const std::vector<std::string> &keys) {
  const std::unique_ptr<bloomline_policy_t, decltype(&bloomline_policy_free)> policy(
      bloomline_policy_with_bits_per_key(10), bloomline_policy_free);
  std::vector<const void *> starts;
  std::vector<size_t> lengths;
  for (const std::string &key : keys) {
    starts.push_back(key.data());
    lengths.push_back(key.size());
  }
  size_t length = 0;
  void *const bytes =
      bloomline_policy_create_filter(policy.get(), starts.data(), lengths.data(), keys.size(), &length);
  const std::unique_ptr<void, decltype(&bloomline_free)> owner(bytes, bloomline_free);
  return std::string(static_cast<const char *>(bytes), length);
}

void appends_to_what_is_there() {
  const Policy policy = bloomline_of(10);
  const std::string before = "earlier filters";
  // Fewer and more keys than it lists on the stack.
  for (const size_t n : {0, 3, 256, 257, 1000}) {
    const std::vector<std::string> some = new_keys(n, 0);
    const std::vector<leveldb::Slice> slices(some.begin(), some.end());
    std::string filters = before;
    policy->CreateFilter(slices.data(), static_cast<int>(n), &filters);
    CHECK(filters == before + direct_filter(some), "another filter than that of the C functions, of " << n << " keys");
    CHECK(filters.size() > before.size(), "nothing appended, which LevelDB may read as a filter of no keys");
    const leveldb::Slice filter(filters.data() + before.size(), filters.size() - before.size());
    for (const leveldb::Slice &key : slices) CHECK(policy->KeyMayMatch(key, filter), key.ToString() << " lost");
    CHECK(!policy->KeyMayMatch("cat", filter), "an absent key");
  }
  CHECK(policy->KeyMayMatch("ant", leveldb::Slice()), "bytes that are not a filter hide a key");
  const leveldb::Slice key = "ant";
  std::string of_no_number;
  policy->CreateFilter(&key, -1, &of_no_number);
  CHECK(!of_no_number.empty() && policy->KeyMayMatch(key, of_no_number), "a filter of -1 keys hides a key");
}

// A filter of several modules has one byte more after its blocks.
template <class Either>
void limits_modules() {
  const std::vector<std::string> many = new_keys(1000, 0);
  const std::vector<leveldb::Slice> slices(many.begin(), many.end());
  const auto size = [&](const leveldb::FilterPolicy &policy) {
    std::string filter;
    policy.CreateFilter(slices.data(), 1000, &filter);
    return filter.size();
  };
  CHECK(size(Either(20)) % 64 == 2, "not several modules");
  CHECK(size(Either(20, 1)) % 64 == 1, "not one module");
  std::string message = "no exception";
  try {
    Either(20, 17);
  } catch (const std::exception &error) {
    message = error.what();
  }
  CHECK(message.find("not 17") != std::string::npos, message);
}

// LevelDB's test `VaryingLengths` allows 40.
void takes_at_most_65_bytes_above_10_bits_per_key() {
  const Policy policy = bloomline_of(10);
  const std::vector<std::string> many = new_keys(2000, 0);
  const std::vector<leveldb::Slice> slices(many.begin(), many.end());
  int most = 0;
  for (int n = 1; n <= 2000; ++n) {
    std::string filter;
    policy->CreateFilter(slices.data(), n, &filter);
    most = std::max(most, static_cast<int>(filter.size()) - n * 10 / 8);
    CHECK(n >= 410 || most <= 9, most << " bytes of " << n << " keys");
  }
  CHECK(most == 65, most << " bytes");
}

// Of any length, zero included, with any bytes.
void keeps_odd_keys() {
  std::map<std::string, std::string> expected;
  const auto add = [&](const std::string &key) { expected[key] = std::to_string(expected.size()); };
  for (int byte = 0; byte < 256; ++byte) add(std::string(1, static_cast<char>(byte)));
  for (size_t length = 0; length <= 300; ++length) {
    for (const char byte : {'\0', '\xff'}) add(std::string(length, byte));
  }
  for (const size_t length : {1000u, 10'000u, 100'000u}) {
    for (size_t at = 0; at < length; at += length / 50) {
      add(std::string(length, 'x'));
      add(std::string(at, 'x') + std::string(1, '\0') + std::string(length - at, 'x'));
    }
  }
  const Directory directory;
  const Policy policy = bloomline_of(10);
  const Database database = open(directory / "database", policy.get());
  for (const auto &[key, value] : expected) must(database->Put({}, key, value));
  compact(database.get());
  std::string value;
  for (const auto &[key, wanted] : expected) {
    const leveldb::Status status = database->Get({}, key, &value);
    CHECK(status.ok() && value == wanted, status.ToString() << " for a key of " << key.size() << " bytes");
    const std::string absent = key + '\1';
    if (expected.count(absent) == 0) CHECK(database->Get({}, absent, &value).IsNotFound(), "an absent key");
  }
}

// Several threads read its filters while another creates new ones.
void serves_several_threads() {
  const Directory directory;
  const Policy policy = bloomline_of(10);
  const Database database = open(directory / "database", policy.get());
  Model model(keys / 10, 50);
  model.fill(database.get());
  std::vector<std::string> failures(3);
  std::vector<std::thread> threads;
  for (std::string &failure : failures) {
    threads.emplace_back([&] {
      try {
        for (int round = 0; round < 3; ++round) model.check(database.get());
      } catch (const std::exception &error) {
        failure = error.what();
      }
    });
  }
  compact(database.get());
  for (std::thread &thread : threads) thread.join();
  for (const std::string &failure : failures) CHECK(failure.empty(), failure);
}

// By LevelDB's C interface. The sanitizers and valgrind see that all memory is freed once.
void serves_the_c_interface() {
  CHECK(bloomline_leveldb_filterpolicy_create(-1) == nullptr, "a policy of -1 bits per key");
  const Directory directory;
  const std::string path = directory / "database";
  leveldb_filterpolicy_t *const policy = bloomline_leveldb_filterpolicy_create(10);
  leveldb_cache_t *const cache = leveldb_cache_create_lru(64 << 20);
  leveldb_options_t *const options = leveldb_options_create();
  leveldb_options_set_create_if_missing(options, 1);
  leveldb_options_set_filter_policy(options, policy);
  leveldb_options_set_cache(options, cache);
  leveldb_readoptions_t *const read = leveldb_readoptions_create();
  leveldb_writeoptions_t *const write = leveldb_writeoptions_create();
  const size_t n_keys = keys / 5;
  char *error = nullptr;
  leveldb_t *database = leveldb_open(options, path.c_str(), &error);
  for (size_t i = 0; i < n_keys && error == nullptr; ++i) {
    const std::string key = key_of(i);
    leveldb_put(database, write, key.data(), key.size(), key.data(), key.size(), &error);
  }
  CHECK(error == nullptr, error);
  leveldb_compact_range(database, nullptr, 0, nullptr, 0);
  leveldb_close(database);

  database = leveldb_open(options, path.c_str(), &error);
  CHECK(error == nullptr, error);
  const auto memory = [&] {
    char *const bytes = leveldb_property_value(database, "leveldb.approximate-memory-usage");
    const long memory = std::atol(bytes);
    leveldb_free(bytes);
    return memory;
  };
  // By how much gets of every `step`th key grow the block cache: whether LevelDB reads data blocks.
  const auto grows = [&](size_t first, size_t step, bool is_present) {
    const long before = memory();
    for (size_t i = first; i < first + n_keys; i += step) {
      const std::string key = key_of(i);
      size_t length;
      char *const value = leveldb_get(database, read, key.data(), key.size(), &length, &error);
      const bool is_same = value != nullptr && std::string(value, length) == key;
      leveldb_free(value);
      CHECK(error == nullptr && is_same == is_present, "key " << i << " lost, or found though it is missing");
    }
    return memory() - before;
  };
  const long for_missing = grows(n_keys, 100, false), for_present = grows(0, 100, true);
  CHECK(for_missing < for_present / 4, for_missing << " bytes of data blocks read for missing keys");
  grows(0, 1, true);
  leveldb_close(database);
  leveldb_filterpolicy_destroy(policy);
  leveldb_writeoptions_destroy(write);
  leveldb_readoptions_destroy(read);
  leveldb_options_destroy(options);
  leveldb_cache_destroy(cache);
}

// Another policy's filters are ignored until compaction writes new ones.
void change_of_policy(const std::function<Policy()> &first, const std::function<Policy()> &second,
                      bool same_name) {
  const Directory directory;
  const std::string path = directory / "database";
  Model model(keys / 5, 50);
  {
    const Policy policy = first();
    const Database database = open(path, policy.get());
    model.fill(database.get());
    compact(database.get());
  }
  for (const bool there : {true, false}) {
    Watched policy(there ? second() : first());
    Database database = open(path, &policy);
    model.check(database.get());
    CHECK((policy.queries() != 0) == same_name,
          policy.queries() << " queries of the earlier policy's filters");
    model.change(database.get(), model.size() / 5, there ? 1 : 2);
    compact(database.get());
    model.check(database.get());
    policy.forget_calls();
    get_missing(database.get(), model.size(), model.size());
    CHECK(policy.queries() > model.size() / 2, policy.queries() << " queries of its own filters");
    CHECK(policy.matched() < policy.queries() / 10 + 50,
          policy.matched() << " matches of " << policy.queries());
    database.reset();
    database = open(path, nullptr);
    model.check(database.get());
  }
}

void policies_may_change() {
  change_of_policy([] { return built_in_of(10); }, [] { return bloomline_of(10); }, false);
  change_of_policy([] { return bloomline_of(10); }, [] { return built_in_of(10); }, false);
  // Each reads the other's filters.
  change_of_policy([] { return std::make_unique<bloomline::LevelDBFilterPolicy>(6); },
                   [] { return std::make_unique<bloomline::leveldb_filter_policy>(20); }, true);
}

// LevelDB does not verify the checksums of filters by default. What is visibly not a filter, by docs/format.md alone,
// must then hide no key; nothing in other bytes shows of which keys they are a filter.
template <class Either>
void bytes_that_are_no_filter_hide_no_key() {
  const Either policy(10);
  uint64_t unusable = 0;
  for (size_t length = 0; length <= 600; ++length) {
    for (int trailer = 0; trailer < (length == 0 ? 1 : 256); ++trailer) {
      // Lanes of zeros, which hide every key.
      std::string bytes(length, '\0');
      if (length > 0) bytes.back() = static_cast<char>(trailer);
      const size_t lanes = length / 8;
      const bool is_filter = length % 8 == 1 && lanes > 0 && (lanes < 64 || lanes % 8 == 0) && trailer >> 4 == 2;
      CHECK(policy.KeyMayMatch("ant", bytes) == !is_filter, length << " bytes with the trailer " << trailer);
      unusable += !is_filter;
      CHECK(policy.unusable_filters() == unusable, policy.unusable_filters() << " counted as unusable");
    }
  }
}

// Lanes of zeros hide every key, and only a checksum can detect that. LevelDB verifies a filter block's
// checksum only if the database was opened with paranoid_checks, and then ignores a damaged block;
// verify_checksums of a read does not cover filters.
void paranoid_checks_detect_damaged_lanes() {
  const Directory directory;
  const std::string path = directory / "database";
  Watched policy(bloomline_of(10));
  const size_t n_keys = std::min<size_t>(keys / 5, 2000);
  {
    const Database database = open(path, &policy);
    Model(n_keys, 50).fill(database.get());
    compact(database.get());
  }
  for (const auto &file : tables_of(path)) {
    const Table table(file, policy.Name());
    std::string block = table.block();
    for (size_t i = 0; i < table.n_filters(); ++i) {
      const auto [start, end] = table.filter(i);
      if (start != end) block.replace(start, end - 1 - start, end - 1 - start, '\0');
    }
    table.write(block);
  }
  const auto found = [&](bool paranoid, bool verify) {
    leveldb::Options options = options_of(&policy);
    options.paranoid_checks = paranoid;
    leveldb::ReadOptions read;
    read.verify_checksums = verify;
    const Database database = open(path, options);
    policy.forget_calls();
    size_t found = 0;
    std::string value;
    for (size_t i = 0; i < n_keys; ++i) found += database->Get(read, key_of(i), &value).ok();
    return found;
  };
  CHECK(found(false, false) == 0 && policy.queries() == n_keys, "a key in filters of no keys");
  CHECK(found(false, true) == 0, "a key in filters of no keys, with verify_checksums");
  CHECK(found(true, false) == n_keys, "a key was lost, with paranoid_checks");
  CHECK(policy.queries() == 0, policy.queries() << " queries of filters with a wrong checksum");
}

struct Test {
  const char *name;
  void (*run)();
};

using C = bloomline::LevelDBFilterPolicy;
using Cpp = bloomline::leveldb_filter_policy;

#define TEST(function) {#function, function}
constexpr Test kTests[] = {
    TEST(appends_to_what_is_there),
    TEST(limits_modules<C>),
    TEST(limits_modules<Cpp>),
    TEST(survives_changes_and_compactions),
    TEST(keeps_odd_keys),
    TEST(serves_several_threads),
    TEST(serves_the_c_interface),
    TEST(policies_may_change),
    TEST(takes_at_most_65_bytes_above_10_bits_per_key),
    TEST(bytes_that_are_no_filter_hide_no_key<C>),
    TEST(bytes_that_are_no_filter_hide_no_key<Cpp>),
    TEST(paranoid_checks_detect_damaged_lanes),
};

}  // namespace

int main(int argc, char **argv) {
  if (argc > 1) keys = std::strtoull(argv[1], nullptr, 10);
  if (argc > 2 || keys < 500 || keys > kAllKeys) {
    std::fprintf(stderr, "usage: %s [KEYS], 500 to %zu\n", argv[0], kAllKeys);
    return 2;
  }
  int failed = 0;
  for (const Test &test : kTests) {
    std::printf("%s\n", test.name);
    std::fflush(stdout);
    try {
      test.run();
    } catch (const std::exception &error) {
      std::printf("  FAILED: %s\n", error.what());
      ++failed;
    }
  }
  std::printf("%d of %zu tests failed\n", failed, std::size(kTests));
  return failed == 0 ? 0 : 1;
}
