// Gets of missing and of present keys in LevelDB, without a filter, with LevelDB's own and with bloomline's:
// time, false positives, bits per key. Prints Markdown.
//
//   leveldb_readmissing KEYS random|sequential
//
// Sequential keys are numbers of 16 digits: present keys are even, missing keys odd.
//
// Each round gets the same keys from every database in turn, starting with another one each time, so that a
// temporary slowdown of the machine affects all of them; ratios are medians of the rounds' ratios.
#include <leveldb/cache.h>
#include <leveldb/iterator.h>

#include <atomic>

#include "leveldb_bench.h"

namespace {

constexpr size_t kRounds = 15;
// Per round, of missing keys and of present keys each.
constexpr size_t kGets = 20'000;
constexpr size_t kValue = 100;
// Of the block cache, for a part of the data blocks.
constexpr size_t kCache = 8 << 20;
// The row of LevelDB's own filter.
constexpr size_t kBuiltIn = 1;

size_t n_keys;
bool sequential;

// Keys are present below the number of keys, and missing from there on.
std::string key_in_database(size_t number) {
  if (!sequential) return key_of(number);
  const std::string digits = std::to_string(2 * (number % n_keys) + number / n_keys);
  return std::string(16 - digits.size(), '0') + digits;
}

Keys random_keys(size_t n, bool present, uint64_t seed) {
  Keys keys;
  for (size_t i = 0; i < n; ++i) keys.add(key_in_database((present ? 0 : n_keys) + mix(mix(seed) + i) % n_keys));
  return keys;
}

// Counts the policy's positive answers.
class CountingPolicy : public leveldb::FilterPolicy {
 public:
  explicit CountingPolicy(const leveldb::FilterPolicy *policy) : policy_(policy) {}

  const char *Name() const override { return policy_->Name(); }
  void CreateFilter(const leveldb::Slice *keys, int n, std::string *filters) const override {
    policy_->CreateFilter(keys, n, filters);
  }
  bool KeyMayMatch(const leveldb::Slice &key, const leveldb::Slice &filter) const override {
    const bool answer = policy_->KeyMayMatch(key, filter);
    matched += answer;
    return answer;
  }

  mutable std::atomic<uint64_t> matched{0};

 private:
  const leveldb::FilterPolicy *const policy_;
};

void get_all(leveldb::DB *database, const Keys &keys, bool present) {
  std::string value;
  size_t found = 0;
  for (size_t i = 0; i < keys.size(); ++i) found += database->Get({}, keys[i], &value).ok();
  if (found != (present ? keys.size() : 0))
    throw std::runtime_error("keys were lost, or keys that were never put were found");
}

std::unique_ptr<leveldb::DB> open(const std::string &path, const leveldb::FilterPolicy *policy,
                                  leveldb::Cache *cache = nullptr) {
  leveldb::Options options;
  options.create_if_missing = true;
  options.filter_policy = policy;
  // Large files, so few tables: LevelDB would otherwise map only those of the first databases into memory.
  options.max_file_size = 8 << 20;
  options.write_buffer_size = 32 << 20;
  options.block_cache = cache;
  leveldb::DB *database = nullptr;
  must(leveldb::DB::Open(options, path, &database));
  return std::unique_ptr<leveldb::DB>(database);
}

// Fills the block cache, with all blocks or with those of random keys.
void warm(leveldb::DB *database, bool all) {
  const std::unique_ptr<leveldb::Iterator> iterator(database->NewIterator({}));
  for (iterator->SeekToFirst(); all && iterator->Valid();) iterator->Next();
  get_all(database, random_keys(100'000, true, 1), true);
}

struct Contender {
  std::string name;
  Policy policy;
  std::string path;
  size_t n_filters = 0, filter_bytes = 0;
};

void build(Contender *contender) {
  std::fprintf(stderr, "building: %s\n", contender->name.c_str());
  auto database = open(contender->path, contender->policy.get());
  // Half of each value is random bytes, as in db_bench.
  for (size_t i = 0; i < n_keys; ++i) must(database->Put({}, key_in_database(i), value_of(i, kValue, kValue / 2)));
  compact(database.get());
  database.reset();
  if (contender->policy == nullptr) return;
  const std::vector<std::string> filters = filters_of(contender->path, contender->policy->Name());
  contender->n_filters = filters.size();
  contender->filter_bytes = total_bytes(filters);
}

// For each get of a missing key. Without a policy, every answer is counted as one.
double false_positives(const Contender &contender) {
  constexpr size_t kCounted = 200'000;
  if (contender.policy == nullptr) return 1;
  const CountingPolicy policy(contender.policy.get());
  const auto database = open(contender.path, &policy);
  get_all(database.get(), random_keys(kCounted, false, 2), false);
  return static_cast<double>(policy.matched) / kCounted;
}

// Nanoseconds per get, by kind of get and round.
using Times = std::array<std::vector<double>, 2>;

std::vector<Times> measure(const std::vector<Contender> &contenders, size_t capacity, bool warm_all) {
  std::vector<std::unique_ptr<leveldb::Cache>> caches;
  std::vector<std::unique_ptr<leveldb::DB>> databases;
  for (const Contender &contender : contenders) {
    caches.emplace_back(leveldb::NewLRUCache(capacity));
    databases.push_back(open(contender.path, contender.policy.get(), caches.back().get()));
    warm(databases.back().get(), warm_all);
  }
  std::vector<Times> times(contenders.size());
  for (size_t round = 0; round < kRounds; ++round) {
    const Keys keys[] = {random_keys(kGets, false, 100 + round), random_keys(kGets, true, 100 + round)};
    for (size_t turn = 0; turn < contenders.size(); ++turn) {
      const size_t i = (round + turn) % contenders.size();
      for (const bool present : {false, true}) {
        const auto gets = [&] { get_all(databases[i].get(), keys[present], present); };
        times[i][present].push_back(nanoseconds(kGets, gets));
      }
    }
  }
  return times;
}

void compare() {
  const Directory directory;
  std::vector<Contender> contenders;
  const auto add = [&](const char *name, Policy policy) {
    contenders.push_back({name, std::move(policy), directory / name});
    build(&contenders.back());
  };
  add("none", nullptr);
  add("LevelDB, 10", their_policy());
  add("bloomline, 10", our_policy());
  // About the false-positive rate of LevelDB's.
  if (!sequential) add("bloomline, 9", our_policy(9));

  std::printf("\n## Gets, %s keys\n\n", sequential ? "sequential" : "random");
  if (!sequential) {
    std::printf(
        "Nanoseconds, and in brackets the ratio to LevelDB's own filter. Medians of %zu rounds of %zu gets. Values have %zu\n"
        "bytes. The block cache has %zu MiB, or in the columns \"cached\" room for all data blocks.\n\n",
        kRounds, kGets, kValue, kCache >> 20);
  }
  std::printf(
      "%zu %s, with %.0f keys per filter on average.\n\n"
      "| filter | bits per key | FPR | missing get | present get | missing, cached | present, cached |\n"
      "|---|---:|---:|---:|---:|---:|---:|\n",
      n_keys,
      sequential ? "even numbers of 16 digits as keys, where missing keys are the odd numbers" : "random keys of 16 bytes",
      static_cast<double>(n_keys) / static_cast<double>(contenders[kBuiltIn].n_filters));
  const std::vector<Times> read = measure(contenders, kCache, false), cached = measure(contenders, 400 * n_keys, true);
  for (size_t i = 0; i < contenders.size(); ++i) {
    const Contender &contender = contenders[i];
    std::printf("| %s | %.2f | %.2f%% ", contender.name.c_str(),
                8 * static_cast<double>(contender.filter_bytes) / static_cast<double>(n_keys),
                100 * false_positives(contender));
    for (const std::vector<Times> *times : {&read, &cached}) {
      for (const bool present : {false, true}) {
        const std::vector<double> &kind = (*times)[i][present];
        std::printf("| %.0f (%.2f) ", quartiles(kind)[1], ratios(kind, (*times)[kBuiltIn][present])[1]);
      }
    }
    std::printf("|\n");
  }
}

}  // namespace

int main(int argc, char **argv) {
  if (argc != 3) throw std::invalid_argument("usage: leveldb_readmissing KEYS random|sequential");
  n_keys = std::stoul(argv[1]);
  sequential = argv[2] == std::string("sequential");
  compare();
}
