// LevelDB's own filter policy and bloomline's, without a database, with filters and keys in the caches:
// nanoseconds to create a filter and to query it for a key. Prints Markdown.
//
// Both are timed in each round, so that a temporary slowdown of the machine affects both; ratios are
// quartiles of the rounds' ratios.
#include <functional>
#include <random>

#include "leveldb_bench.h"

namespace {

constexpr size_t kRounds = 51;
constexpr size_t kQueries = 16 << 10;
constexpr size_t kMaxFilters = 512;
// All filters together, and all their keys, each fit in part of a second-level cache.
constexpr size_t kMaxFilterBytes = 256 << 10;
constexpr size_t kMaxKeys = 32 << 10;

// Keeps the compiler from removing a loop.
volatile size_t sink;

// Runs a number of operations, others in each round, and returns a value that depends on their results.
using Work = std::function<size_t(size_t round)>;

// Filters of `n_keys` each, built from `keys` in their order, end to end in memory as in a table.
struct Filters {
  Filters(const leveldb::FilterPolicy &policy, const std::vector<leveldb::Slice> &keys, size_t n_keys) {
    std::vector<size_t> starts;
    for (size_t first = 0; first < keys.size(); first += n_keys) {
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
  Keys keys;
  std::vector<uint32_t> filters;
};

// Queries for keys that are in the filters, or for absent keys.
std::array<Queries, 8> all_queries(const Keys &keys, size_t n_keys, bool present) {
  std::mt19937 random(5);
  std::array<Queries, 8> all;
  for (Queries &queries : all) {
    for (size_t i = 0; i < kQueries; ++i) {
      const size_t key = random() % keys.size();
      queries.keys.add(present ? keys[key] : leveldb::Slice(key_of((size_t{1} << 40) + i)));
      queries.filters.push_back(static_cast<uint32_t>(key / n_keys));
    }
  }
  return all;
}

// Measures filters of `n_keys`.
void measure(size_t n_keys) {
  const Policy theirs = their_policy(), ours = our_policy();
  const size_t n_filters = std::min({kMaxFilters, kMaxFilterBytes * 8 / kBitsPerKey / n_keys, kMaxKeys / n_keys});

  Keys packed;
  for (size_t i = 0; i < n_filters * n_keys; ++i) packed.add(key_of(i));
  std::vector<leveldb::Slice> keys;
  for (size_t i = 0; i < packed.size(); ++i) keys.push_back(packed[i]);
  const Filters their_filters(*theirs, keys, n_keys), our_filters(*ours, keys, n_keys);

  // Prints nanoseconds per operation, of `n` operations.
  const auto cell = [&](size_t n, const Work &of_theirs, const Work &of_ours) {
    std::vector<double> their_times, our_times;
    for (size_t round = 0; round < kRounds; ++round) {
      for (const bool is_ours : {round % 2 == 1, round % 2 == 0}) {
        const Work &work = is_ours ? of_ours : of_theirs;
        // The first run warms the caches.
        sink = work(round);
        (is_ours ? our_times : their_times).push_back(nanoseconds(n, [&] { sink = work(round + 1); }));
      }
    }
    std::printf("| %.1f, %.1f (%.2f) ", quartiles(their_times)[1], quartiles(our_times)[1],
                ratios(our_times, their_times)[1]);
  };

  // All into one string, as LevelDB does for a table.
  const auto creating = [&](const leveldb::FilterPolicy &policy) -> Work {
    return [&, filters = std::string()](size_t) mutable {
      filters.clear();
      for (size_t first = 0; first < keys.size(); first += n_keys) {
        policy.CreateFilter(&keys[first], static_cast<int>(n_keys), &filters);
      }
      return filters.size();
    };
  };
  std::printf("| %zu ", n_keys);
  cell(n_filters, creating(*theirs), creating(*ours));

  for (const bool present : {false, true}) {
    const std::array<Queries, 8> all = all_queries(packed, n_keys, present);
    const auto querying = [&](const leveldb::FilterPolicy &policy, const Filters &filters) -> Work {
      return [&](size_t round) {
        const Queries &queries = all[round % all.size()];
        size_t matched = 0;
        for (size_t i = 0; i < kQueries; ++i) {
          matched += policy.KeyMayMatch(queries.keys[i], filters.slices[queries.filters[i]]);
        }
        return matched;
      };
    };
    const Work of_theirs = querying(*theirs, their_filters), of_ours = querying(*ours, our_filters);
    if (present && (of_theirs(0) != kQueries || of_ours(0) != kQueries)) throw std::runtime_error("keys lost");
    cell(kQueries, of_theirs, of_ours);
  }
  std::printf("|\n");
}

}  // namespace

int main() {
  std::printf(
      "\n## Times of the policies\n\nNanoseconds of LevelDB's policy, of bloomline's, and their ratio. Medians of %zu rounds, with %d bits per key, random keys\n"
      "of 16 bytes, and filters in the caches.\n\n"
      "| keys per filter | create | may match, absent | may match, present |\n|---:|---:|---:|---:|\n",
      kRounds, kBitsPerKey);
  for (const size_t n_keys : {10, 34, 1000}) measure(n_keys);
}
