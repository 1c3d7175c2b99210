// LevelDB's own filter policy and bloomline's, without a database, with filters and keys in the caches:
// nanoseconds to create a filter and to query it for a key. Prints Markdown.
//
//   leveldb_policy [ROUNDS]      default: 51
//
// Both are timed in each round, so that a temporary slowdown of the machine affects both; ratios are
// quartiles of the rounds' ratios.
#include <bloomline/bloomline.h>
#include <bloomline/leveldb.h>
#include <leveldb/filter_policy.h>
#include <leveldb/slice.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <random>

#include "../tests/leveldb_support.h"

namespace {

constexpr double kBitsPerKey = 10;
constexpr size_t kQueries = 16 << 10;
constexpr size_t kMaxFilters = 512;
// All filters together, and all their keys, each fit in part of a second-level cache.
constexpr size_t kMaxFilterBytes = 256 << 10;
constexpr size_t kMaxKeys = 32 << 10;

size_t rounds = 51;

using Policy = std::unique_ptr<const leveldb::FilterPolicy>;
using CPolicy = std::unique_ptr<bloomline_policy_t, decltype(&bloomline_policy_free)>;

// The lower quartile, the median and the upper quartile.
std::array<double, 3> quartiles(std::vector<double> numbers) {
  std::sort(numbers.begin(), numbers.end());
  return {numbers[numbers.size() / 4], numbers[numbers.size() / 2], numbers[numbers.size() * 3 / 4]};
}

// Keeps the compiler from removing a loop.
volatile size_t sink;

// Runs a number of operations, others in each round, and returns a value that depends on their results.
using Work = std::function<size_t(size_t round)>;

struct Result {
  double theirs, ours;
  std::array<double, 3> ratio;
};

// Nanoseconds per operation, of `n` operations.
Result compare(size_t n, const Work &theirs, const Work &ours) {
  const auto time = [&](const Work &work, size_t round) {
    // The first run warms the caches.
    sink = work(round);
    const auto start = std::chrono::steady_clock::now();
    sink = work(round + 1);
    const std::chrono::duration<double, std::nano> spent = std::chrono::steady_clock::now() - start;
    return spent.count() / static_cast<double>(n);
  };
  std::vector<double> their_times, our_times, ratios;
  for (size_t round = 0; round < rounds; ++round) {
    double t, o;
    if (round % 2 == 0) {
      t = time(theirs, round);
      o = time(ours, round);
    } else {
      o = time(ours, round);
      t = time(theirs, round);
    }
    their_times.push_back(t);
    our_times.push_back(o);
    ratios.push_back(o / t);
  }
  return {quartiles(their_times)[1], quartiles(our_times)[1], quartiles(ratios)};
}

void print(const char *what, size_t n_keys, const char *through, double their_bytes, double our_bytes,
           const Result &result) {
  std::printf("| %s | %zu | %s | %.1f | %.1f | %.1f | %.1f | %.2f (%.2f–%.2f) |\n", what, n_keys, through,
              their_bytes, our_bytes, result.theirs, result.ours, result.ratio[1], result.ratio[0], result.ratio[2]);
}

// Keys end to end, as LevelDB stores them when it creates a filter.
class Keys {
 public:
  Keys(size_t n, size_t first) {
    for (size_t i = 0; i < n; ++i) bytes_ += key_of(first + i);
  }

  void add(const leveldb::Slice &key) { bytes_.append(key.data(), key.size()); }

  leveldb::Slice operator[](size_t i) const { return leveldb::Slice(bytes_.data() + 16 * i, 16); }
  size_t size() const { return bytes_.size() / 16; }

  std::vector<leveldb::Slice> slices() const {
    std::vector<leveldb::Slice> slices;
    for (size_t i = 0; i < size(); ++i) slices.push_back((*this)[i]);
    return slices;
  }

 private:
  std::string bytes_;
};

// Filters of `n_keys` each, built from `keys` in their order, end to end in memory as in a table.
struct Filters {
  Filters(const leveldb::FilterPolicy &policy, const std::vector<leveldb::Slice> &keys, size_t n_keys) {
    std::vector<size_t> starts;
    for (size_t first = 0; first + n_keys <= keys.size(); first += n_keys) {
      starts.push_back(bytes.size());
      policy.CreateFilter(&keys[first], static_cast<int>(n_keys), &bytes);
    }
    starts.push_back(bytes.size());
    for (size_t i = 0; i + 1 < starts.size(); ++i) {
      slices.emplace_back(bytes.data() + starts[i], starts[i + 1] - starts[i]);
    }
  }

  std::string bytes;
  std::vector<leveldb::Slice> slices;
};

// Which filter is queried for which key. Others in each round, or the branch predictor would know the answers.
struct Queries {
  Keys keys{0, 0};
  std::vector<uint32_t> filters;
};

// Queries for keys that are in the filters, or for absent keys.
std::vector<Queries> all_queries(const Keys &keys, size_t n_keys, bool present) {
  const Keys absent(kQueries, size_t{1} << 40);
  std::mt19937 random(5);
  std::vector<Queries> all(8);
  for (Queries &queries : all) {
    for (size_t i = 0; i < kQueries; ++i) {
      const size_t key = random() % keys.size();
      queries.keys.add(present ? keys[key] : absent[i]);
      queries.filters.push_back(static_cast<uint32_t>(key / n_keys));
    }
  }
  return all;
}

template <typename MayMatch>
Work querying(const std::vector<Queries> &all, const Filters &filters, MayMatch may_match) {
  return [&all, &filters, may_match](size_t round) {
    const Queries &queries = all[round % all.size()];
    size_t matched = 0;
    for (size_t i = 0; i < queries.keys.size(); ++i) {
      matched += may_match(queries.keys[i], filters.slices[queries.filters[i]]);
    }
    return matched;
  };
}

// Measures filters of `n_keys`, and those of 50 keys also through the C functions.
void measure(size_t n_keys) {
  const Policy theirs(leveldb::NewBloomFilterPolicy(static_cast<int>(kBitsPerKey)));
  const Policy ours = std::make_unique<bloomline::LevelDBFilterPolicy>(kBitsPerKey);
  const CPolicy direct(bloomline_policy_with_bits_per_key(kBitsPerKey), bloomline_policy_free);
  const size_t filter_bytes = static_cast<size_t>(kBitsPerKey) * n_keys / 8;
  const size_t n_filters = std::min({kMaxFilters, kMaxFilterBytes / filter_bytes, kMaxKeys / n_keys});

  const Keys packed(n_filters * n_keys, 0);
  const std::vector<leveldb::Slice> keys = packed.slices();
  const Filters their_filters(*theirs, keys, n_keys), our_filters(*ours, keys, n_keys);
  const auto mean_bytes = [&](const Filters &filters) {
    return static_cast<double>(filters.bytes.size()) / static_cast<double>(n_filters);
  };
  const double their_bytes = mean_bytes(their_filters), our_bytes = mean_bytes(our_filters);
  const auto row = [&](const char *what, const char *through, const Result &result) {
    print(what, n_keys, through, their_bytes, our_bytes, result);
  };

  const auto creating = [&](const leveldb::FilterPolicy &policy) -> Work {
    // All into one string, as LevelDB does for a table.
    return [&keys, &policy, n_keys, filters = std::string()](size_t) mutable {
      filters.clear();
      for (size_t first = 0; first + n_keys <= keys.size(); first += n_keys) {
        policy.CreateFilter(&keys[first], static_cast<int>(n_keys), &filters);
      }
      return filters.size();
    };
  };
  row("create", "C++", compare(n_filters, creating(*theirs), creating(*ours)));
  if (n_keys == 50) {
    std::vector<const char *> pointers;
    std::vector<size_t> lengths;
    for (const leveldb::Slice &key : keys) {
      pointers.push_back(key.data());
      lengths.push_back(key.size());
    }
    const Work work = [&](size_t) {
      size_t bytes = 0;
      for (size_t first = 0; first + n_keys <= keys.size(); first += n_keys) {
        size_t length;
        char *filter =
            bloomline_policy_create_filter(direct.get(), &pointers[first], &lengths[first], n_keys, &length);
        bytes += length;
        std::free(filter);
      }
      return bytes;
    };
    row("create", "C", compare(n_filters, creating(*theirs), work));
  }

  for (const bool present : {false, true}) {
    const std::vector<Queries> all = all_queries(packed, n_keys, present);
    const char *what = present ? "may match, present" : "may match, absent";
    const auto through_class = [&](const leveldb::FilterPolicy &policy, const Filters &filters) {
      return querying(all, filters, [&policy](const leveldb::Slice &key, const leveldb::Slice &filter) {
        return policy.KeyMayMatch(key, filter);
      });
    };
    const Work of_theirs = through_class(*theirs, their_filters);
    const Work of_ours = through_class(*ours, our_filters);
    if (present && (of_theirs(0) != kQueries || of_ours(0) != kQueries)) throw std::runtime_error("keys lost");
    row(what, "C++", compare(kQueries, of_theirs, of_ours));
    if (n_keys != 50) continue;
    const Work by_c = querying(all, our_filters, [&](const leveldb::Slice &key, const leveldb::Slice &filter) {
      return bloomline_policy_key_may_match(direct.get(), key.data(), key.size(), filter.data(),
                                            filter.size());
    });
    row(what, "C", compare(kQueries, of_theirs, by_c));
  }
}

}  // namespace

int main(int argc, char **argv) {
  if (argc > 1) rounds = std::strtoull(argv[1], nullptr, 10);
  if (argc > 2 || rounds == 0) {
    std::fprintf(stderr, "usage: %s [ROUNDS]\n", argv[0]);
    return 2;
  }
  std::printf(
      "%.0f bits per key, random keys of 16 bytes, filters and keys in the caches. Medians of %zu rounds, in\n"
      "nanoseconds. Ratio: bloomline ÷ LevelDB in the same round, median (quartiles).\n\n",
      kBitsPerKey, rounds);
  std::printf(
      "| | keys | API | LevelDB, bytes | bloomline, bytes | LevelDB, ns | bloomline, ns | ratio |\n"
      "|---|---:|---|---:|---:|---:|---:|---:|\n");
  try {
    for (const size_t n_keys : {10, 20, 34, 50, 100, 190, 1000}) measure(n_keys);
  } catch (const std::exception &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
