// False-positive rates of LevelDB's own filter policy and of bloomline's, by the number of keys in a filter and by the
// form of the keys. Prints Markdown, and writes a plot of the first form.
//
//   leveldb_fpr PLOT.svg
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

void plot(const char *path, const Series &theirs, const Series &ours) {
  const char *const ink = "#282828";
  const auto x_of = [](size_t keys) { return 60 + 680.0 * static_cast<double>(keys - kFewest) / (kMost - kFewest); };
  const auto y_of = [](double percent) { return 40 + 80 * (2 - std::log10(percent)); };
  std::ofstream svg(path);
  svg << std::fixed << std::setprecision(1)
      << "<svg width='860' height='340' viewBox='0 0 860 340' xmlns='http://www.w3.org/2000/svg' "
         "font-family='sans-serif' font-size='12'>\n<rect width='860' height='340' fill='#FCFCFC'/>\n";
  const auto text = [&](double x, double y, const char *anchor, const char *color, const std::string &text) {
    svg << "<text x='" << x << "' y='" << y << "' text-anchor='" << anchor << "' fill='" << color << "'>" << text
        << "</text>\n";
  };
  // The name stands beside the points, at the height of this rate.
  const auto points = [&](const char *name, double height, const char *color, const Series &rates) {
    svg << "<path stroke-linecap='round' stroke-width='4' stroke='" << color << "' d='";
    for (size_t i = 0; i < rates.size(); ++i) svg << "M" << x_of(kFewest + i) << " " << y_of(rates[i]) << "h0";
    svg << "'/>\n";
    text(752, y_of(height) + 4, "start", color, name);
  };
  text(60, 24, "start", ink,
       "False-positive rate by keys per filter: even numbers of 16 digits, 10 bits per key; queries for the odd "
       "numbers");
  for (const std::string percent : {"0.1", "1", "10", "100"}) {
    const double y = y_of(std::stod(percent));
    svg << "<path d='M60 " << y << "H740' stroke='#DDDDDD'/>\n";
    text(52, y + 4, "end", ink, percent + "%");
  }
  for (const size_t keys : {8, 32, 64, 96, 128, 160, 192, 224, 256}) {
    text(x_of(keys), 326, "middle", ink, std::to_string(keys));
  }
  points("LevelDB's filter", 4, "#0064B4", theirs);
  points("bloomline", 0.5, "#D53E00", ours);
  svg << "</svg>\n";
  if (!svg.flush()) throw std::runtime_error("the plot cannot be written");
}

}  // namespace

int main(int argc, char **argv) {
  if (argc != 2) throw std::invalid_argument("usage: leveldb_fpr PLOT.svg");
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
  plot(argv[1], theirs.rates[0], ours.rates[0]);
}
