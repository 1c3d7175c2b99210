// False-positive rates of LevelDB's own filter policy and of bloomline's, by the number of keys in a filter and by the
// form of the keys. Prints Markdown, and writes a plot of the first form.
//
//   leveldb_fpr PLOT.svg
#include <bloomline/leveldb.h>
#include <leveldb/filter_policy.h>
#include <leveldb/slice.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <numeric>

#include "../tests/leveldb_support.h"

namespace {

constexpr int kBitsPerKey = 10;
constexpr size_t kQueries = 100'000;
constexpr size_t kFewest = 8, kMost = 256;

using Policy = std::unique_ptr<const leveldb::FilterPolicy>;

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

const Form kForms[] = {
    {"16 digits, every 2nd number", decimal, 2},
    {"16 digits, every 4th number", decimal, 4},
    {"8 bytes big-endian, every 2nd number", big_endian, 2},
    {"random", key_of, 2},
};

// In percent, and the bytes of a filter.
struct Measured {
  double fpr;
  size_t bytes;
};

Measured measure(const leveldb::FilterPolicy &policy, const Form &form, size_t n_keys) {
  size_t queries = 0, matched = 0, bytes = 0;
  for (uint64_t filter_number = 0; queries < kQueries; ++filter_number) {
    // Anywhere among 2^40 multiples, as one data block of many.
    const uint64_t first = (mix(filter_number) >> 24) * form.step;
    uint64_t number = first;
    std::vector<std::string> keys;
    for (; keys.size() < n_keys; number += form.step) keys.push_back(form.key(number));
    const std::vector<leveldb::Slice> slices(keys.begin(), keys.end());
    std::string filter;
    policy.CreateFilter(slices.data(), static_cast<int>(n_keys), &filter);
    bytes = filter.size();
    for (uint64_t i = first; i < number; ++i) {
      const bool matches = policy.KeyMayMatch(form.key(i), filter);
      if (i % form.step != 0) {
        ++queries;
        matched += matches;
      } else if (!matches) {
        throw std::runtime_error("keys lost");
      }
    }
  }
  return {100 * static_cast<double>(matched) / static_cast<double>(queries), bytes};
}

// By number of keys, from kFewest on.
using Rates = std::vector<double>;

class Plot {
 public:
  explicit Plot(const std::string &path) : path_(path) {
    svg_ =
        "<svg width='860' height='340' viewBox='0 0 860 340' xmlns='http://www.w3.org/2000/svg' "
        "font-family='sans-serif' font-size='12'>\n<rect width='860' height='340' fill='#FCFCFC'/>\n";
    text(60, 24, "start", kInk,
         "False-positive rate by keys per filter: even numbers of 16 digits, 10 bits per key; queries for the odd "
         "numbers");
    for (const double percent : {0.1, 1.0, 10.0, 100.0}) {
      svg_ += "<path d='M60 " + number(y(percent)) + "H740' stroke='#DDDDDD'/>\n";
      text(52, y(percent) + 4, "end", kInk, (percent < 1 ? "0.1" : number(percent, 0)) + " %");
    }
    for (const size_t keys : {8, 32, 64, 96, 128, 160, 192, 224, 256}) {
      text(x(keys), 326, "middle", kInk, std::to_string(keys));
    }
  }

  // The name stands beside the points, at the height of this rate.
  void points(const char *name, double height, const char *color, const Rates &rates) {
    svg_ += "<path stroke-linecap='round' stroke-width='4' stroke='" + std::string(color) + "' d='";
    for (size_t i = 0; i < rates.size(); ++i) {
      svg_ += "M" + number(x(kFewest + i)) + " " + number(y(rates[i])) + "h0";
    }
    svg_ += "'/>\n";
    text(752, y(height) + 4, "start", color, name);
  }

  void write() const { write_file(path_, svg_ + "</svg>\n"); }

 private:
  static constexpr const char *kInk = "#282828";

  static double x(size_t keys) {
    return 60 + 680 * static_cast<double>(keys - kFewest) / static_cast<double>(kMost - kFewest);
  }

  static double y(double percent) { return 40 + 80 * (2 - std::log10(percent)); }

  static std::string number(double value, int decimals = 1) {
    char text[16];
    std::snprintf(text, sizeof text, "%.*f", decimals, value);
    return text;
  }

  void text(double x, double y, const char *anchor, const std::string &color, const std::string &text) {
    svg_ += "<text x='" + number(x) + "' y='" + number(y) + "' text-anchor='" + anchor + "' fill='" + color + "'>" +
            text + "</text>\n";
  }

  std::string path_, svg_;
};

void compare(const char *plot_path) {
  const Policy theirs(leveldb::NewBloomFilterPolicy(kBitsPerKey));
  const Policy ours = std::make_unique<bloomline::LevelDBFilterPolicy>(kBitsPerKey);

  constexpr size_t kSizes = kMost - kFewest + 1, kNForms = std::size(kForms);
  std::vector<Rates> their_rates(kNForms), our_rates(kNForms);
  Rates their_bytes, our_bytes;
  for (size_t size = 0; size < kSizes; ++size) {
    for (size_t form = 0; form < kNForms; ++form) {
      const Measured t = measure(*theirs, kForms[form], kFewest + size);
      const Measured o = measure(*ours, kForms[form], kFewest + size);
      their_rates[form].push_back(t.fpr);
      our_rates[form].push_back(o.fpr);
      if (form > 0) continue;
      their_bytes.push_back(static_cast<double>(t.bytes));
      our_bytes.push_back(static_cast<double>(o.bytes));
    }
  }

  std::printf("| keys per filter ");
  for (const Form &form : kForms) std::printf("| LevelDB: %s ", form.name);
  std::printf("| bloomline: all four | LevelDB, bytes | bloomline, bytes |\n|---:");
  for (size_t column = 0; column < kNForms + 3; ++column) std::printf("|---:");
  std::printf("|\n");
  const auto row = [&](const std::string &name, auto value) {
    std::printf("| %s ", name.c_str());
    double low = 100, high = 0;
    for (size_t form = 0; form < kNForms; ++form) {
      std::printf("| %.2f %% ", value(their_rates[form]));
      low = std::min(low, value(our_rates[form]));
      high = std::max(high, value(our_rates[form]));
    }
    std::printf("| %.2f to %.2f %% | %.0f | %.0f |\n", low, high, value(their_bytes), value(our_bytes));
  };
  for (const size_t keys : {8, 16, 32, 34, 50, 64, 100, 128, 256}) {
    row(std::to_string(keys), [&](const Rates &rates) { return rates[keys - kFewest]; });
  }
  row("mean of 8 to 256", [](const Rates &rates) {
    return std::accumulate(rates.begin(), rates.end(), 0.0) / static_cast<double>(rates.size());
  });

  row("highest of 8 to 256", [](const Rates &rates) { return *std::max_element(rates.begin(), rates.end()); });

  Plot plot(plot_path);
  plot.points("LevelDB's filter", 4, "#0064B4", their_rates[0]);
  plot.points("bloomline", 0.5, "#D53E00", our_rates[0]);
  plot.write();
}

}  // namespace

int main(int argc, char **argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s PLOT.svg\n", argv[0]);
    return 2;
  }
  try {
    compare(argv[1]);
  } catch (const std::exception &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
