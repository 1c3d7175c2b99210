// The filter policy in LevelDB itself: it loses no key whatever the database does with its tables, its filters save
// reads, and damage on disk costs time, not keys.
//
//   leveldb [KEYS]      100,000 for all rounds of damage
#include <bloomline/bloomline.h>
#include <bloomline/leveldb.h>
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

Policy bloomline_of(double bits_per_key) {
  return std::make_unique<bloomline::LevelDBFilterPolicy>(bits_per_key);
}
Policy built_in_of(int bits_per_key) { return Policy(leveldb::NewBloomFilterPolicy(bits_per_key)); }

// Forwards to another policy, and counts the calls.
class Watched : public leveldb::FilterPolicy {
 public:
  struct Call {
    std::string filter;
    bool answer;
  };

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
    if (calls_ != nullptr) calls_->push_back({filter.ToString(), answer});
    return answer;
  }

  void record(std::vector<Call> *calls) { calls_ = calls; }
  void forget_calls() { queries_ = matched_ = 0; }

  size_t queries() const { return queries_; }
  size_t matched() const { return matched_; }
  // Keys given to filters that already had them.
  size_t repeats() const { return repeats_; }
  const leveldb::FilterPolicy *inner() const { return policy_.get(); }

 private:
  const Policy policy_;
  std::vector<Call> *calls_ = nullptr;
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
void limits_modules() {
  const std::vector<std::string> many = new_keys(1000, 0);
  const std::vector<leveldb::Slice> slices(many.begin(), many.end());
  const auto size = [&](const leveldb::FilterPolicy &policy) {
    std::string filter;
    policy.CreateFilter(slices.data(), 1000, &filter);
    return filter.size();
  };
  CHECK(size(bloomline::LevelDBFilterPolicy(20)) % 64 == 2, "not several modules");
  CHECK(size(bloomline::LevelDBFilterPolicy(20, 1)) % 64 == 1, "not one module");
  std::string message = "no exception";
  try {
    bloomline::LevelDBFilterPolicy(20, 17);
  } catch (const std::invalid_argument &error) {
    message = error.what();
  }
  CHECK(message.find("not 17") != std::string::npos, message);
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
  change_of_policy([] { return bloomline_of(6); }, [] { return bloomline_of(20); }, true);
}

// Whether bytes can be a filter, by docs/format.md alone. If they can, nothing in them shows of which keys.
bool well_formed(const std::string &filter) {
  const size_t lanes = filter.size() / 8;
  return filter.size() % 8 == 1 && lanes > 0 && (lanes < 64 || lanes % 8 == 0) &&
         static_cast<unsigned char>(filter.back()) >> 4 == 2;
}

// A kind of damage to a filter block on disk, which may depend on the round.
struct Damage {
  const char *name;
  int rounds;
  // The damage can be detected, so no key may be lost. With other damage LevelDB may pass the policy a
  // well-formed filter of other keys, or hide keys by itself.
  bool visible;
  std::function<void(const Table &, uint32_t round, std::string *block, char *type)> apply;
};

uint32_t number_at(const std::string &block, size_t at) {
  uint32_t number = 0;
  for (size_t i = 4; i-- > 0;) number = number << 8 | static_cast<unsigned char>(block[at + i]);
  return number;
}

void put_number(std::string *block, size_t at, uint32_t number) {
  for (size_t i = 0; i < 4; ++i) (*block)[at + i] = static_cast<char>(number >> (8 * i));
}

void each_filter(const Table &table, const std::function<void(size_t start, size_t end)> &apply) {
  for (size_t i = 0; i < table.n_filters(); ++i) {
    const auto [start, end] = table.filter(i);
    if (start != end) apply(start, end);
  }
}

void fill_bytes(std::string *block, size_t start, size_t end, uint32_t seed) {
  for (size_t i = start; i < end; ++i) (*block)[i] = static_cast<char>(mix(mix(seed) + i));
}

void each_offset(const Table &table, std::string *block,
                 const std::function<uint32_t(uint32_t, size_t)> &change) {
  for (size_t i = 0; i < table.n_filters(); ++i) {
    const size_t at = table.array() + 4 * i;
    put_number(block, at, change(number_at(*block, at), i));
  }
}

const std::vector<Damage> &damages() {
  static const std::vector<Damage> all = {
      {"trailers of unknown versions", 240, true,
       [](const Table &table, uint32_t round, std::string *block, char *) {
         const auto trailer = static_cast<char>(round < 32 ? round : round + 16);
         each_filter(table, [&](size_t, size_t end) { (*block)[end - 1] = trailer; });
       }},
      {"trailers of another k", 16, false,
       [](const Table &table, uint32_t round, std::string *block, char *) {
         each_filter(table, [&](size_t, size_t end) { (*block)[end - 1] = static_cast<char>(32 + round); });
       }},
      {"lanes all ones", 1, true,
       [](const Table &table, uint32_t, std::string *block, char *) {
         each_filter(table, [&](size_t start, size_t end) {
           block->replace(start, end - 1 - start, end - 1 - start, '\xff');
         });
       }},
      {"block all zeros", 1, true,
       [](const Table &, uint32_t, std::string *block, char *) { block->assign(block->size(), '\0'); }},
      {"another type of compression", 255, true,
       [](const Table &, uint32_t round, std::string *, char *type) {
         *type = static_cast<char>(round + 1);
       }},
      {"offsets of filters all zero", 1, true,
       [](const Table &table, uint32_t, std::string *block, char *) {
         each_offset(table, block, [](uint32_t, size_t) { return 0; });
       }},
      {"offsets of filters a little off", 64, false,
       [](const Table &table, uint32_t round, std::string *block, char *) {
         each_offset(table, block, [&](uint32_t offset, size_t) { return offset + round - 32; });
       }},
      {"offsets of filters at random", 60, false,
       [](const Table &table, uint32_t round, std::string *block, char *) {
         each_offset(table, block,
                     [&](uint32_t, size_t i) { return mix(mix(round) + i) % (table.array() + 20); });
       }},
      {"offset of the array", 60, false,
       [](const Table &table, uint32_t round, std::string *block, char *) {
         const auto end = static_cast<uint32_t>(block->size()), array = static_cast<uint32_t>(table.array());
         const uint32_t offsets[] = {0,       1,       array - 4, array - 1, array + 1, array + 4,
                                     end - 9, end - 5, end - 4,   end,       ~0u};
         const size_t n = std::size(offsets);
         put_number(block, end - 5, round < n ? offsets[round] : static_cast<uint32_t>(mix(round) % end));
       }},
      {"span of a filter", 256, false,
       [](const Table &, uint32_t round, std::string *block, char *) {
         block->back() = static_cast<char>(round);
       }},
      {"block cut short", 100, false,
       [](const Table &, uint32_t round, std::string *block, char *) {
         block->resize(round < 12 ? round : mix(round) % block->size());
       }},
      {"bits of the array and after it", 150, false,
       [](const Table &table, uint32_t round, std::string *block, char *) {
         const size_t n_bits = 8 * (block->size() - table.array());
         for (uint32_t i = 0; i <= round / 10; ++i) {
           const size_t bit = mix(mix(round) + i) % n_bits;
           (*block)[table.array() + bit / 8] ^= static_cast<char>(1 << bit % 8);
         }
       }},
      {"block of random bytes", 40, false,
       [](const Table &, uint32_t round, std::string *block, char *) {
         fill_bytes(block, 0, block->size(), round);
       }},
      // Only a checksum can detect this.
      {"bits of lanes", 10, false,
       [](const Table &table, uint32_t round, std::string *block, char *) {
         each_filter(table, [&](size_t start, size_t end) {
           const size_t bit = mix(mix(round) + start) % (8 * (end - 1 - start));
           (*block)[start + bit / 8] ^= static_cast<char>(1 << bit % 8);
         });
       }},
  };
  return all;
}

void damage(const std::string &path, const std::string &policy, const Damage &damage, uint32_t round) {
  for (const auto &file : tables_of(path)) {
    const Table table(file, policy);
    std::string block = table.block();
    char type = 0;
    damage.apply(table, round, &block, &type);
    table.write(block, type);
  }
}

// A database whose tables can be damaged, and read any number of times.
class Damaged {
 public:
  explicit Damaged(size_t n_keys) : n_keys_(n_keys) {
    const Database database = open(path_, policy_.get());
    Model model(n_keys_, 50);
    model.fill(database.get());
    compact(database.get());
    model.check(database.get());
  }

  struct Lost {
    size_t by_filter = 0;
    // The policy was not queried.
    size_t by_leveldb = 0;
    size_t queries = 0;
    uint64_t unusable = 0;
  };

  // Calls `see` with each key's number and each call for it.
  Lost read(const leveldb::Options &extra, const leveldb::ReadOptions &how,
            const std::function<void(size_t, const Watched::Call &)> &see) const {
    Watched policy(bloomline_of(10));
    std::vector<Watched::Call> calls;
    policy.record(&calls);
    leveldb::Options options = options_of(&policy);
    options.paranoid_checks = extra.paranoid_checks;
    const Database database = open(path_, options);
    Lost lost;
    std::string value;
    for (size_t i = 0; i < n_keys_; ++i) {
      calls.clear();
      const leveldb::Status status = database->Get(how, key_of(i), &value);
      CHECK(status.ok() || status.IsNotFound(), status.ToString());
      for (const Watched::Call &call : calls) see(i, call);
      lost.queries += calls.size();
      if (status.ok()) continue;
      const bool hidden =
          std::any_of(calls.begin(), calls.end(), [](const auto &call) { return !call.answer; });
      ++(hidden ? lost.by_filter : lost.by_leveldb);
    }
    // LevelDB may be built without RTTI, which dynamic_cast needs.
    lost.unusable = static_cast<const bloomline::LevelDBFilterPolicy *>(policy.inner())->unusable_filters();
    return lost;
  }

  // Calls `use` with one kind of damage, repaired after each round.
  template <typename Use>
  void each_round(const Damage &kind, Use use) const {
    std::vector<Table> whole;
    for (const auto &file : tables_of(path_)) whole.emplace_back(file, policy_->Name());
    const int step = keys < kAllKeys ? 8 : 1;
    for (int round = 0; round < kind.rounds; round += step) {
      damage(path_, policy_->Name(), kind, static_cast<uint32_t>(round));
      use(round);
      for (const Table &table : whole) table.restore();
    }
  }

  size_t n_keys() const { return n_keys_; }

 private:
  const Directory directory_;
  const std::string path_ = directory_ / "database";
  const Policy policy_ = bloomline_of(10);
  size_t n_keys_;
};

// By default LevelDB does not verify the checksums of filters. It also hides keys by itself if two
// neighbouring offsets are equal and lie behind the filters: it reads that as a filter of no keys. No policy
// can prevent that, nor can it detect a well-formed filter of other keys.
void damaged_filter_blocks() {
  const size_t n_keys = std::min<size_t>(keys / 5, 2000);
  const Damaged ours(n_keys);
  std::vector<std::string> own(n_keys);
  ours.read({}, {}, [&](size_t i, const Watched::Call &call) { own[i] = call.filter; });

  std::printf("  %-34s %6s %10s %18s %12s\n", "gets of present keys", "gets", "unusable", "lost: other filter",
              "by LevelDB");
  for (const Damage &kind : damages()) {
    Damaged::Lost sum;
    size_t gets = 0;
    ours.each_round(kind, [&](int round) {
      uint64_t malformed = 0;
      const Damaged::Lost lost = ours.read({}, {}, [&](size_t i, const Watched::Call &call) {
        malformed += !well_formed(call.filter);
        if (call.answer) return;
        CHECK(well_formed(call.filter),
              kind.name << ", round " << round << ": bytes that are not a filter hide a key");
        CHECK(call.filter != own[i], kind.name << ", round " << round << ": its own filter hides a key");
      });
      CHECK(lost.unusable == malformed, kind.name << ", round " << round << ": " << lost.unusable
                                                  << " counted as unusable of " << malformed);
      CHECK(!kind.visible || lost.by_filter + lost.by_leveldb == 0,
            kind.name << ", round " << round << ": " << lost.by_filter << " keys lost");
      sum.by_filter += lost.by_filter;
      sum.by_leveldb += lost.by_leveldb;
      sum.unusable += lost.unusable;
      gets += n_keys;
    });
    std::printf("  %-34s %6zu %10llu %18zu %12zu\n", kind.name, gets,
                static_cast<unsigned long long>(sum.unusable), sum.by_filter, sum.by_leveldb);
  }
}

// Lanes of zeros hide every key, and only a checksum can detect that. LevelDB verifies a filter block's
// checksum only if the database was opened with paranoid_checks, and then ignores a damaged block;
// verify_checksums of a read does not cover filters.
void paranoid_checks_detect_damaged_lanes() {
  const Damage zeros = {"lanes all zeros", 1, false,
                        [](const Table &table, uint32_t, std::string *block, char *) {
                          each_filter(table, [&](size_t start, size_t end) {
                            block->replace(start, end - 1 - start, end - 1 - start, '\0');
                          });
                        }};
  const Damaged database(std::min<size_t>(keys / 5, 2000));
  const auto ignore = [](size_t, const Watched::Call &) {};
  database.each_round(zeros, [&](int) {
    leveldb::Options paranoid;
    paranoid.paranoid_checks = true;
    leveldb::ReadOptions verify;
    verify.verify_checksums = true;
    const Damaged::Lost plain = database.read({}, {}, ignore), verified = database.read({}, verify, ignore);
    CHECK(plain.by_filter == database.n_keys(), plain.by_filter << " keys hidden by filters of no keys");
    CHECK(verified.by_filter == database.n_keys(),
          verified.by_filter << " keys hidden, with verify_checksums");
    const Damaged::Lost seen = database.read(paranoid, {}, ignore);
    CHECK(seen.by_filter + seen.by_leveldb == 0, seen.by_filter << " keys lost, with paranoid_checks");
    CHECK(seen.queries == 0, seen.queries << " queries of filters with a wrong checksum");
  });
}

struct Test {
  const char *name;
  void (*run)();
};

#define TEST(function) {#function, function}
constexpr Test kTests[] = {
    TEST(appends_to_what_is_there), TEST(limits_modules),         TEST(survives_changes_and_compactions),
    TEST(keeps_odd_keys),           TEST(serves_several_threads), TEST(policies_may_change),
    TEST(damaged_filter_blocks),    TEST(paranoid_checks_detect_damaged_lanes),
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
