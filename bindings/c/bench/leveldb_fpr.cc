// False-positive rates of LevelDB's own filter policy and of bloomline's, by the number of keys in a filter and by the
// form of the keys. Prints Markdown, and writes the rates of the first form, which the report draws.
//
//   leveldb_fpr PLOT.json
#include <cmath>
#include <iomanip>

#include "leveldb_bench.h"

namespace {

constexpr size_t kQueries = 100'000;
constexpr size_t kFewest = 8, kMost = 256;

std::string decimal(uint64_t number) {
  char key[21];
  std::snprintf(key, sizeof key, "%016llu", static_cast<unsigned long long>(number));
  return key;
}

std::string big_endian(uint64_t number) {
  std::string key;
  for (int shift = 56; shift >= 0; shift -= 8) key.push_back(static_cast<char>(number >> shift));
  return key;
}

struct Form {
  const char *name;
  std::string (*key)(uint64_t number);
  // Present keys are its multiples; absent keys are the numbers between them.
  size_t step;
};

constexpr Form kForms[] = {
    {"16 digits, every 2nd number", decimal, 2},
    {"16 digits, every 4th number", decimal, 4},
    {"8 bytes big-endian, every 2nd number", big_endian, 2},
    {"random", key_of, 2},
};

// By number of keys, from kFewest on.
using Series = std::vector<double>;

struct Measured {
  // Of each form, in percent.
  Series rates[std::size(kForms)];
};

double rate(const leveldb::FilterPolicy &policy, const Form &form, size_t n_keys, std::string *filter) {
  size_t queries = 0, matched = 0;
  for (uint64_t filter_number = 0; queries < kQueries; ++filter_number) {
    // Anywhere among 2^40 multiples, as one data block of many.
    const uint64_t first = (mix(filter_number) >> 24) * form.step, end = first + n_keys * form.step;
    std::vector<std::string> keys;
    for (uint64_t i = first; i < end; i += form.step) keys.push_back(form.key(i));
    const std::vector<leveldb::Slice> slices(keys.begin(), keys.end());
    filter->clear();
    policy.CreateFilter(slices.data(), static_cast<int>(n_keys), filter);
    for (uint64_t i = first; i < end; ++i) {
      const bool is_present = i % form.step == 0, matches = policy.KeyMayMatch(form.key(i), *filter);
      if (is_present && !matches) throw std::runtime_error("keys lost");
      queries += !is_present;
      matched += !is_present && matches;
    }
  }
  return 100 * static_cast<double>(matched) / static_cast<double>(queries);
}

Measured measure(const Policy &policy) {
  Measured measured;
  std::string filter;
  for (size_t n_keys = kFewest; n_keys <= kMost; ++n_keys) {
    for (size_t form = 0; form < std::size(kForms); ++form) {
      measured.rates[form].push_back(rate(*policy, kForms[form], n_keys, &filter));
    }
  }
  return measured;
}

void save(const char *path, const Series &theirs, const Series &ours) {
  std::ofstream json(path);
  json << std::setprecision(3) << "{\"title\":\"\",\"columns\":[\n";
  for (size_t keys = kFewest; keys <= kMost; ++keys) json << (keys > kFewest ? "," : "") << '"' << keys << '"';
  const auto row = [&](const char *name, const Series &rates) {
    json << "[\"" << name << "\",[";
    for (const double &rate : rates) json << (&rate == rates.data() ? "" : ",") << rate;
    json << "]]";
  };
  json << "],\"rows\":[\n";
  row("LevelDB's filter", theirs);
  json << ",\n";
  row("bloomline", ours);
  json << "]}\n";
  if (!json.flush()) throw std::runtime_error("the rates cannot be written");
}

}  // namespace

int main(int argc, char **argv) {
  if (argc != 2) throw std::invalid_argument("usage: leveldb_fpr PLOT.json");
  const Measured theirs = measure(their_policy()), ours = measure(our_policy());
  std::printf("| keys per filter ");
  for (const Form &form : kForms) std::printf("| LevelDB: %s ", form.name);
  std::printf("| bloomline: all four |\n|---:");
  for (size_t column = 0; column < std::size(kForms) + 1; ++column) std::printf("|---:");
  std::printf("|\n");
  const auto row = [&](const std::string &name, auto value) {
    std::printf("| %s ", name.c_str());
    for (const Series &rates : theirs.rates) std::printf("| %.2f%% ", value(rates));
    Series all;
    for (const Series &rates : ours.rates) all.push_back(value(rates));
    const auto [low, high] = std::minmax_element(all.begin(), all.end());
    std::printf("| %.2f to %.2f%% |\n", *low, *high);
  };
  for (const size_t keys : {8, 32, 128}) {
    row(std::to_string(keys), [&](const Series &series) { return series[keys - kFewest]; });
  }
  row("highest of 8 to 256", [](const Series &series) { return *std::max_element(series.begin(), series.end()); });
  save(argv[1], theirs.rates[0], ours.rates[0]);
}
