// The header against the tables of tests/golden, which docs/testing.md describes, and each kernel of this CPU against
// the portable one, on random filters.
//
//   format GOLDEN-FOLDER [FILTERS [SEED]]      100 filters by default
#include <fstream>
#include <iterator>
#include <map>

#include "support.h"

namespace {

using Row = std::map<std::string, std::string>;
using Texts = std::vector<std::string>;

std::string folder;

uint64_t number(const std::string &text) { return std::strtoull(text.c_str(), nullptr, 10); }
unsigned small(const std::string &text) { return static_cast<unsigned>(number(text)); }
uint64_t hex(const std::string &text) { return std::strtoull(text.c_str(), nullptr, 16); }

std::string from_hex(const std::string &digits) {
  std::string bytes;
  for (size_t i = 0; i < digits.size(); i += 2) bytes += static_cast<char>(hex(digits.substr(i, 2)));
  return bytes;
}

std::string golden(const std::string &name) {
  std::ifstream file(folder + "/" + name, std::ios::binary);
  CHECK(file, name);
  return {std::istreambuf_iterator<char>(file), {}};
}

Texts split(const std::string &text, char separator) {
  Texts parts(1);
  for (const char c : text) c == separator ? void(parts.emplace_back()) : parts.back().push_back(c);
  return parts;
}

// The rows, by the names of the columns.
std::vector<Row> table(const std::string &name, size_t n_rows) {
  const Texts lines = split(golden(name), '\n'), names = split(lines.front(), '\t');
  CHECK(lines.size() == n_rows + 2 && lines.back().empty(), name);
  std::vector<Row> rows(n_rows);
  for (size_t i = 0; i < n_rows; ++i) {
    const Texts fields = split(lines[i + 1], '\t');
    CHECK(fields.size() == names.size(), name);
    for (size_t j = 0; j < names.size(); ++j) rows[i][names[j]] = fields[j];
  }
  return rows;
}

// Texts, of which `a..b` stands for the numbers from a to b - 1, or all keys of keys.tsv.
Texts keys_of(const Row &file) {
  Texts keys;
  for (const std::string &text : split(file.at("keys"), ' ')) {
    const size_t dots = text.find("..");
    if (text == "keys.tsv") {
      for (const Row &row : table(text, 70)) keys.push_back(from_hex(row.at("key")));
    } else if (dots != std::string::npos) {
      for (uint64_t i = number(text); i < number(text.substr(dots + 2)); ++i) keys.push_back(std::to_string(i));
    } else if (!text.empty()) {
      keys.push_back(text);
    }
  }
  return keys;
}

void hashes() {
  for (const Row &row : table("hashes.tsv", 155)) {
    std::string key(small(row.at("key length")), '\0');
    for (size_t i = 0; i < key.size(); ++i) key[i] = static_cast<char>(131 * i + key.size());
    for (const auto &[name, hash] : row) {
      const uint64_t seed = hex(name.substr(name.rfind(' ') + 1));
      CHECK(name == "key length" || hash_key(key, seed) == hex(hash), row.at("key length") + " bytes, " + name);
    }
  }
}

template <class Key>
void check_key(const Row &row, const Key &key) {
  filter one = *filter::with_sizing(*sizing::of(1, 6), 0x5eed);
  CHECK(hash_key(key) == hex(row.at("hash, seed 0")) && one.hash_key(key) == hex(row.at("hash, seed 5eed")));
  CHECK(one.view().hash_key(key) == one.hash_key(key));
  CHECK(!one.contains(key) && one.insert(key) && !one.insert(key) && one.contains(key) && one.view().contains(key));
}

void keys() {
  for (const Row &row : table("keys.tsv", 70)) {
    const std::string bytes = from_hex(row.at("key")), &type = row.at("type");
    test_case = type + " " + row.at("value");
    check_key(row, bytes);
    check_key(row, std::string_view(bytes));
    check_key(row, std::vector<unsigned char>(bytes.begin(), bytes.end()));
    if (bytes.find('\0') == std::string::npos) check_key(row, bytes.c_str());
    const auto as = [&](const char *name, auto zero) {
      if (type == name) check_key(row, static_cast<decltype(zero)>(number(row.at("value"))));
    };
    as("int8", int8_t{}), as("int16", int16_t{}), as("int32", int32_t{}), as("int64", int64_t{}), as("int64", 0LL);
    as("uint8", uint8_t{}), as("uint16", uint16_t{}), as("uint32", uint32_t{}), as("uint64", uint64_t{});
    as("uint64", 0ULL);
  }
}

void masks() {
  for (const Row &row : table("masks.tsv", 12 * 16)) {
    const uint64_t hash = hex(row.at("hash"));
    test_case = row.at("hash") + ", k = " + row.at("k");
    filter single = *filter::with_sizing(*sizing::of(1, small(row.at("k")))), batch = *single.to_filter();
    CHECK(single.insert_hash(hash) && !single.insert_hash(hash));
    batch.insert_batch(&hash, 1);
    const std::string lanes = single.to_compact();
    CHECK(batch.to_compact() == lanes);
    for (size_t byte = 0; byte < 64; ++byte) {
      const unsigned mask = hex(row.at("lane " + std::to_string(byte / 8))) >> byte % 8 * 8 & 255;
      CHECK(static_cast<unsigned char>(lanes[byte % (lanes.size() - 1)]) == mask);
      std::string others = std::string(64, '\xff') + lanes.back();
      for (int bit = 0; bit < 8; ++bit) {
        // Absent without any one of its bits.
        others[byte] = static_cast<char>(~(1 << bit));
        CHECK(filter_view::from_compact(others)->contains_hash(hash) == ((mask >> bit & 1) == 0));
      }
    }
  }
}

void blocks() {
  for (const Row &row : table("blocks.tsv", 14)) {
    for (const size_t n_blocks : {1u, 2u, 3u, 7u, 100u, 1000u, 4097u}) {
      test_case = row.at("hash") + " of " + std::to_string(n_blocks) + " blocks";
      std::string bytes(64 * n_blocks, '\0');
      bytes.replace(64 * small(row.at("block of " + std::to_string(n_blocks))), 64, 64, '\xff');
      CHECK(filter_view::from_compact(bytes + '\x2f')->contains_hash(hex(row.at("hash"))));
    }
  }
}

template <class Filter>
void check_file(const Row &row, const Filter &filter) {
  const std::string &known = row.at("known keys");
  const sizing shape = filter.shape();
  CHECK(shape.n_blocks() == number(row.at("size")) && shape.n_modules() == small(row.at("modules")));
  CHECK(shape.k() == small(row.at("k")) && filter.seed() == hex(row.at("seed")));
  CHECK(filter.known_keys() == (known == "unknown" ? std::nullopt : std::optional<uint64_t>(number(known))));
  for (const std::string &key : keys_of(row)) CHECK(filter.contains(key), key);
  uint64_t n_found = 0;
  for (int i = 1000; i < 2000; ++i) n_found += filter.contains(std::to_string(i));
  CHECK(n_found == number(row.at("found")), std::to_string(n_found));
}

template <class Result>
void check_error(const Result &result, const Row &row) {
  static const char *const kKinds[] = {"Argument", "", "Unrecognized", "Unsupported", "Damaged"};
  CHECK(!result && kKinds[static_cast<size_t>(result.error().kind)] == row.at("error"), result.error().message);
  CHECK(result.error().message.find(row.at("says")) != std::string::npos, result.error().message);
}

void files() {
  for (const Row &row : table("files.tsv", 49)) {
    const std::string &kind = row.at("kind"), bytes = golden(row.at("file")), written = golden(row.at("rewritten"));
    test_case = row.at("file");
    const bool is_compact = kind == "compact";
    if (!is_compact && kind != "standalone") {
      check_error(filter_view::from_standalone(bytes), {{"error", "Unrecognized"}, {"says", kind}});
      continue;
    }
    const filter_view view = is_compact ? *filter_view::from_compact(bytes) : *filter_view::from_standalone(bytes);
    const filter copy = is_compact ? *filter::from_compact(bytes) : *filter::from_standalone(bytes);
    check_file(row, view);
    check_file(row, copy);
    CHECK((is_compact ? copy.to_compact() : copy.to_standalone()) == written);
    if (row.at("inserts") != "yes") continue;
    filter made = *filter::with_sizing(view.shape(), view.seed());
    for (const std::string &key : keys_of(row)) made.insert(key);
    // After inserts, the footer does not have the number of keys.
    const std::string again = is_compact ? made.to_compact() : made.to_standalone();
    const size_t same = written.size() - (is_compact || made.known_keys() ? 0 : 64);
    CHECK(again.size() == written.size() && again.substr(0, same) == written.substr(0, same));
  }
}

void damaged() {
  std::map<std::string, Row> files;
  for (const Row &row : table("files.tsv", 49)) files[row.at("file")] = row;
  for (const Row &row : table("damaged.tsv", 655)) {
    const Row &file = files.at(row.at("file"));
    const std::string &reader = row.at("reader");
    const size_t from = small(row.at("from")), to = small(row.at("to"));
    test_case = row.at("file") + ": " + row.at("case");
    const std::string damaged = golden(row.at("file")).replace(from, to - from, from_hex(row.at("bytes")));
    const auto view = reader == "compact" ? filter_view::from_compact(damaged) : filter_view::from_standalone(damaged);
    const auto copy = reader == "compact" ? filter::from_compact(damaged) : filter::from_standalone(damaged);
    if (reader != "compact" && reader != "standalone") {
      CHECK(!view || file.at("kind") == "standalone");
    } else if (row.at("error") != "accepted") {
      check_error(view, row);
      check_error(copy, row);
      const bool is_unusable = !filter_view::is_compact(damaged) && filter_view::compact_contains_hash(damaged, 0);
      CHECK(reader != "compact" || is_unusable);
      const auto unverified = filter_view::from_standalone_unverified(damaged);
      CHECK(reader == "compact" || !unverified || unverified->verify());
    } else {
      // A forged number of keys makes no filter empty.
      CHECK(view && copy && copy->known_keys() != std::optional<uint64_t>(0));
      for (const std::string &key : keys_of(file)) CHECK(view->contains(key) && copy->contains(key), key);
    }
  }
}

void sizes() {
  for (const Row &row : table("sizes.tsv", 341)) {
    const bool is_rate = row.at("request") == "rate";
    const double value = std::strtod(row.at("value").c_str(), nullptr);
    const uint64_t keys = number(row.at("keys"));
    std::optional<unsigned> most;
    if (!row.at("most modules").empty()) most = small(row.at("most modules"));
    test_case = row.at("request") + " " + row.at("value") + ", " + row.at("keys") + " keys, " + row.at("most modules");
    const auto size = is_rate ? sizing::for_fpr(keys, value, most) : sizing::for_bits_per_key(keys, value, most);
    if (!row.at("error").empty()) {
      check_error(size, row);
      continue;
    }
    CHECK(size, size.error().message);
    CHECK(size->n_modules() == small(row.at("modules")) && size->n_blocks() == number(row.at("blocks")));
    CHECK(size->k() == small(row.at("k")) && size->byte_len() == 64 * size->n_blocks());
    CHECK(size->rounded_to_fold().n_blocks() == number(row.at("foldable")));
    if (row.at("tail").empty()) continue;
    auto builder = is_rate ? filter_builder::with_fpr(value, most) : filter_builder::with_bits_per_key(value, most);
    for (uint64_t key = 0; key < keys; ++key) builder->insert(key);
    std::string compact;
    CHECK(builder->compact_len() == number(row.at("compact bytes")) && !builder->finish_compact(compact));
    const std::string tail = from_hex(row.at("tail"));
    CHECK(compact.size() == number(row.at("compact bytes")) && compact.substr(compact.size() - tail.size()) == tail);
  }
}

template <class Make>
auto portable_of(const Make &make) {
  const detail::kernel before = detail::chosen_kernel;
  detail::use_kernel(detail::kernel::portable);
  auto made = make();
  detail::use_kernel(before);
  return made;
}

const Fenced for_bytes(8 << 20), for_hashes(1 << 16), for_answers(1 << 16);

template <class Filter>
void check_answers(const Filter &filter, const std::vector<uint64_t> &hashes, const std::string &expected) {
  const size_t n = hashes.size();
  // The byte behind the answers must stay.
  char *const found = for_answers.copy((std::string(n, '\2') + '\3').c_str(), n + 1, n % 3);
  filter.contains_batch(for_hashes.copy(hashes.data(), n), n, reinterpret_cast<bool *>(found));
  CHECK(std::string(found, n + 1) == expected + '\3');
  for (size_t i = 0; i < n; ++i) CHECK(filter.contains_hash(hashes[i]) == (expected[i] != 0));
}

// Answers as the portable kernel's, at the end of readable memory and at another alignment.
void check_lookups(const std::string &compact, const std::vector<uint64_t> &hashes, size_t gap) {
  const auto portable = portable_of([&] { return *filter_view::from_compact(compact); });
  std::string expected;
  for (const uint64_t hash : hashes) expected += static_cast<char>(portable.contains_hash(hash));
  for (const size_t offset : {size_t{0}, gap}) {
    const bytes at(for_bytes.copy(compact.data(), compact.size(), offset), compact.size());
    check_answers(*filter_view::from_compact(at), hashes, expected);
    for (size_t i = 0; i < hashes.size(); ++i) {
      CHECK(filter_view::compact_contains_hash(at, hashes[i]) == (expected[i] != 0));
    }
  }
  const filter copy = *filter::from_compact(compact);
  check_answers(copy, hashes, expected);
  CHECK(copy.to_compact().size() <= compact.size());
  check_answers(*filter::from_compact(copy.to_compact()), hashes, expected);
}

void every_length_of_short_filters_and_batches(Random random) {
  for (size_t length = 0; length <= 300; ++length) {
    for (unsigned k = 1; k <= 16; k += length < 64 ? 1 : 5) {
      const size_t n_lanes = length < 64 && length % 8 != 0 ? length : 48 * random.between(1, 3);
      const bool is_several = n_lanes >= 64 && random.once_in(2);
      test_case = std::to_string(n_lanes) + " lanes, k " + std::to_string(k) + ", " + std::to_string(length) + " keys";
      std::string compact(8 * n_lanes, '\0');
      // Nearly full, so that answers depend on the last probes.
      for (char &byte : compact) byte = static_cast<char>(random.next() | random.next() | random.next());
      if (is_several) compact += static_cast<char>(random.between(2, 3));
      check_lookups(compact + static_cast<char>((is_several ? 0x2f : 0x1f) + k), random.hashes(length), length % 64);
    }
  }
}

void random_filter(Random random, bool is_large) {
  const auto n_modules = static_cast<unsigned>(random.once_in(2) ? 1 : random.between(2, 16));
  const size_t n_blocks = (is_large ? 100'000 : random.below(random.once_in(8) ? 5000 : 100)) / n_modules + 1;
  const sizing shape = *sizing::of(n_blocks * n_modules, static_cast<unsigned>(random.between(1, 16)), n_modules);
  std::vector<uint64_t> hashes = random.hashes(300);
  hashes[1] = hashes[0];
  filter single = *filter::with_sizing(shape), batch = *filter::with_sizing(shape);
  filter portable = portable_of([&] { return *filter::with_sizing(shape); });
  for (const uint64_t hash : hashes) CHECK(single.insert_hash(hash) == portable.insert_hash(hash));
  for (size_t i = 0, n; i < hashes.size(); i += n) {
    n = random.between(1, hashes.size() - i);
    batch.insert_batch(for_hashes.copy(&hashes[i], n), n);
  }
  CHECK(single.to_compact() == portable.to_compact() && batch.to_compact() == portable.to_compact());
  check_lookups(single.to_compact(), hashes, random.below(64));
  check_lookups(single.to_compact(), random.hashes(random.below(300)), random.below(64));
}

// Local arrays, whose bytes the compiler knows, so it must be told that assembly reads them.
template <size_t n>
void check_local_buffer(uint64_t hash) {
  unsigned char buffer[n];
  buffer[n - 1] = 0x25;
  const filter_view view = *filter_view::from_compact({buffer, n});
  for (const bool is_full : {false, true, false}) {
    std::memset(buffer, is_full ? 255 : 0, n - 1);
    CHECK(view.contains_hash(hash) == is_full && filter_view::compact_contains_hash({buffer, n}, hash) == is_full);
  }
}

#if defined(BLOOMLINE_ASSEMBLY)
// Callers that are compiled for newer CPUs than this build keep eight values in vector registers, whole, while the
// assembly of inserts and lookups runs.
#define KEEPS_REGISTERS(name, cpu, n_bytes) \
  __attribute__((noinline, target(cpu))) uint64_t name(filter &keys, const std::string &compact, uint64_t x) { \
    typedef uint64_t vector __attribute__((vector_size(n_bytes))); \
    const vector one = vector{} + 1; \
    vector a = one * x, b = a + x, c = b + x, d = c + x, e = d + x, f = e + x, g = f + x, h = g + x; \
    uint64_t sum = 0; \
    for (int i = 0; i < 20; ++i) { \
      sum = 2 * sum + keys.insert_hash(x += 0x9e3779b97f4a7c15); \
      sum = 2 * sum + keys.contains_hash(~x) + filter_view::compact_contains_hash(compact, x); \
      a ^= h + one, b ^= a + one, c ^= b + one, d ^= c + one, e ^= d + one, f ^= e + one, g ^= f + one, h ^= g + one; \
    } \
    const vector all = a + 3 * b + 5 * c + 7 * d + 9 * e + 11 * f + 13 * g + 15 * h; \
    for (unsigned i = 0; i < n_bytes / 8; ++i) sum = 31 * sum + all[i]; \
    return sum; \
  }
KEEPS_REGISTERS(keeps_xmm, "sse4.2", 16)
KEEPS_REGISTERS(keeps_ymm, "avx2", 32)
KEEPS_REGISTERS(keeps_zmm, "avx512f", 64)

void check_registers(uint64_t seed) {
  test_case = "registers";
  filter full = *filter::with_sizing(*sizing::of(100, 5));
  for (int i = 0; i < 5000; ++i) full.insert(i);
  const std::string compact = full.to_compact();
  for (const unsigned k : {6u, 11u}) {
    const auto run = [&](auto keeps) {
      filter keys = *filter::with_sizing(*sizing::of(3, k));
      return keeps(keys, compact, seed);
    };
    const auto same = [&](auto keeps) { CHECK(run(keeps) == portable_of([&] { return run(keeps); })); };
    same(keeps_xmm);
    if (__builtin_cpu_supports("avx2")) same(keeps_ymm);
    if (__builtin_cpu_supports("avx512f")) same(keeps_zmm);
  }
}
#else
void check_registers(uint64_t) {}
#endif

}  // namespace

int main(int argc, char **argv) {
  if (argc < 2) return std::fprintf(stderr, "usage: %s GOLDEN-FOLDER [FILTERS [SEED]]\n", argv[0]), 2;
  folder = argv[1];
  const uint64_t n_filters = argc > 2 ? number(argv[2]) : 100, seed = argc > 3 ? number(argv[3]) : 1;
  hashes(), keys(), sizes();
  with_each_kernel([&] {
    masks(), blocks(), files(), damaged();
    check_local_buffer<17>(seed), check_local_buffer<41>(seed);
    check_local_buffer<65>(seed), check_local_buffer<641>(seed);
    check_registers(seed);
    every_length_of_short_filters_and_batches(Random{seed});
    for (uint64_t i = 0; i < n_filters; ++i) {
      test_case = "filter of seed " + std::to_string(seed + i);
      random_filter(Random{seed + i}, i % 10 == 9);
    }
  });
}
