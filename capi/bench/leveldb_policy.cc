// LevelDB's own filter policy and bloomline's by themselves, with filters and keys in the caches: nanoseconds
// to create the filter of some keys, and to ask it for a key. Prints Markdown.
//
//   leveldb_policy [ROUNDS]      51
//
// Both take turns in each round, so that what slows the machine down for a while slows both: the ratio is the
// median of the rounds' own.
#include <bloomline/bloomline.h>
#include <bloomline/leveldb.h>
#include <leveldb/filter_policy.h>
#include <leveldb/slice.h>

#include <algorithm>
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
constexpr size_t kMostFilters = 512;
// Of all filters, and of the keys that they are made of: a part of a second-level cache each.
constexpr size_t kMostFilterBytes = 256 << 10;
constexpr size_t kMostKeys = 32 << 10;

size_t rounds = 51;

using Policy = std::unique_ptr<const leveldb::FilterPolicy>;
using CPolicy = std::unique_ptr<bloomline_policy_t, decltype(&bloomline_policy_free)>;

double median(std::vector<double> numbers) {
  std::nth_element(numbers.begin(), numbers.begin() + static_cast<std::ptrdiff_t>(numbers.size() / 2),
                   numbers.end());
  return numbers[numbers.size() / 2];
}

// Keeps what a loop computes from being left out.
volatile size_t sink;

// Runs a number of operations, other ones in each round, and returns what hangs on their results.
using Work = std::function<size_t(size_t round)>;

struct Result {
  double theirs, ours, ratio;
};

// In nanoseconds for each of `n` operations.
Result compare(size_t n, const Work &theirs, const Work &ours) {
  const auto time = [&](const Work &work, size_t round) {
    // The first run is for the caches.
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
  return {median(their_times), median(our_times), median(ratios)};
}

void print(const char *what, size_t n_keys, const char *through, double their_bytes, double our_bytes,
           const Result &result, double bar) {
  std::printf("| %s | %zu | %s | %.1f | %.1f | %.1f | %.1f | %.2f | ", what, n_keys, through, their_bytes,
              our_bytes, result.theirs, result.ours, result.ratio);
  if (bar == 0) {
    std::printf("|\n");
  } else {
    std::printf("%s %.1f |\n", result.ratio <= bar ? "≤" : "**missed:**", bar);
  }
}

// Keys end to end, as LevelDB has them when it makes a filter.
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

// Filters of `n_keys` each, made of `keys` in their order, end to end in memory as in a table.
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

// Which filter is asked for which key: others each time, or branches would be guessed from the time before.
struct Questions {
  Keys keys{0, 0};
  std::vector<uint32_t> filters;
};

// Of keys that are in the filters, or of keys that are not.
std::vector<Questions> all_questions(const Keys &keys, size_t n_keys, bool present) {
  const Keys missing(kQueries, size_t{1} << 40);
  std::mt19937 random(5);
  std::vector<Questions> all(8);
  for (Questions &questions : all) {
    for (size_t i = 0; i < kQueries; ++i) {
      const size_t key = random() % keys.size();
      questions.keys.add(present ? keys[key] : missing[i]);
      questions.filters.push_back(static_cast<uint32_t>(key / n_keys));
    }
  }
  return all;
}

template <typename MayMatch>
Work asking(const std::vector<Questions> &all, const Filters &filters, MayMatch may_match) {
  return [&all, &filters, may_match](size_t round) {
    const Questions &questions = all[round % all.size()];
    size_t matched = 0;
    for (size_t i = 0; i < questions.keys.size(); ++i) {
      matched += may_match(questions.keys[i], filters.slices[questions.filters[i]]);
    }
    return matched;
  };
}

// Of filters of `n_keys`. Through the C functions for the size that has a bar for them.
void measure(size_t n_keys) {
  const Policy theirs(leveldb::NewBloomFilterPolicy(static_cast<int>(kBitsPerKey)));
  const Policy ours = std::make_unique<bloomline::LevelDBFilterPolicy>(kBitsPerKey);
  const CPolicy direct(bloomline_policy_with_bits_per_key(kBitsPerKey), bloomline_policy_free);
  const size_t filter_bytes = static_cast<size_t>(kBitsPerKey) * n_keys / 8;
  const size_t n_filters = std::min({kMostFilters, kMostFilterBytes / filter_bytes, kMostKeys / n_keys});

  const Keys packed(n_filters * n_keys, 0);
  const std::vector<leveldb::Slice> keys = packed.slices();
  const Filters their_filters(*theirs, keys, n_keys), our_filters(*ours, keys, n_keys);
  const auto mean_bytes = [&](const Filters &filters) {
    return static_cast<double>(filters.bytes.size()) / static_cast<double>(n_filters);
  };
  const double their_bytes = mean_bytes(their_filters), our_bytes = mean_bytes(our_filters);
  const auto row = [&](const char *what, const char *through, const Result &result, double bar) {
    print(what, n_keys, through, their_bytes, our_bytes, result, bar);
  };

  const auto creating = [&](const leveldb::FilterPolicy &policy) -> Work {
    // All into one string, as LevelDB has it for a table.
    return [&keys, &policy, n_keys, filters = std::string()](size_t) mutable {
      filters.clear();
      for (size_t first = 0; first + n_keys <= keys.size(); first += n_keys) {
        policy.CreateFilter(&keys[first], static_cast<int>(n_keys), &filters);
      }
      return filters.size();
    };
  };
  row("create", "C++", compare(n_filters, creating(*theirs), creating(*ours)), n_keys == 50 ? 1.0 : 0);
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
    row("create", "C", compare(n_filters, creating(*theirs), work), 0);
  }

  for (const bool there : {false, true}) {
    const std::vector<Questions> all = all_questions(packed, n_keys, there);
    const char *what = there ? "may match, present" : "may match, missing";
    const auto through_class = [&](const leveldb::FilterPolicy &policy, const Filters &filters) {
      return asking(all, filters, [&policy](const leveldb::Slice &key, const leveldb::Slice &filter) {
        return policy.KeyMayMatch(key, filter);
      });
    };
    const Work of_theirs = through_class(*theirs, their_filters);
    const Work of_ours = through_class(*ours, our_filters);
    if (there && (of_theirs(0) != kQueries || of_ours(0) != kQueries)) throw std::runtime_error("keys lost");
    row(what, "C++", compare(kQueries, of_theirs, of_ours), 0);
    if (n_keys != 50) continue;
    const Work by_c = asking(all, our_filters, [&](const leveldb::Slice &key, const leveldb::Slice &filter) {
      return bloomline_policy_key_may_match(direct.get(), key.data(), key.size(), filter.data(),
                                            filter.size());
    });
    row(what, "C", compare(kQueries, of_theirs, by_c), 0.7);
  }
}

}  // namespace

int main(int argc, char **argv) {
  if (argc > 1) rounds = std::strtoull(argv[1], nullptr, 10);
  if (argc > 2 || rounds == 0) {
    std::fprintf(stderr, "usage: %s [ROUNDS]\n", argv[0]);
    return 2;
  }
  std::printf("%.0f bits per key, keys of 16 bytes; medians of %zu rounds, nanoseconds.\n\n", kBitsPerKey,
              rounds);
  std::printf(
      "| | keys | through | LevelDB's, bytes | bloomline, bytes | LevelDB's, ns | bloomline, ns | ratio | "
      "bar |\n"
      "|---|---:|---|---:|---:|---:|---:|---:|---|\n");
  try {
    for (const size_t n_keys : {10, 20, 34, 50, 100, 190, 1000}) measure(n_keys);
  } catch (const std::exception &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
