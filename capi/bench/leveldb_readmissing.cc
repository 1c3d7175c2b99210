// Gets of missing and of present keys in LevelDB, without a filter, with LevelDB's own and with bloomline's:
// time, data blocks read, filter bytes. Prints Markdown.
//
//   leveldb_readmissing [--keys N] [--rounds N] [--gets N] [--value BYTES] [--directory PATH] [--sequential]
//
// Keys are random, or with --sequential, numbers of 16 digits: present keys are even, missing keys odd.
//
// Each round gets the same keys from every database in turn, starting with another one each time, so that a
// temporary slowdown of the machine affects all of them; ratios are medians of the rounds' ratios.
#include <bloomline/leveldb.h>
#include <leveldb/cache.h>
#include <leveldb/env.h>
#include <leveldb/filter_policy.h>
#include <leveldb/iterator.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>

#include "../tests/leveldb_support.h"

namespace {

struct Arguments {
  size_t keys = 1'000'000;
  size_t rounds = 15;
  // Per round, of missing keys and of present keys each.
  size_t gets = 20'000;
  size_t value = 100;
  std::string directory = std::filesystem::temp_directory_path();
  bool sequential = false;

  // Keys are present below the number of keys, and missing from there on.
  std::string key(size_t number) const {
    if (!sequential) return key_of(number);
    const std::string digits = std::to_string(2 * (number % keys) + number / keys);
    return std::string(16 - digits.size(), '0') + digits;
  }
};

using Policy = std::unique_ptr<const leveldb::FilterPolicy>;
using Cache = std::unique_ptr<leveldb::Cache>;
using Database = std::unique_ptr<leveldb::DB>;
using Seconds = std::chrono::duration<double>;

double seconds_since(std::chrono::steady_clock::time_point start) {
  return Seconds(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> numbers) {
  std::sort(numbers.begin(), numbers.end());
  const size_t half = numbers.size() / 2;
  return numbers.size() % 2 == 1 ? numbers[half] : (numbers[half - 1] + numbers[half]) / 2;
}

// Counts reads of table files. With every table open and its index and filters in memory, these are the data
// blocks that were not in the block cache. A count of a policy's positive answers would include blocks that
// come from the cache, and there is none without a policy.
class CountingEnv : public leveldb::EnvWrapper {
 public:
  CountingEnv() : EnvWrapper(leveldb::Env::Default()) {}

  leveldb::Status NewRandomAccessFile(const std::string &name, leveldb::RandomAccessFile **result) override {
    const leveldb::Status status = target()->NewRandomAccessFile(name, result);
    if (status.ok()) *result = new File(std::unique_ptr<leveldb::RandomAccessFile>(*result), &reads_);
    return status;
  }

  uint64_t reads() const { return reads_; }

 private:
  class File : public leveldb::RandomAccessFile {
   public:
    File(std::unique_ptr<leveldb::RandomAccessFile> file, std::atomic<uint64_t> *reads)
        : file_(std::move(file)), reads_(reads) {}

    leveldb::Status Read(uint64_t offset, size_t n, leveldb::Slice *result, char *scratch) const override {
      ++*reads_;
      return file_->Read(offset, n, result, scratch);
    }

   private:
    std::unique_ptr<leveldb::RandomAccessFile> file_;
    std::atomic<uint64_t> *reads_;
  };

  std::atomic<uint64_t> reads_{0};
};

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
    matched_ += answer;
    return answer;
  }

  uint64_t matched() const { return matched_; }

 private:
  const leveldb::FilterPolicy *policy_;
  mutable std::atomic<uint64_t> matched_{0};
};

// Keys end to end, because a string for each would cost one more cache miss.
class Keys {
 public:
  template <typename Key>
  Keys(size_t n, size_t first, size_t span, uint64_t seed, Key key) : n_(n) {
    for (size_t i = 0; i < n; ++i) bytes_ += key(first + mix(mix(seed) + i) % span);
  }

  static Keys of(const Arguments &arguments, size_t n, bool present, uint64_t seed) {
    return Keys(n, present ? 0 : arguments.keys, arguments.keys, seed,
                [&](size_t number) { return arguments.key(number); });
  }

  size_t size() const { return n_; }
  leveldb::Slice operator[](size_t i) const { return leveldb::Slice(bytes_.data() + 16 * i, 16); }

 private:
  size_t n_;
  std::string bytes_;
};

void get_all(leveldb::DB *database, const Keys &keys, bool present) {
  std::string value;
  size_t found = 0;
  for (size_t i = 0; i < keys.size(); ++i) found += database->Get({}, keys[i], &value).ok();
  if (found != (present ? keys.size() : 0))
    throw std::runtime_error("keys were lost, or keys that were never put were found");
}

struct Contender {
  std::string name;
  Policy policy;
  std::string path;
  double build_seconds = 0;
  size_t filter_bytes = 0;
};

leveldb::Options options_of(const leveldb::FilterPolicy *policy) {
  leveldb::Options options;
  options.create_if_missing = true;
  options.filter_policy = policy;
  // Large files, so few tables: LevelDB would otherwise map only those of the first databases into memory.
  options.max_file_size = 8 << 20;
  options.write_buffer_size = 32 << 20;
  return options;
}

Database open(const std::string &path, const leveldb::Options &options) {
  leveldb::DB *database = nullptr;
  must(leveldb::DB::Open(options, path, &database));
  return Database(database);
}

void build(Contender *contender, const Arguments &arguments) {
  std::fprintf(stderr, "building: %s\n", contender->name.c_str());
  const auto start = std::chrono::steady_clock::now();
  {
    const Database database = open(contender->path, options_of(contender->policy.get()));
    // Half of each value is random bytes, as in db_bench.
    for (size_t i = 0; i < arguments.keys; ++i) {
      must(database->Put({}, arguments.key(i), value_of(i, arguments.value, arguments.value / 2)));
    }
    compact(database.get());
  }
  contender->build_seconds = seconds_since(start);
  if (contender->policy == nullptr) return;
  contender->filter_bytes = total_bytes(filters_of(contender->path, contender->policy->Name()));
}

// By the number of keys in a filter: the share of all keys that are in filters of that size.
using Shares = std::map<size_t, double>;

Shares shares_of(const std::vector<std::string> &built_in_filters) {
  Shares shares;
  size_t total = 0;
  for (const std::string &filter : built_in_filters) {
    // 10 bits per key, rounded to whole bytes, and one byte.
    const size_t n_keys = 8 * (filter.size() - 1) / 10;
    shares[n_keys] += static_cast<double>(n_keys);
    total += n_keys;
  }
  for (auto &[_, share] : shares) share /= static_cast<double>(total);
  return shares;
}

// The false-positive rate of a policy's filters with these numbers of keys.
double fpr_of(const leveldb::FilterPolicy &policy, const Shares &shares) {
  constexpr double kQueries = 10e6;
  constexpr size_t kQueriesEach = 5000;
  double fpr = 0;
  uint64_t seed = 0;
  for (const auto &[n_keys, share] : shares) {
    const size_t n_filters = 1 + static_cast<size_t>(kQueries * share / kQueriesEach);
    const Keys queries(kQueriesEach, size_t{1} << 42, size_t{1} << 40, 0, key_of);
    size_t matched = 0;
    for (size_t i = 0; i < n_filters; ++i) {
      const Keys keys(n_keys, size_t{1} << 44, size_t{1} << 40, ++seed, key_of);
      std::vector<leveldb::Slice> slices;
      for (size_t j = 0; j < n_keys; ++j) slices.push_back(keys[j]);
      std::string filter;
      policy.CreateFilter(slices.data(), static_cast<int>(n_keys), &filter);
      for (size_t j = 0; j < kQueriesEach; ++j) matched += policy.KeyMayMatch(queries[j], filter);
    }
    fpr += share * static_cast<double>(matched) / static_cast<double>(n_filters * kQueriesEach);
  }
  return fpr;
}

// bloomline's bits per key for a false-positive rate as close to `fpr` as whole lanes allow.
double bits_per_key_for(double fpr, const Shares &shares) {
  double low = 4, high = 20, best = 10, best_off = 1;
  while (high - low > 0.02) {
    const double middle = (low + high) / 2;
    const double ours = fpr_of(bloomline::LevelDBFilterPolicy(middle), shares);
    const double off = std::abs(ours / fpr - 1);
    if (off < best_off) best = middle, best_off = off;
    (ours > fpr ? low : high) = middle;
  }
  return best;
}

struct Counts {
  double false_positives = 0, missing_reads = 0, present_reads = 0;
};

Counts count(const Contender &contender, const Arguments &arguments, leveldb::Cache *cache, bool warm_all) {
  CountingEnv env;
  const CountingPolicy policy(contender.policy.get());
  leveldb::Options options = options_of(contender.policy == nullptr ? nullptr : &policy);
  options.env = &env;
  options.block_cache = cache;
  const Database database = open(contender.path, options);
  if (warm_all) {
    const std::unique_ptr<leveldb::Iterator> iterator(database->NewIterator({}));
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) {
    }
  }
  get_all(database.get(), Keys::of(arguments, 100'000, true, 1), true);
  const size_t n = 200'000;
  const auto per_get = [&](uint64_t number) { return static_cast<double>(number) / static_cast<double>(n); };
  Counts counts;
  uint64_t reads = env.reads(), matched = policy.matched();
  get_all(database.get(), Keys::of(arguments, n, false, 2), false);
  counts.missing_reads = per_get(env.reads() - reads);
  counts.false_positives = contender.policy == nullptr ? 1 : per_get(policy.matched() - matched);
  reads = env.reads();
  get_all(database.get(), Keys::of(arguments, n, true, 3), true);
  counts.present_reads = per_get(env.reads() - reads);
  return counts;
}

// Nanoseconds per get, by round.
struct Times {
  std::vector<double> missing, present;
};

std::vector<Times> measure(const std::vector<Contender> &contenders, const Arguments &arguments,
                           const std::vector<Cache> &caches, bool warm_all) {
  std::vector<Database> databases;
  for (size_t i = 0; i < contenders.size(); ++i) {
    leveldb::Options options = options_of(contenders[i].policy.get());
    options.block_cache = caches[i].get();
    databases.push_back(open(contenders[i].path, options));
    if (warm_all) {
      const std::unique_ptr<leveldb::Iterator> iterator(databases[i]->NewIterator({}));
      for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) {
      }
    }
    get_all(databases[i].get(), Keys::of(arguments, 100'000, true, 1), true);
  }
  std::vector<Times> times(contenders.size());
  for (size_t round = 0; round < arguments.rounds; ++round) {
    const Keys missing = Keys::of(arguments, arguments.gets, false, 100 + round);
    const Keys present = Keys::of(arguments, arguments.gets, true, 100 + round);
    for (size_t turn = 0; turn < contenders.size(); ++turn) {
      const size_t i = (round + turn) % contenders.size();
      for (const bool is_present : {false, true}) {
        const auto start = std::chrono::steady_clock::now();
        get_all(databases[i].get(), is_present ? present : missing, is_present);
        const double ns = seconds_since(start) * 1e9 / static_cast<double>(arguments.gets);
        (is_present ? times[i].present : times[i].missing).push_back(ns);
      }
    }
  }
  return times;
}

double paired(const std::vector<double> &times, const std::vector<double> &others) {
  std::vector<double> ratios;
  for (size_t i = 0; i < times.size(); ++i) ratios.push_back(times[i] / others[i]);
  return median(ratios);
}

void compare(const Arguments &arguments) {
  const Directory directory(arguments.directory);
  std::vector<Contender> contenders;
  contenders.reserve(4);
  const auto add = [&](const std::string &name, Policy policy) {
    contenders.push_back({name, std::move(policy), directory / std::to_string(contenders.size())});
    build(&contenders.back(), arguments);
  };
  add("none", nullptr);
  add("LevelDB, 10", Policy(leveldb::NewBloomFilterPolicy(10)));
  const size_t built_in = contenders.size() - 1;
  const Policy &theirs = contenders[built_in].policy;
  const Shares shares = shares_of(filters_of(contenders[built_in].path, theirs->Name()));
  add("bloomline, 10", std::make_unique<bloomline::LevelDBFilterPolicy>(10));
  if (!arguments.sequential) {
    const double bits_per_key = bits_per_key_for(fpr_of(*theirs, shares), shares);
    add("bloomline, about the same FPR", std::make_unique<bloomline::LevelDBFilterPolicy>(bits_per_key));
  }

  double mean_keys = 0;
  for (const auto &[n_keys, share] : shares) mean_keys += share * static_cast<double>(n_keys);
  std::printf(
      "%zu %s. Values of %zu bytes compress to half;\n"
      "filters have %.0f keys on average. Medians of %zu rounds of %zu gets of each kind; in brackets, the ratio to\n"
      "LevelDB's own filter in the same round.\n\n",
      arguments.keys,
      arguments.sequential ? "even numbers of 16 digits as keys; missing keys are the odd numbers"
                           : "random keys of 16 bytes",
      arguments.value, mean_keys, arguments.rounds, arguments.gets);
  const std::vector<const char *> titles = {"block cache",         "filter",      "bits per key",
                                            "filter bytes",        "build, s",    "FPR",
                                            "missing, ns per get", "blocks read", "present, ns per get",
                                            "blocks read"};
  for (const char *title : titles) std::printf("| %s ", title);
  std::printf("|\n|---|---");
  for (size_t i = 2; i < titles.size(); ++i) std::printf("|---:");
  std::printf("|\n");
  for (const bool large : {false, true}) {
    const size_t capacity = large ? 400 * arguments.keys : 8 << 20;
    std::vector<Counts> counts;
    for (const Contender &contender : contenders) {
      const Cache cache(leveldb::NewLRUCache(capacity));
      counts.push_back(count(contender, arguments, cache.get(), large));
    }
    std::vector<Cache> caches;
    for (size_t i = 0; i < contenders.size(); ++i) caches.emplace_back(leveldb::NewLRUCache(capacity));
    const std::vector<Times> times = measure(contenders, arguments, caches, large);
    for (size_t i = 0; i < contenders.size(); ++i) {
      std::printf("| %s | %s | %.2f | %zu | %.1f | %.3f %% | %.0f (%.2f) | %.4f | %.0f (%.2f) | %.4f |\n",
                  large ? "holds all blocks" : "8 MiB", contenders[i].name.c_str(),
                  8 * static_cast<double>(contenders[i].filter_bytes) / static_cast<double>(arguments.keys),
                  contenders[i].filter_bytes, contenders[i].build_seconds, 100 * counts[i].false_positives,
                  median(times[i].missing), paired(times[i].missing, times[built_in].missing),
                  counts[i].missing_reads, median(times[i].present),
                  paired(times[i].present, times[built_in].present), counts[i].present_reads);
    }
  }
}

bool parse(int argc, char **argv, Arguments *arguments) {
  for (int i = 1; i < argc; i += 2) {
    const std::string name = argv[i];
    if (name == "--sequential") {
      arguments->sequential = true;
      --i;
      continue;
    }
    if (i + 1 == argc) return false;
    if (name == "--directory") {
      arguments->directory = argv[i + 1];
      continue;
    }
    size_t *number = name == "--keys"     ? &arguments->keys
                     : name == "--rounds" ? &arguments->rounds
                     : name == "--gets"   ? &arguments->gets
                     : name == "--value"  ? &arguments->value
                                          : nullptr;
    if (number == nullptr || (*number = std::strtoull(argv[i + 1], nullptr, 10)) == 0) return false;
  }
  return true;
}

}  // namespace

int main(int argc, char **argv) {
  Arguments arguments;
  if (!parse(argc, argv, &arguments)) {
    std::fprintf(stderr,
                 "usage: %s [--keys N] [--rounds N] [--gets N] [--value BYTES] [--directory PATH] [--sequential]\n",
                 argv[0]);
    return 2;
  }
  try {
    compare(arguments);
  } catch (const std::exception &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
