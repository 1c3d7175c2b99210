// bloomline: a Bloom filter whose lookups read one cache line, for C++17. Needs only the standard library.
//
// A Bloom filter is a small summary of a set of keys, which says that a key is definitely absent or possibly present.
// The bytes are those that bloomline writes and reads in all its languages, as docs/format.md in its repository
// specifies them. docs/glossary.md has the terms.
//
//   auto seen = bloomline::filter::with_fpr(1'000'000, 0.01);  // 1% false positives: 1.24 MB
//   seen->insert("ant");
//   seen->contains("ant");  // true: possibly present
//   seen->contains("elk");  // false: definitely absent
//
// A filter has modules, usually one, of blocks of 64 bytes. A key sets k bits in one block of each module. Compact
// bytes are for a container with a checksum of its own, standalone bytes for files and networks.
//
// Functions that can fail return a `result`, or an optional `error`. `result::value` throws, and if memory runs out, so
// do functions that return strings or grow a builder. Any number of threads may use const functions of an object, and
// of views of it, at once. While a function that is not const runs, no other may.
//
// Banks, indexes, and growing, counting and standard filters are not here. The C package has banks, and filters into
// which several threads insert.
//
// Errors and bytes come first, then hash, sizes, kernels and the lanes of filters (namespace detail), then the
// interface: `hash_key`, `sizing`, `filter_base`, `filter_view`, `filter` and `filter_builder`.
//
// SPDX-License-Identifier: MIT OR Apache-2.0
#ifndef BLOOMLINE_BLOOMLINE_HPP
#define BLOOMLINE_BLOOMLINE_HPP

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#if defined(__GNUC__)
#define BLOOMLINE_ATTRIBUTE(name) __attribute__((name))
#else
#define BLOOMLINE_ATTRIBUTE(name)
#endif
#define BLOOMLINE_INLINE inline BLOOMLINE_ATTRIBUTE(always_inline)
#define BLOOMLINE_CALL inline BLOOMLINE_ATTRIBUTE(noinline)

// Sanitizers cannot see what assembly reads, so with them all code is C++. They slow it down anyway.
#if defined(BLOOMLINE_NO_ASSEMBLY)
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(memory_sanitizer) || __has_feature(thread_sanitizer)
#define BLOOMLINE_NO_ASSEMBLY
#endif
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define BLOOMLINE_NO_ASSEMBLY
#endif

// The assembly is in AT&T syntax, so define BLOOMLINE_NO_ASSEMBLY for -masm=intel.
#if defined(__GNUC__) && defined(__x86_64__)
#include <cpuid.h>
#include <smmintrin.h>
#define BLOOMLINE_SSE41
#if defined(__LP64__) && !defined(BLOOMLINE_NO_ASSEMBLY)
#define BLOOMLINE_ASSEMBLY
#endif
#elif defined(__GNUC__) && defined(__aarch64__) && defined(__ARM_NEON) && !defined(__AARCH64EB__)
#include <arm_neon.h>
#define BLOOMLINE_NEON
#elif defined(_M_X64)
#include <intrin.h>
#endif

// std::min and std::max are in parentheses, because windows.h defines macros of these names.
namespace bloomline {
// So that two libraries in one program can have two versions of this header.
inline namespace v0_1 {

/// What went wrong.
enum class error_kind {
  argument,       ///< A value is outside its range.
  mismatch,       ///< Two filters cannot be combined.
  unrecognized,   ///< The bytes were cut, or are something else.
  unsupported,    ///< Another version or hash function wrote the bytes.
  damaged,        ///< The bytes were changed after they were written.
  no_checksum,    ///< The bytes contain no checksum.
  out_of_memory,  ///< Memory ran out. Nothing was changed.
};

struct error {
  error_kind kind;
  std::string message;  ///< What was wrong, with the numbers, and what to do.
};

/// A value or an error, like C++23's `std::expected<T, error>`. Check it before `*` and `->`.
template <class T>
class [[nodiscard]] result {
 public:
  result(T value) : value_(std::move(value)) {}
  result(bloomline::error error) : error_(std::move(error)) {}
  explicit operator bool() const noexcept { return value_.has_value(); }
  T &operator*() & { return *value_; }
  const T &operator*() const & { return *value_; }
  T &&operator*() && { return *std::move(value_); }
  T *operator->() { return &*value_; }
  const T *operator->() const { return &*value_; }
  /// Why there is no value.
  const bloomline::error &error() const noexcept { return error_; }

  /// The value. If there is none, throws a `std::runtime_error`, or prints the message and aborts where exceptions are
  /// disabled.
  T &&value() && { return std::move(value()); }
  T &value() & {
    if (value_) return *value_;
#if defined(__cpp_exceptions) || defined(_CPPUNWIND)
    throw std::runtime_error(error_.message);
#else
    std::fprintf(stderr, "bloomline: %s\n", error_.message.c_str());
    std::abort();
#endif
  }

 private:
  std::optional<T> value_;
  bloomline::error error_{};
};

/// Bytes that something else owns. Converts from any object with `data()` and `size()` whose elements have one byte.
class bytes {
 public:
  bytes(const void *data, size_t size) noexcept : data_(static_cast<const unsigned char *>(data)), size_(size) {}
  template <class T, class = std::enable_if_t<sizeof(*std::declval<const T &>().data()) == 1>>
  bytes(const T &object) noexcept : bytes(object.data(), object.size()) {}
  const unsigned char *data() const noexcept { return data_; }
  size_t size() const noexcept { return size_; }

 private:
  const unsigned char *data_;
  size_t size_;
};

namespace detail {

using byte = unsigned char;

/// A number with up to six digits, as Rust prints it, without zeros in the exponent.
inline std::string digits(double number) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", number);
  std::string all = number == number ? text : "NaN";
  const size_t e = all.find('e');
  return e == std::string::npos ? all : all.substr(0, e + 1) + std::to_string(std::atoi(&all[e + 1]));
}

inline std::string hex(uint64_t number, int n_digits = 16) {
  char text[17];
  std::snprintf(text, sizeof text, "%0*llx", n_digits, static_cast<unsigned long long>(number));
  return text;
}

/// What can be wrong, for `fail`.
struct fault {
  error_kind kind;
  const char *text;  ///< With a number or text in place of each `%`.
};

/// What replaces a `%`.
struct filling : std::string {
  filling(uint64_t number) : std::string(std::to_string(number)) {}
  filling(std::string text) : std::string(std::move(text)) {}
  filling(const char *text) : std::string(text) {}
};

BLOOMLINE_CALL error fail(const fault &fault, std::initializer_list<filling> fillings = {}) {
  error failed{fault.kind, fault.text};
  for (const filling &each : fillings) failed.message.replace(failed.message.find('%'), 1, each);
  return failed;
}

inline constexpr fault
    kBadK{error_kind::argument, "probes per key must be 1 to 16, not %"},
    kBadModules{error_kind::argument, "the number of modules must be 1 to 16, not %"},
    kBadBlocks{error_kind::argument, "a filter has 1 to % blocks of 64 bytes on this machine, not %"},
    kBadDivision{error_kind::argument, "% blocks cannot be divided among % modules: use a multiple of %"},
    kBadFactor{error_kind::argument, "% blocks cannot be folded by %: use a factor that divides %"},
    kBadBits{error_kind::argument, "bits per key must be above 0 and at most 64, not %"},
    kBadRate{error_kind::argument, "a false-positive rate must be between 0 and 1, both excluded, not %"},
    kLowRate{error_kind::argument,
             "a false-positive rate of % is out of reach: request at least %, or use an exact structure"},
    kNoRate{error_kind::argument, "a false-positive rate of % is out of reach, as any below 1 is: make a larger "
                                  "filter, or for fewer keys"},
    kTooLarge{error_kind::argument, "% keys of % bits each exceed this machine's address space: split the keys over "
                                    "several filters"},
    kLateSeed{error_kind::argument, "seed 0x% comes too late: set the seed before the first key, or after clearing "
                                    "the filter"},
    kOtherModules{error_kind::mismatch, "filters of % and % modules cannot be combined: build both with one size"},
    kOtherK{error_kind::mismatch, "filters with k = % and k = % cannot be combined: build both with one size"},
    kOtherSeed{error_kind::mismatch, "filters with seeds 0x% and 0x% cannot be combined: build both with one seed"},
    kOtherBlocks{error_kind::mismatch, "filters of % and % blocks cannot be combined: %"},
    kNotCompact{error_kind::unrecognized,
                "a compact filter has 8·L + 1 bytes, L being 1 to 63 or a multiple of 8, or 64·B + 2 in B blocks of "
                "several modules, not %: the bytes were cut, or are something else"},
    kBadTrailer{error_kind::unrecognized,
                "a compact filter ends in a byte from 0x20 to 0x2f, or 0x30 to 0x3f if it has several modules, not "
                "0x%: the bytes were cut or damaged, or are of a newer version"},
    kForgedModules{error_kind::damaged, "in compact bytes, the number of modules cannot be %: they are damaged, or a "
                                        "faulty or newer program wrote them"},
    kTooShort{error_kind::unrecognized,
              "the bytes were cut, or are something else: there are %, and at least 72 are needed"},
    kOtherMagic{error_kind::unrecognized, "not a filter's standalone bytes, or cut short: they end in 0x%"},
    kOtherStructure{error_kind::unrecognized, "these are the bytes of a %, which this header cannot open"},
    kOldVersion{error_kind::unsupported, "the bytes are of version %, which no release wrote: rebuild the filter"},
    kNewVersion{error_kind::unsupported, "the bytes are of version %, or damaged, and this release reads up to 2: "
                                         "upgrade bloomline, or rebuild the filter"},
    kOtherHash{error_kind::unsupported, "another hash function placed the keys (check value 0x%, ours 0x%): rebuild "
                                        "the filter"},
    kForgedField{error_kind::damaged, "the footer's % cannot be %: a faulty or newer program wrote the filter"},
    kOtherSize{error_kind::damaged, "the footer's size of % lanes of 8 bytes does not match the % bytes before it: "
                                    "the bytes were cut or joined"},
    kBadFooter{error_kind::damaged, "the footer is damaged: its checksum is 0x%, stored 0x%"},
    kDamaged{error_kind::damaged, "the bytes are damaged: their checksum is 0x%, stored 0x%"},
    kNoChecksum{error_kind::no_checksum, "these are compact bytes or a filter in memory, which have no checksum: "
                                         "verify that of their container"},
    kNoMemory{error_kind::out_of_memory, "memory for a filter of % blocks of 64 bytes could not be allocated"};

BLOOMLINE_INLINE uint64_t little_endian(uint64_t word) noexcept {
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
  word = __builtin_bswap64(word);
#endif
  return word;
}

BLOOMLINE_INLINE uint64_t load8(const void *from) noexcept {
  uint64_t word;
  std::memcpy(&word, from, 8);
  return little_endian(word);
}

BLOOMLINE_INLINE uint64_t load4(const byte *from) noexcept {
  return from[0] | uint64_t{from[1]} << 8 | uint64_t{from[2]} << 16 | uint64_t{from[3]} << 24;
}

BLOOMLINE_INLINE void store8(void *to, uint64_t word) noexcept {
  word = little_endian(word);
  std::memcpy(to, &word, 8);
}

// ---- Hash: section 1 of the format ----

struct product {
  uint64_t low, high;
};

BLOOMLINE_INLINE product multiply(uint64_t a, uint64_t b) noexcept {
#if defined(__SIZEOF_INT128__)
  __extension__ typedef unsigned __int128 both;
  const both all = static_cast<both>(a) * b;
  return {static_cast<uint64_t>(all), static_cast<uint64_t>(all >> 64)};
#elif defined(_M_X64)
  product all;
  all.low = _umul128(a, b, &all.high);
  return all;
#else
  const uint64_t low = 0xffffffff, a_high = a >> 32, b_high = b >> 32, a_low = a & low, b_low = b & low;
  const uint64_t middle = a_high * b_low + (a_low * b_low >> 32), other = a_low * b_high + (middle & low);
  return {a * b, a_high * b_high + (middle >> 32) + (other >> 32)};
#endif
}

/// The block of a hash among `n`, which is the high word of hash × n.
BLOOMLINE_INLINE uint64_t block_index(uint64_t n, uint64_t hash) noexcept {
  uint64_t index = multiply(hash, n).high;
#if defined(__clang__)
  asm("" : "+r"(index));  // Otherwise it shifts both words of the product, which is slow on AMD.
#endif
  return index;
}

BLOOMLINE_INLINE uint64_t mum(uint64_t a, uint64_t b) noexcept {
  const product all = multiply(a, b);
  return all.low ^ all.high;
}

constexpr uint64_t kSecret[] = {0xa0761d6478bd642f, 0xe7037ed1a0b428db, 0x8ebc6af09c88c6e3, 0x589965cc75374cc3};
constexpr uint64_t kMixedZero = 0xe2d7324f782038b7, kCheckValue = 0x6ff1536b5257c17e;
BLOOMLINE_INLINE uint64_t hash_round(const byte *from, uint64_t secret, uint64_t state) noexcept {
  return mum(load8(from) ^ secret, load8(from + 8) ^ state);
}

BLOOMLINE_INLINE uint64_t hash_finish(uint64_t a, uint64_t b, uint64_t state, size_t size) noexcept {
  return mum(kSecret[1] ^ size, mum(a ^ kSecret[1], b ^ state));
}

/// The hash of a key of more than 96 bytes, given the three states after its first 48. Not inlined, because callers
/// would then save registers even for short keys.
BLOOMLINE_CALL uint64_t hash_after_48(const byte *key, size_t size, uint64_t s, uint64_t t, uint64_t u) noexcept {
  const byte *const end = key + size;
  for (key += 48; end - key > 48; key += 48) {
    s = hash_round(key, kSecret[1], s);
    t = hash_round(key + 16, kSecret[2], t);
    u = hash_round(key + 32, kSecret[3], u);
  }
  s ^= t ^ u;
  for (; end - key > 16; key += 16) s = hash_round(key, kSecret[1], s);
  return hash_finish(load8(end - 16), load8(end - 8), s, size);
}

/// wyhash final version 3. Without a loop up to 96 bytes, because CPUs mispredict the end of a loop if lengths vary.
BLOOMLINE_INLINE uint64_t hash_bytes(const byte *key, size_t size, uint64_t mixed) noexcept {
  uint64_t s = mixed ^ kSecret[0];
  if (size > 16) {
    const uint64_t t = hash_round(key, kSecret[1], s);
    if (size <= 32) {
      s = t;
    } else if (size <= 48) {
      s = hash_round(key + 16, kSecret[1], t);
    } else {
      const uint64_t u = hash_round(key + 16, kSecret[2], s), v = hash_round(key + 32, kSecret[3], s);
      s = t ^ u ^ v;
      if (size > 96) return hash_after_48(key, size, t, u, v);
      if (size > 64) {
        const uint64_t shorter = hash_round(key + 48, kSecret[1], s);
        const uint64_t longer = hash_round(key + (size < 80 ? size : 80) - 16, kSecret[1], shorter);
        s = size > 80 ? longer : shorter;
      }
    }
    return hash_finish(load8(key + size - 16), load8(key + size - 8), s, size);
  }
  uint64_t a = 0, b = 0;
  if (size >= 8) {
    a = load8(key);
    a = a << 32 | a >> 32;
    b = load8(key + size - 8);
    const uint64_t swapped = size == 16 ? (a ^ b) & 0xffffffff : 0;
    a ^= swapped;
    b ^= swapped;
  } else if (size >= 4) {
    a = load4(key) << 32 | load4(key);
    b = load4(key + size - 4) << 32 | load4(key + size - 4);
  } else if (size > 0) {
    a = uint64_t{key[0]} << 16 | uint64_t{key[size / 2]} << 8 | key[size - 1];
  }
  return hash_finish(a, b, s, size);
}

BLOOMLINE_INLINE uint64_t hash_word(uint64_t word, uint64_t mixed) noexcept {
  return hash_finish(word << 32 | word >> 32, word, mixed ^ kSecret[0], 8);
}

inline uint64_t mixed_seed(uint64_t seed) noexcept {
  return seed == 0 ? kMixedZero : hash_word(seed, 0x9e3779b97f4a7c15);
}

template <class T, class... Others>
constexpr bool is_one_of = (std::is_same_v<T, Others> || ...);

// Neither characters nor booleans, because languages disagree on what they are.
template <class T>
constexpr bool is_integer_key = is_one_of<T, signed char, unsigned char, short, unsigned short, int, unsigned, long,
                                          unsigned long, long long, unsigned long long>;

template <class Key>
BLOOMLINE_INLINE uint64_t hash_mixed(const Key &key, uint64_t mixed) noexcept {
  if constexpr (is_integer_key<Key>) {
    return hash_word(static_cast<uint64_t>(key), mixed);
  } else {
    // An array of characters is text up to its first NUL, and need not have one.
    if constexpr (std::is_array_v<Key> && std::is_same_v<std::remove_extent_t<Key>, char>) {
      const void *const nul = std::memchr(key, 0, sizeof key);
      const size_t size = nul == nullptr ? sizeof key : static_cast<size_t>(static_cast<const char *>(nul) - key);
      return hash_bytes(reinterpret_cast<const byte *>(key), size, mixed);
    }
    using view = std::conditional_t<std::is_convertible_v<const Key &, std::string_view>, std::string_view, bytes>;
    static_assert(std::is_convertible_v<const Key &, view> && !std::is_null_pointer_v<Key>,
                  "a key is text, bytes or an integer of up to 64 bits");
    const bytes all = static_cast<view>(key);
    return hash_bytes(all.data(), all.size(), mixed);
  }
}

/// The hash in the next module.
BLOOMLINE_INLINE uint64_t next_hash(uint64_t hash) noexcept {
  constexpr uint64_t kStep = 0xc4ceb9fe1a85ec53;
  hash = (hash ^ hash >> 32) * kStep;
  return (hash ^ hash >> 32) * kStep;
}

/// XXH64, by Yann Collet.
inline uint64_t xxh64(const byte *from, size_t size, uint64_t seed) noexcept {
  constexpr uint64_t kPrime[] = {0x9e3779b185ebca87, 0xc2b2ae3d27d4eb4f, 0x165667b19e3779f9, 0x85ebca77c2b2ae63,
                                 0x27d4eb2f165667c5};
  const auto rotate = [](uint64_t x, int bits) { return x << bits | x >> (64 - bits); };
  const auto round = [&](uint64_t sum, uint64_t lane) { return rotate(sum + lane * kPrime[1], 31) * kPrime[0]; };
  const byte *const end = from + size;
  uint64_t hash = seed + kPrime[4];
  if (size >= 32) {
    uint64_t a = seed + kPrime[0] + kPrime[1], b = seed + kPrime[1], c = seed, d = seed - kPrime[0];
    for (; end - from >= 32; from += 32) {
      a = round(a, load8(from));
      b = round(b, load8(from + 8));
      c = round(c, load8(from + 16));
      d = round(d, load8(from + 24));
    }
    hash = rotate(a, 1) + rotate(b, 7) + rotate(c, 12) + rotate(d, 18);
    for (const uint64_t sum : {a, b, c, d}) hash = (hash ^ round(0, sum)) * kPrime[0] + kPrime[3];
  }
  hash += size;
  for (; end - from >= 8; from += 8) hash = rotate(hash ^ round(0, load8(from)), 27) * kPrime[0] + kPrime[3];
  if (end - from >= 4) {
    hash = rotate(hash ^ load4(from) * kPrime[0], 23) * kPrime[1] + kPrime[2];
    from += 4;
  }
  for (; from != end; ++from) hash = rotate(hash ^ *from * kPrime[4], 11) * kPrime[0];
  hash = (hash ^ hash >> 33) * kPrime[1];
  hash = (hash ^ hash >> 29) * kPrime[2];
  return hash ^ hash >> 32;
}

// ---- Sizes: the appendix of the format ----

constexpr unsigned kMostModules = 16, kMostComputed = 4;
constexpr uint64_t kMaxBlocks = (SIZE_MAX / 2 - 128) / 64;
/// The lowest rates of one to four modules.
constexpr double kLowest[] = {1.263e-8, 3.05e-11, 2.142e-12, 5.432e-13};

/// `a * b`, rounded. Without `volatile`, the compiler may fuse it with a sum, which rounds once, and sizes would differ
/// from those of other builds and languages.
inline double times(double a, double b) noexcept {
  volatile double product = a * b;
  return product;
}

inline double power(double x, unsigned n) noexcept {
  double product = 1;
  while (n-- > 0) product = times(product, x);
  return product;
}

/// e^(−x) for x ≥ 0. Not by `std::exp`, because those of platforms differ in the last bit.
inline double exp_minus(double x) noexcept {
  if (x > 700) return 0;
  const auto halvings = static_cast<uint64_t>(times(x, 1.4426950408889634) + 0.5), bits = (1023 - halvings) << 52;
  const auto n = static_cast<double>(halvings);
  const double rest = (x - times(n, 0.6931471803691238)) - times(n, 1.9082149292705877e-10);
  double series = 1, scale;
  for (int i = 13; i > 0; --i) series = 1 - times(rest / i, series);
  std::memcpy(&scale, &bits, 8);
  return series * scale;
}

/// The logarithm of a rate from 0 to 1.
inline double ln(double rate) noexcept {
  double q = 1 - (1 - (std::max)(rate, 1e-15)), sum = 0;
  int halvings = 0;
  for (; q < 0.7071067811865475; ++halvings) q *= 2;
  const double s = (1 - q) / (1 + q);
  for (int i = 11; i >= 0; --i) sum = times(sum * s, s) + 1.0 / (2 * i + 1);
  return -(times(halvings, 0.6931471805599453) + times(2 * s, sum));
}

inline unsigned best_k(double bits_per_key) noexcept {
  unsigned k = 1;
  for (const double from : {2.093, 3.598, 5.086, 6.601, 8.316, 10.207, 12.231, 15.91, 16.088, 18.644, 21.384, 24.321,
                            27.828, 31.969, 36.723}) {
    k += bits_per_key >= from;
  }
  return k;
}

/// The false-positive rate of many blocks, by inclusion and exclusion over the probes that find their bit clear.
inline double model(double bits_per_key, unsigned k) noexcept {
  constexpr double kFactors[3][3] = {{1}, {1, -1}, {1, -127 / 64.0, 63 / 64.0}};
  const double keys_per_block = (std::min)(512 / bits_per_key, 1e6);
  unsigned probes[8], n_terms = 1;
  for (unsigned lane = 0; lane < 8; ++lane) n_terms *= 1 + (probes[lane] = (k + 7 - lane) / 8);
  double fpr = 0;
  for (unsigned term = 0; term < n_terms; ++term) {
    double coefficient = 1, one_key[8] = {1, 1, 1, 1, 1, 1, 1, 1}, sum = 0;
    for (unsigned lane = 0, rest = term; lane < 8; rest /= 1 + probes[lane++]) {
      const unsigned choice = rest % (1 + probes[lane]);
      coefficient *= kFactors[probes[lane]][choice];
      for (unsigned r = 0; r < 8; ++r) one_key[r] *= power(1 - choice / 64.0, probes[(r + lane) % 8]);
    }
    for (const double of_rotation : one_key) sum += times(of_rotation, 1);
    fpr += times(coefficient, exp_minus(times(keys_per_block, 1 - sum / 8)));
  }
  return (std::max)(0.0, (std::min)(fpr, 1.0));
}

/// The rate of modules that share the bits.
inline double rate_of(double bits_per_key, unsigned n_modules) noexcept {
  const double of_each = bits_per_key / n_modules;
  return power(model(of_each, best_k(of_each)), n_modules);
}

/// The least bits per key for a rate, to one part in a million. Interpolates the rate's logarithm (regula falsi, the
/// "Illinois" variant).
inline double least_bits(double fpr, unsigned n_modules) noexcept {
  // How far the logarithm of the rate is above and below the requested one, at the low and the high end.
  double low = 0, high = 1 / 64.0, above = 0, rate;
  for (; (rate = rate_of(high, n_modules)) > fpr; high *= 2) {
    low = high;
    above = ln(rate) - ln(fpr);
  }
  double below = ln(rate) - ln(fpr);
  for (int last = -1; high - low > 1e-6 * high;) {
    // At 0 bits no logarithm is known.
    const bool is_known = low > 0 && above > below;
    const double share = is_known ? (std::max)(1e-3, (std::min)(above / (above - below), 1 - 1e-3)) : 0.5;
    const double bits = low + times(high - low, share);
    rate = rate_of(bits, n_modules);
    const bool reached = rate <= fpr;
    // Halves the weight of an end that stayed twice, because otherwise it would never move.
    if (last == reached) (reached ? above : below) /= 2;
    last = reached;
    (reached ? high : low) = bits;
    (reached ? below : above) = ln(rate) - ln(fpr);
  }
  return high;
}

/// The number of modules for a rate, unless the caller limits it.
inline unsigned modules_for(double fpr) noexcept {
  return fpr > 4.966e-4 ? 1 : fpr > 1.8e-8 ? 2 : fpr > 2.142e-12 ? 3 : 4;
}

/// The most modules that a caller allows, or none if the rate or the bits per key decide.
using module_limit = std::optional<unsigned>;

inline bool is_valid(module_limit n_modules) noexcept {
  return !n_modules || (*n_modules >= 1 && *n_modules <= kMostModules);
}

/// What a size is computed from.
struct request {
  unsigned most_modules;  ///< For many keys. Few keys get fewer, because each module has at least one block.
  double share;           ///< One more module must need at most this share of the bits, such as 0.93.
  double bits_per_key[kMostComputed];  ///< Of one to four modules together, or 0 if they cannot reach the rate.
};

inline result<request> request_fpr(uint64_t keys, double fpr, module_limit most_modules) {
  if (!is_valid(most_modules)) return fail(kBadModules, {*most_modules});
  if (!(fpr > 0 && fpr < 1)) return fail(kBadRate, {digits(fpr)});
  const unsigned most = (std::min)(most_modules.value_or(kMostComputed), kMostComputed);
  const bool is_one = (most_modules ? most : modules_for(fpr)) == 1;
  // The probability that an absent key has the hash of a key. It matters at the low rates of several modules.
  const double same_hash = is_one ? 0 : static_cast<double>(keys) / 18446744073709551616.0;
  const double lowest = kLowest[most - 1], least = lowest + same_hash;
  if (fpr < least && least >= 1) return fail(kNoRate, {digits(fpr)});
  if (fpr < least) return fail(kLowRate, {digits(fpr), digits(same_hash == 0 ? least : least * (1 + 5e-6))});
  const double rest = (std::max)(fpr - same_hash, lowest);
  request all{most_modules ? most : modules_for(rest), most_modules ? 0.99 : 0.93, {}};
  for (unsigned n = 1; n <= all.most_modules; ++n) {
    const double of_n = n == 1 && same_hash < 1e-6 * fpr ? fpr : rest;
    if (of_n >= kLowest[n - 1]) all.bits_per_key[n - 1] = least_bits(of_n, n);
  }
  return all;
}

inline result<request> request_bits(double bits, module_limit most_modules) {
  if (!is_valid(most_modules)) return fail(kBadModules, {*most_modules});
  if (!(bits > 0 && bits <= 64)) return fail(kBadBits, {digits(bits)});
  unsigned n_modules = most_modules || bits < 17.45428 ? 1 : bits < 42.421 ? 2 : 3;
  for (unsigned n = 2; n <= (std::min)(most_modules.value_or(1), kMostComputed); ++n) {
    if (rate_of(power(0.99, n - n_modules) * bits, n) <= rate_of(bits, n_modules)) n_modules = n;
  }
  // Rounding to whole blocks of each module adds up to 1%.
  return request{n_modules, 1.01, {bits, bits, bits, bits}};
}

/// The least integer at or above `x`, and at least 1.
inline double ceil_of(double x) noexcept {
  if (x >= 9007199254740992) return x;  // From 2^53 on, all numbers are integers.
  const auto whole = static_cast<double>(static_cast<uint64_t>(x));
  return (std::max)(whole + (whole < x), 1.0);
}

struct shape {
  uint64_t n_blocks;  ///< Of each module.
  uint32_t n_modules;
  uint32_t n_short;  ///< Lanes of a short filter, or 0.
  uint32_t k;
  size_t byte_len() const { return static_cast<size_t>(n_short != 0 ? 8 * n_short : 64 * n_blocks * n_modules); }
};

/// The logarithm of the lanes from the start of a short filter's block to the start of the next.
inline uint32_t log_stride(uint64_t n_short) noexcept { return n_short % 2 == 1 ? 0 : n_short % 4 == 2 ? 1 : 2; }

/// The shape of `n_lanes` lanes, which are of a short filter if their number is not a multiple of 8.
BLOOMLINE_INLINE shape shape_of(uint64_t n_lanes, uint32_t n_modules, uint32_t k) noexcept {
  const auto n_short = n_lanes % 8 == 0 ? 0 : static_cast<uint32_t>(n_lanes);
  const uint64_t n_blocks = n_short != 0 ? n_lanes >> log_stride(n_lanes) : n_lanes / 8;
  // A division by a variable costs as much as a lookup.
  const uint64_t of_each = n_modules == 1 ? n_blocks : n_modules == 2 ? n_blocks / 2 : n_blocks / n_modules;
  return {of_each, n_modules, n_short, k};
}

/// The size for `keys` distinct keys. Only `is_compact` has short filters.
inline result<shape> size_of(uint64_t keys, const request &all, bool is_compact) {
  constexpr double kMaxLanes = 8 * static_cast<double>(kMaxBlocks);
  const auto n_keys = static_cast<double>(keys);
  double best = 0;
  unsigned n_modules = 0;
  for (unsigned n = 1; n <= all.most_modules; ++n) {
    const double bits = all.bits_per_key[n - 1];
    double lanes = ceil_of(n_keys * bits / 64);
    if (n > 1 || !is_compact || lanes > 63) lanes = 8 * n * ceil_of(n_keys * (bits / n) / 512);
    if (bits == 0 || (n_modules != 0 && best <= kMaxLanes && lanes > power(all.share, n - n_modules) * best)) continue;
    best = lanes;
    n_modules = n;
  }
  if (n_modules == 0) return fail(kBadRate, {"NaN"});  // -ffast-math drops the check for NaN.
  if (best > kMaxLanes) return fail(kTooLarge, {keys, digits(all.bits_per_key[n_modules - 1])});
  const double of_each = best / n_modules * 64 / (std::max)(n_keys, 1.0);
  // In fewer than 16 lanes, each block covers most of the filter, and the k of a standard filter is best.
  const double standard_k = (std::max)(1.0, (std::min)(times(0.6931471805599453, of_each) + 0.5, 16.0));
  const unsigned k = is_compact && best < 16 ? static_cast<unsigned>(standard_k) : best_k(of_each);
  return shape_of(static_cast<uint64_t>(best), n_modules, k);
}

// ---- Kernels: each tests and sets the bits that section 2 of the format defines ----

/// The constants for `k` probes of the first word or, above 8, for the k − 8 further probes, of the second word.
struct alignas(1024) constants {
  uint64_t positions[8] = {13, 19, 25, 31, 37, 43, 49, 55};  ///< Where in the word the bit of each lane starts.
  uint64_t six_bits[4] = {63, 63, 63, 63};
  uint64_t factor;                       ///< Makes the word of a hash.
  uint64_t probed[8] = {};               ///< For each rotation, a bit for each lane that is probed.
  uint64_t probed_pairs[8] = {};         ///< The same, in the order of the AVX2 kernel.
  uint64_t probed_bytes[8] = {};         ///< The same, with a byte for each lane.
  alignas(64) uint64_t rows[8][8] = {};  ///< The same, with a word for each lane.

  constexpr constants(unsigned k) : factor(k <= 8 ? 0x9e3779b97f4a7c15 : 0xd6e8feb86659fd93) {
    constexpr unsigned kPairs[] = {0, 1, 4, 5, 2, 3, 6, 7};
    for (unsigned i = 0; i < (k <= 8 ? 8 * k : 8 * (k - 8)); ++i) {
      const unsigned rotation = i % 8, lane = (rotation + i / 8) % 8;
      probed[rotation] |= uint64_t{1} << lane;
      probed_pairs[rotation] |= uint64_t{1} << kPairs[lane];
      probed_bytes[rotation] |= uint64_t{1} << 8 * lane;
      rows[rotation][lane] = 1;
    }
  }
};
inline constexpr constants kTable[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};

/// For each number of lanes of a short filter, which lanes make a block, counted from its first. From 8 lanes on, it is
/// the last row.
alignas(32) inline constexpr uint32_t kSteps[9][8] = {
    {}, {}, {0, 1, 0, 1, 0, 1, 0, 1}, {0, 1, 2, 0, 1, 2, 0, 1}, {0, 1, 2, 3, 0, 1, 2, 3}, {0, 1, 2, 3, 4, 0, 1, 2},
    {0, 1, 2, 3, 4, 5, 0, 1}, {0, 1, 2, 3, 4, 5, 6, 0}, {0, 1, 2, 3, 4, 5, 6, 7}};

// Each kernel has two functions. `contains_hash`, `insert_hash`, `compact_contains_hash`, `has` and `with_kernel` name
// them.
//
// `test` gets a hash in `word`, replaces it by the first or second word, and returns whether all probed bits of its
// block, one of n, are set. `first` is the word that gives the rotation. For the first eight probes, that is `word`
// itself.
//
// `set` sets the bits of a word in a block, and returns whether one was clear.

BLOOMLINE_INLINE unsigned rotation_of(uint64_t first) noexcept { return static_cast<unsigned>(first >> 61); }

/// A bit for each lane whose bit is clear, of the lanes whose addresses `lane` returns.
template <class Lane>
BLOOMLINE_INLINE uint64_t clear_lanes(uint64_t word, const Lane &lane) noexcept {
  const auto clear = [&](unsigned i) { return (~load8(lane(i)) >> (word >> (13 + 6 * i) & 63) & 1) << i; };
  return clear(0) | clear(1) | clear(2) | clear(3) | clear(4) | clear(5) | clear(6) | clear(7);
}

/// For every CPU.
struct portable {
  BLOOMLINE_INLINE static bool test(const byte *data, uint64_t n, uint64_t &word, uint64_t &first, const constants &c) {
    const byte *const block = data + 64 * block_index(n, word);
    word *= c.factor;
    return (clear_lanes(word, [=](unsigned i) { return block + 8 * i; }) & c.probed[rotation_of(first)]) == 0;
  }

  BLOOMLINE_INLINE static bool set(byte *block, uint64_t word, unsigned rotation, const constants &c) {
    uint64_t changed = 0;
    for (unsigned lane = 0; lane < 8; ++lane) {
      const uint64_t old = load8(block + 8 * lane), bit = c.rows[rotation][lane] << (word >> (13 + 6 * lane) & 63);
      changed |= ~old & bit;
      store8(block + 8 * lane, old | bit);
    }
    return changed != 0;
  }
};

#if defined(BLOOMLINE_ASSEMBLY)
// Assembly can be inlined anywhere, also in a build for every CPU, where a call of a function with a target attribute
// costs as much as the lookup. It also finds the block, because each saved instruction shows.
//
// It declares all vector registers, because vzeroupper clears their upper halves. GCC accepts registers above 15 and
// mask registers only in a build for AVX-512.
#define BLOOMLINE_REGISTERS "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", \
                            "xmm11", "xmm12", "xmm13", "xmm14", "xmm15"
// `all_bytes` tells the compiler what is read. Its size is unknown, because for GCC an operand that is larger than an
// object cannot be that object, and stores to the object would move behind the lookup. Clang refuses an unknown size,
// and given "rm", it would store the operand to memory.
#if defined(__clang__)
#define BLOOMLINE_ANY "r"
using all_bytes = byte[1 << 30];
#else
#define BLOOMLINE_ANY "rm"
using all_bytes = byte[];
#endif
#define BLOOMLINE_FIND_BLOCK "mulxq %[n], %[seen], %[seen]; imulq 96(%[c]), %[word]; shlq $6, %[seen]\n\t"
#define BLOOMLINE_TEST_OPERANDS \
  : [word] "+&d"(word), [seen] "=&r"(seen) \
  : [data] "r"(data), [n] BLOOMLINE_ANY(n), [c] "r"(&c), "m"(*reinterpret_cast<const all_bytes *>(data)) \
  : BLOOMLINE_REGISTERS, "cc"
/// Which bit of each lane, in ymm0 for lanes 0 to 3, and in ymm1 for lanes 4 to 7. With vpandn, 63 minus that.
#define BLOOMLINE_SIX_BITS(mask) \
  "vmovq %[word], %%xmm0; vpbroadcastq %%xmm0, %%ymm0\n\t" \
  "vpsrlvq 32(%[c]), %%ymm0, %%ymm1; vpsrlvq (%[c]), %%ymm0, %%ymm0\n\t" \
  mask " 64(%[c]), %%ymm1, %%ymm1; " mask " 64(%[c]), %%ymm0, %%ymm0\n\t"
static_assert(offsetof(constants, six_bits) == 64 && offsetof(constants, factor) == 96, "assembly adds these to c");

using block_bytes = byte[64];

/// Returns whether all bits of the mask are set.
BLOOMLINE_INLINE bool includes(uint64_t set, const uint64_t &mask) noexcept {
  __asm__ inline("andnq %[mask], %[set], %[set]" : [set] "+r"(set) : [mask] "m"(mask) : "cc");
  return set == 0;
}

struct avx2 {
  /// Shifts the bit of each lane to the sign, by 63 minus its position, and collects the signs.
  BLOOMLINE_INLINE static bool test(const byte *data, uint64_t n, uint64_t &word, uint64_t &first, const constants &c) {
    uint64_t seen;
    __asm__ inline(BLOOMLINE_FIND_BLOCK
        "vmovdqu (%[data],%[seen]), %%ymm2; vmovdqu 32(%[data],%[seen]), %%ymm3\n\t"
        BLOOMLINE_SIX_BITS("vpandn")
        "vpsllvq %%ymm0, %%ymm2, %%ymm0; vpsllvq %%ymm1, %%ymm3, %%ymm1\n\t"
        "vshufps $0xdd, %%ymm1, %%ymm0, %%ymm0\n\t"
        "vmovmskps %%ymm0, %k[seen]\n\t"
        "vzeroupper" BLOOMLINE_TEST_OPERANDS);
    return includes(seen, c.probed_pairs[rotation_of(first)]);
  }

  BLOOMLINE_INLINE static bool set(byte *block, uint64_t word, unsigned rotation, const constants &c) {
    uint32_t unchanged;
    __asm__ inline(BLOOMLINE_SIX_BITS("vpand")
        "vmovdqa (%[row]), %%ymm2; vmovdqa 32(%[row]), %%ymm3\n\t"
        "vpsllvq %%ymm0, %%ymm2, %%ymm0; vpsllvq %%ymm1, %%ymm3, %%ymm1\n\t"
        "vmovdqu (%[block]), %%ymm2; vmovdqu 32(%[block]), %%ymm3\n\t"
        "vpor %%ymm0, %%ymm2, %%ymm0; vpor %%ymm1, %%ymm3, %%ymm1\n\t"
        "vmovdqu %%ymm0, (%[block]); vmovdqu %%ymm1, 32(%[block])\n\t"
        "vpcmpeqd %%ymm0, %%ymm2, %%ymm0; vpcmpeqd %%ymm1, %%ymm3, %%ymm1\n\t"
        "vpand %%ymm0, %%ymm1, %%ymm0\n\t"
        "vpmovmskb %%ymm0, %[unchanged]\n\t"
        "vzeroupper"
        : [unchanged] "=r"(unchanged), "+m"(*reinterpret_cast<block_bytes *>(block))
        : [word] "r"(word), [c] "r"(&c), [block] "r"(block), [row] "r"(c.rows[rotation]), "m"(c.rows[rotation])
        : BLOOMLINE_REGISTERS);
    return unchanged != 0xffffffff;
  }

  /// Copies a block of a short filter, whose lanes are the steps from the first one on, modulo the number of lanes.
  BLOOMLINE_INLINE static void copy_short(const byte *lanes, const uint32_t *steps, uint32_t first, uint32_t n_lanes,
                                          block_bytes &block) noexcept {
    __asm__ inline(
        "vmovd %[first], %%xmm0; vmovd %[n_lanes], %%xmm1\n\t"
        "vpbroadcastd %%xmm0, %%ymm0; vpbroadcastd %%xmm1, %%ymm1\n\t"
        "vpaddd (%[steps]), %%ymm0, %%ymm0\n\t"
        "vpsubd %%ymm1, %%ymm0, %%ymm1\n\t"  // Huge, unless the lane wraps around.
        "vpminud %%ymm1, %%ymm0, %%ymm0\n\t"
        "vextracti128 $1, %%ymm0, %%xmm1\n\t"
        "vpcmpeqd %%ymm4, %%ymm4, %%ymm4; vpcmpeqd %%ymm5, %%ymm5, %%ymm5\n\t"
        "vpgatherdq %%ymm4, (%[lanes],%%xmm0,8), %%ymm2; vpgatherdq %%ymm5, (%[lanes],%%xmm1,8), %%ymm3\n\t"
        "vmovdqu %%ymm2, (%[block]); vmovdqu %%ymm3, 32(%[block])\n\t"
        "vzeroupper"
        : "=m"(block)
        : [block] "r"(&block), [lanes] "r"(lanes), [steps] "r"(steps), [first] "r"(first), [n_lanes] "r"(n_lanes),
          "m"(*reinterpret_cast<const all_bytes *>(lanes))
        : BLOOMLINE_REGISTERS);
  }
};

struct avx512 {
  /// Rotates the bit of each lane to the lowest place, and collects the lowest bytes.
  BLOOMLINE_INLINE static bool test(const byte *data, uint64_t n, uint64_t &word, uint64_t &first, const constants &c) {
    uint64_t seen;
    __asm__ inline(BLOOMLINE_FIND_BLOCK
        "vpbroadcastq %[word], %%zmm0; vpsrlvq (%[c]), %%zmm0, %%zmm0\n\t"
        "vmovdqu64 (%[data],%[seen]), %%zmm1\n\t"
        "vprorvq %%zmm0, %%zmm1, %%zmm0\n\t"
        "vpmovqb %%zmm0, %%xmm0; vmovq %%xmm0, %[seen]\n\t"
        "vzeroupper" BLOOMLINE_TEST_OPERANDS);
    return includes(seen, c.probed_bytes[rotation_of(first)]);
  }

  BLOOMLINE_INLINE static bool set(byte *block, uint64_t word, unsigned rotation, const constants &c) {
    uint64_t present;
    __asm__ inline(
        "vpbroadcastq %[word], %%zmm0; vpsrlvq (%[c]), %%zmm0, %%zmm0\n\t"
        "vmovdqu64 %[block], %%zmm1; vmovdqa64 %[row], %%zmm2\n\t"
        "vprolvq %%zmm0, %%zmm2, %%zmm2; vprorvq %%zmm0, %%zmm1, %%zmm0\n\t"
        "vporq %%zmm1, %%zmm2, %%zmm1; vmovdqu64 %%zmm1, %[block]\n\t"
        "vpmovqb %%zmm0, %%xmm0; vmovq %%xmm0, %[present]\n\t"
        "vzeroupper"
        : [present] "=r"(present), [block] "+m"(*reinterpret_cast<block_bytes *>(block))
        : [word] "r"(word), [c] "r"(&c), [row] "m"(c.rows[rotation])
        : BLOOMLINE_REGISTERS);
    return (~present & c.probed_bytes[rotation]) != 0;
  }
};
#endif

#if defined(BLOOMLINE_SSE41)
struct sse41 : portable {
  /// Collects the byte that is probed in each lane, by byte shuffles, and the bit in it, from a table.
  BLOOMLINE_ATTRIBUTE(target("sse4.1"))
  static bool test(const byte *data, uint64_t n, uint64_t &word, uint64_t &first, const constants &c) {
    const auto *const block = reinterpret_cast<const __m128i *>(data + 64 * block_index(n, word));
    word *= c.factor;
    // The six bits of lane i lie in the two bytes from (13 + 6i) / 8 on. The multiplication moves them to the top.
    const __m128i where = _mm_setr_epi8(1, 2, 2, 3, 3, 4, 3, 4, 4, 5, 5, 6, 6, 7, 6, 7);
    const __m128i powers = _mm_setr_epi16(1 << 5, 1 << 7, 1 << 9, 1 << 3, 1 << 5, 1 << 7, 1 << 9, 1 << 3);
    const __m128i of_word = _mm_cvtsi64_si128(static_cast<long long>(word));
    const __m128i positions = _mm_mullo_epi16(_mm_shuffle_epi8(of_word, where), powers);
    const __m128i bit_of = _mm_setr_epi8(1, 2, 4, 8, 16, 32, 64, -128, 1, 2, 4, 8, 16, 32, 64, -128);
    const __m128i bits = _mm_shuffle_epi8(bit_of, _mm_srli_epi16(positions, 10));
    const __m128i bytes = _mm_or_si128(_mm_srli_epi16(positions, 13), _mm_setr_epi16(0, 8, 0, 8, 0, 8, 0, 8));
    __m128i lanes[4];
    for (int i = 0; i < 4; ++i) lanes[i] = _mm_shuffle_epi8(_mm_loadu_si128(block + i), bytes);
    const __m128i low = _mm_blend_epi16(lanes[0], lanes[1], 0x0c), high = _mm_blend_epi16(lanes[2], lanes[3], 0xc0);
    const __m128i all = _mm_and_si128(_mm_blend_epi16(low, high, 0xf0), _mm_and_si128(bits, _mm_set1_epi16(0xff)));
    const __m128i is_clear = _mm_cmpeq_epi16(all, _mm_setzero_si128());
    const auto clear = static_cast<uint32_t>(_mm_movemask_epi8(_mm_packs_epi16(is_clear, is_clear)));
    return (clear & c.probed[rotation_of(first)]) == 0;
  }
};
#endif

#if defined(BLOOMLINE_NEON)
struct neon : portable {
  /// Collects the byte that is probed in each lane by a table lookup.
  BLOOMLINE_INLINE static bool test(const byte *data, uint64_t n, uint64_t &word, uint64_t &first, const constants &c) {
    const byte *const block = data + 64 * block_index(n, word);
    word *= c.factor;
    // The six bits of lane i lie in the two bytes from (13 + 6i) / 8 on. The shift moves them to the top.
    static constexpr byte kWhere[16] = {1, 2, 2, 3, 3, 4, 3, 4, 4, 5, 5, 6, 6, 7, 6, 7};
    static constexpr int16_t kShifts[8] = {5, 7, 9, 3, 5, 7, 9, 3};
    const uint8x16_t windows = vqtbl1q_u8(vreinterpretq_u8_u64(vdupq_n_u64(word)), vld1q_u8(kWhere));
    const uint8x8_t position = vshrn_n_u16(vshlq_u16(vreinterpretq_u16_u8(windows), vld1q_s16(kShifts)), 8);
    const uint8x8_t index = vsra_n_u8(vcreate_u8(0x3830282018100800), position, 5);
    const uint8x8_t bit = vand_u8(vshr_n_u8(position, 2), vdup_n_u8(7));
    const uint8x8_t mask = vshl_u8(vdup_n_u8(1), vreinterpret_s8_u8(bit));
    const uint8x16x4_t lanes = {{vld1q_u8(block), vld1q_u8(block + 16), vld1q_u8(block + 32), vld1q_u8(block + 48)}};
    const uint64_t set = vget_lane_u64(vreinterpret_u64_u8(vtst_u8(mask, vqtbl4_u8(lanes, index))), 0);
    return (~set & c.probed_bytes[rotation_of(first)]) == 0;
  }
};
#endif

enum class kernel : unsigned char { undecided, portable, neon, sse41, avx2, avx512 };
constexpr const char *kKernelNames[] = {"", "portable", "neon", "sse4.1", "avx2", "avx512"};

/// Returns whether this CPU and build have the kernel.
inline bool has(kernel kernel) noexcept {
#if defined(BLOOMLINE_ASSEMBLY)
  const bool has_bmi = __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
  if (kernel == kernel::avx512) return has_bmi && __builtin_cpu_supports("avx512f");
  if (kernel == kernel::avx2) return has_bmi && __builtin_cpu_supports("avx2");
#endif
#if defined(BLOOMLINE_SSE41)
  if (kernel == kernel::sse41) return __builtin_cpu_supports("sse4.1");
#elif defined(BLOOMLINE_NEON)
  if (kernel == kernel::neon) return true;
#endif
  return kernel == kernel::portable;
}

/// Calls `work` with the kernel's type.
template <class Work>
BLOOMLINE_INLINE auto with_kernel([[maybe_unused]] kernel kernel, const Work &work) noexcept {
#if defined(BLOOMLINE_ASSEMBLY)
  if (kernel == kernel::avx512) return work(avx512{});
  if (kernel == kernel::avx2) return work(avx2{});
#endif
#if defined(BLOOMLINE_SSE41)
  if (kernel == kernel::sse41) return work(sse41{});
#elif defined(BLOOMLINE_NEON)
  if (kernel == kernel::neon) return work(neon{});
#endif
  return work(portable{});
}

inline std::atomic<kernel> chosen_kernel{kernel::undecided};
/// 8 for the chosen kernel, or 0, so that one comparison checks both the kernel and k.
inline std::atomic<uint64_t> most_k_avx512{0}, most_k_avx2{0};

/// Uses a kernel, which this CPU must have, for filters that are opened or made from now on. For tests.
inline void use_kernel(kernel chosen) noexcept {
  most_k_avx512.store(chosen == kernel::avx512 ? 8 : 0, std::memory_order_relaxed);
  most_k_avx2.store(chosen == kernel::avx2 ? 8 : 0, std::memory_order_relaxed);
  chosen_kernel.store(chosen, std::memory_order_relaxed);
}

/// The fastest kernel that this CPU has and the environment variable BLOOMLINE_KERNEL allows. An unknown name allows
/// only the kernels that are safe on every CPU.
BLOOMLINE_CALL kernel choose_kernel() noexcept {
#if defined(BLOOMLINE_SSE41)
  __builtin_cpu_init();
#endif
  const char *const given = std::getenv("BLOOMLINE_KERNEL");
  bool is_allowed = given == nullptr || *given == '\0';
  auto chosen = static_cast<int>(kernel::avx512);
  for (; chosen > static_cast<int>(kernel::portable); --chosen) {
    is_allowed = is_allowed || std::strcmp(given, kKernelNames[chosen]) == 0;
    if (is_allowed && has(static_cast<kernel>(chosen))) break;
  }
  use_kernel(static_cast<kernel>(chosen));
  return static_cast<kernel>(chosen);
}

BLOOMLINE_INLINE kernel active_kernel() noexcept {
  const kernel chosen = chosen_kernel.load(std::memory_order_relaxed);
  return chosen != kernel::undecided ? chosen : choose_kernel();
}

/// The probes of a key in its block, of the first word and, if k is above 8, of the second.
struct probes {
  const constants *first, *second;

  explicit probes(unsigned k) : first(&kTable[(std::min)(k, 8u) - 1]), second(k > 8 ? &kTable[k - 1] : nullptr) {}

  template <class Kernel>
  BLOOMLINE_INLINE bool test(const byte *blocks, uint64_t n, uint64_t hash) const noexcept {
    uint64_t word = hash;
    const bool is_present = Kernel::test(blocks, n, word, word, *first);
    if (second == nullptr) return is_present;
    const byte *const block = blocks + 64 * block_index(n, hash);
    uint64_t second_word = word ^ word >> 32;
    // Both, because a branch on the first would be mispredicted.
    return is_present & Kernel::test(block, 1, second_word, word, *second);
  }

  template <class Kernel>
  BLOOMLINE_INLINE bool set(byte *block, uint64_t hash) const noexcept {
    const uint64_t word = hash * first->factor;
    const bool changed = Kernel::set(block, word, rotation_of(word), *first);
    if (second == nullptr) return changed;
    return changed | Kernel::set(block, (word ^ word >> 32) * second->factor, rotation_of(word), *second);
  }
};

/// The number of blocks from which on batches prefetch, three quarters of this core's L2 cache. In smaller filters the
/// CPU overlaps the few waits itself.
inline uint64_t prefetch_from() noexcept {
  static const uint64_t kBlocks = [] {
    constexpr uint64_t kMost = 2 << 20;
#if defined(BLOOMLINE_SSE41)
    // The leaves of Intel and of AMD, which describe a cache in the same form.
    for (const unsigned leaf : {4u, 0x8000001du}) {
      for (unsigned index = 0, a = 0, b = 0, c = 0, d = 0; index < 4; ++index) {
        if (__get_cpuid_count(leaf, index, &a, &b, &c, &d) == 0 || (a >> 5 & 7) != 2 || (a & 31) == 2) continue;
        // Ways, partitions, bytes of a line, and sets, each less one.
        const uint64_t cache = ((b >> 22) + 1ull) * ((b >> 12 & 0x3ff) + 1) * ((b & 0xfff) + 1) * (c + 1ull);
        return (std::max)(kMost / 8, (std::min)(cache, kMost)) / 64 * 3 / 4;
      }
    }
#endif
    return kMost / 64 * 3 / 4;
  }();
  return kBlocks;
}

// ---- Filters: sections 3 to 5 of the format ----

/// The lanes of a filter, and how their bits are tested and set.
struct body : shape {
  byte *data;  ///< Written only by the filter that owns it.
  probes probed;
  kernel active;

  BLOOMLINE_INLINE body(const byte *lanes, const shape &form) noexcept
      : shape(form), data(const_cast<byte *>(lanes)), probed(form.k), active(active_kernel()) {}

  byte *module(uint32_t index) const noexcept { return data + 64 * n_blocks * index; }
  /// The address of each lane of a short filter's block.
  BLOOMLINE_INLINE auto short_block(uint64_t index) const noexcept {
    const uint32_t first = static_cast<uint32_t>(index) << log_stride(n_short);
    return [=, n = n_short, from = data, steps = kSteps[(std::min)(n_short, 8u)]](unsigned i) {
      const uint32_t lane = first + steps[i];
      return from + 8 * (lane - (lane >= n ? n : 0));
    };
  }

  /// Block `index` of all modules. A short filter's is put together in `copy`.
  const byte *block(uint64_t index, byte *copy) const noexcept {
    if (n_short == 0) return data + 64 * index;
    for (unsigned i = 0; i < 8; ++i) std::memcpy(copy + 8 * i, short_block(index)(i), 8);
    return copy;
  }

  /// Returns whether all modules have the hash.
  BLOOMLINE_INLINE bool contains(uint64_t hash) const noexcept {
    if (n_short != 0) return short_contains(hash);
    return with_kernel(active, [&](auto type) {
      using type_of = decltype(type);
      if (!probed.test<type_of>(data, n_blocks, hash)) return false;
      return n_modules == 1 || more_contain<type_of>(module(1), n_blocks, next_hash(hash), n_modules - 1, probed);
    });
  }

  /// Returns whether the modules from `data` on have the hash. Not inlined, so that most lookups save no registers.
  template <class Kernel>
  BLOOMLINE_ATTRIBUTE(pure)
  BLOOMLINE_CALL static bool more_contain(const byte *data, uint64_t n_blocks, uint64_t hash, uint32_t n_modules,
                                          probes probed) noexcept {
    for (;; data += 64 * n_blocks, hash = next_hash(hash)) {
      if (!probed.test<Kernel>(data, n_blocks, hash)) return false;
      if (--n_modules == 0) return true;
    }
  }

  BLOOMLINE_ATTRIBUTE(pure)
  BLOOMLINE_CALL bool contains_by_call(uint64_t hash) const noexcept { return contains(hash); }

  /// Inserts a hash into all modules. Returns whether a bit changed.
  BLOOMLINE_CALL bool insert(uint64_t hash) const noexcept {
    return with_kernel(active, [&](auto type) {
      bool changed = false;
      for (uint32_t i = 0; i < n_modules; ++i, hash = next_hash(hash)) {
        changed |= probed.set<decltype(type)>(module(i) + 64 * block_index(n_blocks, hash), hash);
      }
      return changed;
    });
  }

  BLOOMLINE_INLINE bool short_contains(uint64_t hash) const noexcept {
    const uint64_t index = block_index(n_blocks, hash);
#if defined(BLOOMLINE_ASSEMBLY)
    if (active >= kernel::avx2) {
      byte copy[64];
      const byte *opaque = copy;
      const uint32_t first = static_cast<uint32_t>(index) << log_stride(n_short);
      avx2::copy_short(data, kSteps[(std::min)(n_short, 8u)], first, n_short, copy);
      asm("" : "+r"(opaque));  // Hides the array's size, because GCC would warn of reads beyond it.
      return probed.test<avx2>(opaque, 1, hash);
    }
#endif
    // Probe by probe, because vectors would wait for a copy of the block.
    const auto lane = short_block(index);
    const uint64_t word = hash * probed.first->factor;
    uint64_t clear = clear_lanes(word, lane) & probed.first->probed[rotation_of(word)];
    if (probed.second == nullptr) return clear == 0;
    clear |= clear_lanes((word ^ word >> 32) * probed.second->factor, lane) & probed.second->probed[rotation_of(word)];
    return clear == 0;
  }

  /// Starts loading the lines of a block, which are two if it straddles them. Inlined, because GCC drops calls of a
  /// function that only prefetches.
  BLOOMLINE_INLINE void prefetch(const byte *module, uint64_t hash) const noexcept {
    [[maybe_unused]] const byte *const block = module + (n_short != 0 ? 0 : 64 * block_index(n_blocks, hash));
#if defined(__GNUC__)
    __builtin_prefetch(block);
    __builtin_prefetch(block + 63);
#endif
  }

  /// Calls `work(i)` for each hash in a module, and prefetches the blocks of later hashes if there are many.
  template <class Work>
  BLOOMLINE_INLINE void for_each_hash(const byte *module, const uint64_t *hashes, size_t n,
                                      const Work &work) const noexcept {
    constexpr size_t kDistance = 96;
    size_t i = 0;
    if (n_blocks >= prefetch_from()) {
      for (size_t early = 0; early < (std::min)(n, kDistance); ++early) prefetch(module, hashes[early]);
      for (; i + kDistance < n; ++i) {
        prefetch(module, hashes[i + kDistance]);
        work(i);
      }
    }
    for (; i < n; ++i) work(i);
  }

  template <class Kernel>
  BLOOMLINE_INLINE void test_module(uint32_t index, const uint64_t *hashes, size_t n, bool *found) const noexcept {
    const byte *const blocks = module(index);
    for_each_hash(blocks, hashes, n, [=, n_blocks = n_blocks, probed = probed](size_t i) {
      found[i] = probed.template test<Kernel>(blocks, n_blocks, hashes[i]);
    });
  }

  /// `contains` for each hash.
  template <class Kernel>
  BLOOMLINE_CALL void contains_batch(const uint64_t *hashes, size_t n, bool *found) const noexcept {
    test_module<Kernel>(0, hashes, n, found);
    if (n_modules == 1) return;
    constexpr size_t kChunk = 512;
    uint64_t rest[kChunk];
    size_t places[kChunk], n_rest = 0;
    bool in_module[kChunk];
    // Without a branch, which would be mispredicted where absent and present keys are mixed.
    const auto keep = [&](uint64_t hash, size_t place) {
      rest[n_rest] = hash;
      places[n_rest] = place;
      n_rest += found[place];
    };
    for (size_t start = 0; start < n; start += kChunk, n_rest = 0) {
      for (size_t i = start; i < (std::min)(n, start + kChunk); ++i) keep(hashes[i], i);
      for (uint32_t module = 1; module < n_modules && n_rest > 0; ++module) {
        const size_t n_tested = std::exchange(n_rest, 0);
        for (size_t i = 0; i < n_tested; ++i) rest[i] = next_hash(rest[i]);
        test_module<Kernel>(module, rest, n_tested, in_module);
        for (size_t i = 0; i < n_tested; ++i) {
          found[places[i]] = in_module[i];
          keep(rest[i], places[i]);
        }
      }
    }
  }

  /// Inserts each hash into all modules. Sets `changed[i]`, if it is not null, to whether hash i changed a bit.
  template <class Kernel>
  BLOOMLINE_CALL void insert_batch(const uint64_t *hashes, size_t n, bool *changed) const noexcept {
    constexpr size_t kChunk = 1024;
    uint64_t of_module[kChunk];
    for (size_t start = 0; start < n; start += n_modules == 1 ? n : kChunk) {
      const uint64_t *now = hashes + start;
      const size_t n_now = n_modules == 1 ? n : (std::min)(n - start, kChunk);
      for (uint32_t index = 0; index < n_modules; ++index) {
        byte *const blocks = module(index);
        for_each_hash(blocks, now, n_now, [=, n_blocks = n_blocks, probed = probed](size_t i) {
          const bool is_new = probed.template set<Kernel>(blocks + 64 * block_index(n_blocks, now[i]), now[i]);
          if (changed != nullptr) changed[start + i] = is_new | (index > 0 && changed[start + i]);
        });
        for (size_t i = 0; n_modules > 1 && i < n_now; ++i) of_module[i] = next_hash(now[i]);
        now = of_module;
      }
    }
  }

  /// Where lane `i` of whole blocks is in a short filter of `n_lanes` lanes and the same number of blocks.
  static size_t short_offset(uint64_t i, uint64_t n_lanes) noexcept {
    return static_cast<size_t>(8 * (((i / 8 << log_stride(n_lanes)) + i % 8) % n_lanes));
  }

  /// The lanes of a short filter of `n_lanes` lanes. Each has the bits of all lanes that it stands for.
  std::string united(uint64_t n_lanes) const {
    std::string all(static_cast<size_t>(8 * n_lanes), '\0');
    for (uint64_t i = 0; i < 8 * n_blocks; ++i) {
      char *const lane = &all[short_offset(i, n_lanes)];
      store8(lane, load8(lane) | load8(data + 8 * i));
    }
    return all;
  }

  /// The fewest lanes that represent the blocks. They are those of a short filter, if its blocks agree where they
  /// overlap.
  std::string fewest_lanes() const {
    const bool is_odd = n_modules == 1 && n_blocks % 2 == 1;
    for (uint64_t n_lanes = n_blocks; is_odd && n_lanes <= 4 * n_blocks && n_lanes < 64; n_lanes *= 2) {
      std::string all = united(n_lanes);
      bool agree = true;
      for (uint64_t i = 0; i < 8 * n_blocks; ++i) agree &= load8(&all[short_offset(i, n_lanes)]) == load8(data + 8 * i);
      if (agree) return all;
    }
    return {reinterpret_cast<const char *>(data), byte_len()};
  }

  /// Appends what follows the lanes in compact bytes.
  void append_trailer(std::string &out) const {
    if (n_modules > 1) out += static_cast<char>(n_modules);
    out += static_cast<char>((n_modules > 1 ? 0x30 : 0x20) | (k - 1));
  }
};

inline void unite(byte *into, const byte *block) noexcept {
  for (unsigned lane = 0; lane < 64; lane += 8) store8(into + lane, load8(into + lane) | load8(block + lane));
}

constexpr const char *kMagics[] = {"\x89" "bloom\r\n", "\x89" "blmod\r\n"};
constexpr const char *kForeign[][2] = {
    {"std", "standard filter"}, {"cnt", "counting filter"}, {"scl", "scalable filter"},
    {"siv", "frontier"},        {"bnk", "filter bank"},     {"idx", "file index"}};
constexpr uint64_t kUnknown = UINT64_MAX;

/// Returns whether a filter can have this many bytes.
inline bool is_body(uint64_t size) noexcept { return size != 0 && size % 8 == 0 && (size % 64 == 0 || size < 512); }

/// Reads the shape of compact bytes. Returns `false` if they are not compact bytes.
BLOOMLINE_INLINE bool read_compact(bytes compact, shape &found) noexcept {
  const size_t size = compact.size();
  const bool is_several = size > 64 && size % 64 == 2;
  const size_t body = size - (is_several ? 2 : 1);
  if (!is_body(body)) return false;
  const uint32_t n_modules = is_several ? compact.data()[body] : 1;
  const uint32_t k = (compact.data()[size - 1] ^ (is_several ? 0x30u : 0x20u)) + 1;
  if (k > 16 || (is_several && (n_modules < 2 || n_modules > kMostModules))) return false;
  found = shape_of(body / 8, n_modules, k);
  return found.byte_len() == body;
}

/// For bytes that `read_compact` refused.
inline error why_not_compact(bytes compact) {
  const size_t size = compact.size();
  const bool is_several = size > 64 && size % 64 == 2;
  if (!is_several && !is_body(size - 1)) return fail(kNotCompact, {size});
  const byte n_modules = compact.data()[size - 2], last = compact.data()[size - 1];
  if (last >> 4 != (is_several ? 3 : 2)) return fail(kBadTrailer, {hex(last, 1)});
  return n_modules < 2 || n_modules > kMostModules ? fail(kForgedModules, {n_modules}) : fail(kNotCompact, {size});
}

/// Fails unless the bytes have the checksum that is stored at an address.
inline std::optional<error> check(const fault &fault, const byte *from, size_t size, uint64_t seed,
                                  const byte *stored) {
  const uint64_t computed = xxh64(from, size, seed);
  if (computed == load8(stored)) return {};
  return fail(fault, {hex(computed), hex(load8(stored))});
}

/// Zeroed blocks, each in one cache line.
class memory {
 public:
  explicit memory(uint64_t n_blocks) noexcept
      : base_(n_blocks > kMaxBlocks ? nullptr : std::calloc(static_cast<size_t>(n_blocks) + 1, 64)) {}
  memory(memory &&other) noexcept : base_(std::exchange(other.base_, nullptr)) {}
  memory &operator=(memory &&other) noexcept { return std::swap(base_, other.base_), *this; }
  ~memory() { std::free(base_); }

  /// Null if there is not enough memory.
  byte *data() const noexcept {
    const auto address = reinterpret_cast<uintptr_t>(base_);
    return base_ == nullptr ? nullptr : static_cast<byte *>(base_) + (64 - address % 64);
  }

 private:
  void *base_;
};

}  // namespace detail

// ---- Interface ----

/// The kernel of filters that are opened now: avx512, avx2, sse4.1, neon or portable. The environment variable
/// BLOOMLINE_KERNEL can name a slower one.
inline const char *kernel_name() noexcept {
  return detail::kKernelNames[static_cast<int>(detail::active_kernel())];
}

/// Hashes a key as a filter with seed 0 does, for lookups by hash in many filters.
///
/// A key is text, which is anything that converts to `std::string_view`, an object with `data()` and `size()` whose
/// elements have one byte, such as `bytes`, or an integer of up to 64 bits. An integer is its 8 little-endian bytes, so
/// `int8_t{-1}` and `int64_t{-1}` are one key, but 5 and "5" are two. A `char` array or pointer is text up to its first
/// 0 byte. Other types do not compile.
template <class Key>
BLOOMLINE_INLINE uint64_t hash_key(const Key &key) noexcept {
  return detail::hash_mixed(key, detail::kMixedZero);
}

/// Hashes a key as a filter with this seed does. A wrong seed loses keys.
template <class Key>
BLOOMLINE_INLINE uint64_t hash_key(const Key &key, uint64_t seed) noexcept {
  static_assert(!std::is_array_v<Key> && !std::is_pointer_v<Key>, "the seed comes second, so pass a std::string_view");
  return detail::hash_mixed(key, detail::mixed_seed(seed));
}

/// The name under which bloomline's filter policies store filters, which are compact bytes of seed 0.
constexpr const char *policy_name = "bloomline.BlockedBloom2";

/// The size of a filter: blocks of 64 bytes, the modules that these are divided into, and k, the probes per key.
class sizing {
 public:
  /// A size of `n_blocks` blocks in all, which must be a multiple of `n_modules`, 1 to 16. `k` is 1 to 16.
  static result<sizing> of(uint64_t n_blocks, unsigned k, unsigned n_modules = 1) {
    using namespace detail;
    if (k < 1 || k > 16) return fail(kBadK, {k});
    if (n_blocks < 1 || n_blocks > kMaxBlocks) return fail(kBadBlocks, {kMaxBlocks, n_blocks});
    if (!is_valid(n_modules)) return fail(kBadModules, {n_modules});
    if (n_blocks % n_modules != 0) return fail(kBadDivision, {n_blocks, n_modules, n_modules});
    return sizing({n_blocks / n_modules, n_modules, 0, k});
  }

  /// The smallest size with a false-positive rate of at most `fpr` once the filter holds `keys` distinct keys. `fpr` is
  /// from 5.432e-13, or 1.263e-8 in one module, to below 1. Below 0.05%, it has two or more modules, unless the keys
  /// are few. With `most_modules`, 1 to 16, each further module has to save only 1% of the bits, not 7%. Pass 1 if most
  /// lookups are of present keys.
  static result<sizing> for_fpr(uint64_t keys, double fpr, std::optional<unsigned> most_modules = {}) {
    return of_request(keys, detail::request_fpr(keys, fpr, most_modules));
  }

  /// A size of `bits_per_key` bits, above 0 and at most 64, for each of `keys` distinct keys, with the best k. For
  /// `most_modules`, see `for_fpr`.
  static result<sizing> for_bits_per_key(uint64_t keys, double bits_per_key,
                                         std::optional<unsigned> most_modules = {}) {
    return of_request(keys, detail::request_bits(bits_per_key, most_modules));
  }

  /// This size with up to 1% more blocks, or one more in each module, so that the filter can be folded.
  sizing rounded_to_fold() const noexcept {
    uint64_t step = 2;
    for (const uint64_t next : {4u, 12u, 24u, 120u, 720u}) step = next - 1 <= shape_.n_blocks / 100 ? next : step;
    for (uint64_t next = 5040; next - 1 <= shape_.n_blocks / 100; next *= 2) step = next;
    const uint64_t n_blocks = (shape_.n_blocks + step - 1) / step * step;
    return sizing({(std::min)(n_blocks, detail::kMaxBlocks / shape_.n_modules), shape_.n_modules, 0, shape_.k});
  }

  uint64_t n_blocks() const noexcept { return shape_.n_blocks * shape_.n_modules; }  ///< Of all modules.
  unsigned n_modules() const noexcept { return shape_.n_modules; }
  unsigned k() const noexcept { return shape_.k; }
  uint64_t byte_len() const noexcept { return 64 * n_blocks(); }

 private:
  friend class filter_base;
  friend class filter;
  explicit sizing(const detail::shape &shape) noexcept : shape_(shape) {}

  static result<sizing> of_request(uint64_t keys, const result<detail::request> &request) {
    if (!request) return request.error();
    const auto shape = detail::size_of(keys, *request, false);
    return shape ? sizing(*shape) : result<sizing>(shape.error());
  }

  detail::shape shape_;
};

class filter;

/// What a filter and a view of one have in common. Any number of threads may use it at once.
class filter_base {
 public:
  /// Hashes a key under the filter's seed.
  template <class Key>
  BLOOMLINE_INLINE uint64_t hash_key(const Key &key) const noexcept { return detail::hash_mixed(key, mixed_seed_); }

  /// Returns whether the key is possibly present. `false` means definitely absent.
  template <class Key>
  BLOOMLINE_INLINE bool contains(const Key &key) const noexcept { return contains_hash(hash_key(key)); }

  /// `contains` for a hash that `hash_key` made with the filter's seed.
  BLOOMLINE_INLINE bool contains_hash(uint64_t hash) const noexcept {
#if defined(BLOOMLINE_ASSEMBLY)
    using namespace detail;
    // Before the branches, so that a loop loads them once.
    const byte *const data = body_.data;
    const uint64_t n_blocks = body_.n_blocks;
    const constants &c = *body_.probed.first;
    if (__builtin_expect(inlined_ == kernel::avx512, 1)) return avx512::test(data, n_blocks, hash, hash, c);
    if (__builtin_expect(inlined_ == kernel::avx2, 1)) return avx2::test(data, n_blocks, hash, hash, c);
#endif
    return body_.contains_by_call(hash);
  }

  /// Sets `found[i]` to `contains_hash(hashes[i])` for each of `n` hashes. This is three times as fast as single
  /// lookups in filters above the size of the L2 cache, and slightly slower in smaller ones.
  void contains_batch(const uint64_t *hashes, size_t n, bool *found) const noexcept {
    for (size_t i = 0; body_.n_short != 0 && i < n; ++i) found[i] = body_.short_contains(hashes[i]);
    if (body_.n_short != 0) return;
    detail::with_kernel(body_.active, [&](auto type) { body_.contains_batch<decltype(type)>(hashes, n, found); });
  }

  /// Starts loading what a lookup of the hash reads first.
  BLOOMLINE_INLINE void prefetch(uint64_t hash) const noexcept { body_.prefetch(body_.data, hash); }
  /// Blocks, modules and k. A short filter's blocks overlap, so its bytes are fewer than the size's.
  sizing shape() const noexcept { return sizing({body_.n_blocks, body_.n_modules, 0, body_.k}); }
  uint64_t n_blocks() const noexcept { return body_.n_blocks * body_.n_modules; }
  unsigned n_modules() const noexcept { return body_.n_modules; }
  unsigned k() const noexcept { return body_.k; }
  uint64_t seed() const noexcept { return seed_; }
  uint64_t byte_len() const noexcept { return body_.byte_len(); }  ///< Of the lanes.

  /// Number of distinct keys. Known of an empty filter and after `filter_builder::finish`, but not after an insert, nor
  /// in compact bytes.
  std::optional<uint64_t> known_keys() const noexcept {
    return keys_ == detail::kUnknown ? std::nullopt : std::optional<uint64_t>(keys_);
  }

  /// Copies the blocks into a filter that can be changed. Reads all bytes.
  result<filter> to_filter() const;

  /// `to_filter` with the number of blocks of each module divided by `factor`, which must divide it, to shrink a filter
  /// that got fewer keys than expected. Bit for bit, the result is the filter that would have been built with that many
  /// blocks.
  result<filter> to_folded(uint64_t factor) const;

 protected:
  friend class filter;
  friend class filter_view;
  friend class filter_builder;

  filter_base(const detail::body &body, uint64_t seed, uint64_t keys, const detail::byte *checksums) noexcept
      : body_(body), seed_(seed), mixed_seed_(detail::mixed_seed(seed)), keys_(keys), checksums_(checksums),
        inlined_(body.n_modules == 1 && body.n_short == 0 && body.k <= 8 ? body.active : detail::kernel::undecided) {}

  filter_base(const filter_base &) = default;
  filter_base &operator=(const filter_base &) = default;

  detail::body body_;
  uint64_t seed_, mixed_seed_, keys_;
  const detail::byte *checksums_;
  detail::kernel inlined_;  ///< The kernel, if lookups are inlined.
};

/// A filter read in place, at any alignment. The bytes must stay as they are while a view of them exists. If they are
/// aligned to 64, each block lies in one cache line.
class filter_view : public filter_base {
 public:
  /// A view of a filter, which must neither end, be folded nor be assigned to while the view is used. Inserts show in
  /// it.
  filter_view(const filter &filter) noexcept;
  filter_view(const filter &&) = delete;

  /// Opens compact bytes, which must have been made with this seed. They have no checksum and damage loses keys, so the
  /// container must verify its own.
  static result<filter_view> from_compact(bytes compact, uint64_t seed = 0) {
    detail::shape shape;
    if (!detail::read_compact(compact, shape)) return detail::why_not_compact(compact);
    return filter_view({compact.data(), shape}, seed, detail::kUnknown, nullptr);
  }

  /// Looks up a hash, which `hash_key` made with the filter's seed, in compact bytes, for a cache that keeps bytes.
  /// Returns `true`, possibly present, for bytes that are not a filter's compact bytes.
  BLOOMLINE_INLINE static bool compact_contains_hash(bytes compact, uint64_t hash) noexcept {
#if defined(BLOOMLINE_ASSEMBLY)
    using namespace detail;
    // The number of blocks, or an impossible one unless the size is that of whole blocks and a trailer.
    const uint64_t less_1 = compact.size() - 1, n_blocks = less_1 >> 6 | less_1 << 58;
    if (__builtin_expect((n_blocks - 1) >> 57 == 0, 1)) {
      const uint64_t k_less_1 = compact.data()[less_1] ^ uint64_t{0x20};
      // Opaque, because GCC would compute two addresses in the table.
      auto address = reinterpret_cast<uintptr_t>(&kTable) + k_less_1 * sizeof(constants);
      asm("" : "+r"(address));
      const constants &c = *reinterpret_cast<const constants *>(address);
      if (__builtin_expect(k_less_1 < most_k_avx512.load(std::memory_order_relaxed), 1)) {
        return avx512::test(compact.data(), n_blocks, hash, hash, c);
      }
      if (__builtin_expect(k_less_1 < most_k_avx2.load(std::memory_order_relaxed), 1)) {
        return avx2::test(compact.data(), n_blocks, hash, hash, c);
      }
    }
#endif
    return compact_contains_by_call(compact, hash);
  }

  /// Returns whether these are a filter's compact bytes. Count those that are not, because their lookups save no reads.
  static bool is_compact(bytes compact) noexcept {
    detail::shape shape;
    return detail::read_compact(compact, shape);
  }

  /// Opens standalone bytes, and compares all of them with their checksums.
  static result<filter_view> from_standalone(bytes standalone) {
    auto view = from_standalone_unverified(standalone);
    if (!view) return view;
    if (auto failed = view->verify()) return *std::move(failed);
    return view;
  }

  /// Opens standalone bytes without reading the filter's bits, for large mapped files. Damaged bits lose keys until
  /// `verify` finds them.
  static result<filter_view> from_standalone_unverified(bytes standalone) {
    using namespace detail;
    if (standalone.size() < 64) return fail(kTooShort, {standalone.size()});
    const uint64_t size = standalone.size() - 64;
    const byte *const footer = standalone.data() + size;
    const auto ends_in = [&](const char *magic) { return std::memcmp(footer + 56, magic, 8) == 0; };
    const bool is_several = ends_in(kMagics[1]);
    if (!is_several && !ends_in(kMagics[0])) {
      for (const auto &[letters, name] : kForeign) {
        if (ends_in(("\x89" "bl" + std::string(letters) + "\r\n").c_str())) return fail(kOtherStructure, {name});
      }
      std::string last;
      for (int i = 56; i < 64; ++i) last += hex(footer[i], 2);
      return fail(kOtherMagic, {last});
    }
    const unsigned version = footer[40], k = footer[41], hash_id = footer[42];
    if (version != 2) return fail(version < 2 ? kOldVersion : kNewVersion, {version});
    if (auto failed = check(kBadFooter, footer, 48, 0, footer + 48)) return *std::move(failed);
    if (hash_id != 2) return fail(kForgedField, {"hash id", hash_id});
    if (load8(footer + 24) != kCheckValue) return fail(kOtherHash, {hex(load8(footer + 24)), hex(kCheckValue)});
    const uint64_t stored = load8(footer), reserved = load8(footer + 40) >> 24;
    if (!is_several && reserved != 0) return fail(kForgedField, {"reserved bytes", reserved});
    if (is_several && reserved - 1 >= kMostModules) return fail(kForgedField, {"number of modules", reserved});
    if (k < 1 || k > 16) return fail(kForgedField, {"k", k});
    // The size is the number of lanes of one module, or the number of blocks of each of several modules.
    const auto n_modules = is_several ? static_cast<uint32_t>(reserved) : 1;
    const uint64_t unit = is_several ? 8 * n_modules : 1, tail = is_several ? 8 * n_modules : 0, body = size - tail;
    if (size < tail || !is_body(body) || body % (8 * unit) != 0 || body / (8 * unit) != stored) {
      return fail(kOtherSize, {stored > kUnknown / unit ? kUnknown : stored * unit, size});
    }
    const byte *const checksums = is_several ? footer - tail : footer + 32;
    if (is_several) {
      if (auto failed = check(kDamaged, checksums, 8 * n_modules, 0, footer + 32)) return *std::move(failed);
    }
    return filter_view({standalone.data(), shape_of(body / 8, n_modules, k)}, load8(footer + 16), load8(footer + 8),
                       checksums);
  }

  /// Compares the bits with the checksums of standalone bytes.
  [[nodiscard]] std::optional<error> verify() const {
    using namespace detail;
    if (checksums_ == nullptr) return fail(kNoChecksum);
    const size_t size = body_.byte_len() / body_.n_modules;
    for (uint32_t i = 0; i < body_.n_modules; ++i) {
      if (auto failed = check(kDamaged, body_.module(i), size, i, checksums_ + 8 * i)) return failed;
    }
    return {};
  }

 private:
  using filter_base::filter_base;

  BLOOMLINE_CALL static bool compact_contains_by_call(bytes compact, uint64_t hash) noexcept {
    // First short filters, which LevelDB mostly has.
    if (const size_t size = compact.size() - 1; size % 8 == 0 && size < 512 && size % 64 != 0) {
      const unsigned k = (compact.data()[size] ^ 0x20u) + 1;
      return k > 16 || detail::body(compact.data(), detail::shape_of(size / 8, 1, k)).short_contains(hash);
    }
    detail::shape shape;
    return !detail::read_compact(compact, shape) || detail::body(compact.data(), shape).contains(hash);
  }
};

/// A filter that owns its blocks. Movable, and copied by `to_filter`. One that was moved from must not be used, except
/// to assign to it.
class filter : public filter_base {
 public:
  /// An empty filter for `expected_keys` distinct keys with a false-positive rate of at most `fpr`. Up to 1% larger
  /// than `sizing::for_fpr`, so that it can be folded.
  static result<filter> with_fpr(uint64_t expected_keys, double fpr) {
    const auto size = sizing::for_fpr(expected_keys, fpr);
    return size ? with_sizing(size->rounded_to_fold()) : result<filter>(size.error());
  }

  /// An empty filter of the size that `sizing::for_bits_per_key` computes.
  static result<filter> with_bits_per_key(uint64_t expected_keys, double bits_per_key) {
    const auto size = sizing::for_bits_per_key(expected_keys, bits_per_key);
    return size ? with_sizing(*size) : result<filter>(size.error());
  }

  /// An empty filter of this size. Keep seed 0 unless filters must not share false positives. Standalone bytes have the
  /// seed, compact bytes do not.
  static result<filter> with_sizing(const sizing &size, uint64_t seed = 0) { return empty(size.shape_, seed); }

  /// A copy of compact bytes, as `filter_view::from_compact` opens them.
  static result<filter> from_compact(bytes compact, uint64_t seed = 0) {
    const auto view = filter_view::from_compact(compact, seed);
    return view ? view->to_filter() : result<filter>(view.error());
  }

  /// A copy of standalone bytes, after comparing them with their checksums.
  static result<filter> from_standalone(bytes standalone) {
    const auto view = filter_view::from_standalone(standalone);
    return view ? view->to_filter() : result<filter>(view.error());
  }

  /// For the rules, see `filter_view`.
  filter_view view() const noexcept { return *this; }

  /// Inserts a key. Returns whether a bit changed. If not, the key was possibly present.
  template <class Key>
  BLOOMLINE_INLINE bool insert(const Key &key) noexcept { return insert_hash(hash_key(key)); }

  /// `insert` for a hash that `hash_key` made with the filter's seed.
  BLOOMLINE_INLINE bool insert_hash(uint64_t hash) noexcept {
    keys_ = detail::kUnknown;
#if defined(BLOOMLINE_ASSEMBLY)
    using namespace detail;
    if (inlined_ == kernel::avx512) return set<avx512>(hash);
    if (inlined_ == kernel::avx2) return set<avx2>(hash);
#endif
    return body_.insert(hash);
  }

  /// Inserts the keys of `n` hashes. Sets `changed[i]`, if it is not null, to whether hash i changed a bit.
  void insert_batch(const uint64_t *hashes, size_t n, bool *changed = nullptr) noexcept {
    if (n == 0) return;
    keys_ = detail::kUnknown;
    detail::with_kernel(body_.active, [&](auto type) { body_.insert_batch<decltype(type)>(hashes, n, changed); });
  }

  /// Adds the keys of the other filter, which must have the same k, seed and number of modules, and its number of
  /// blocks or a divisor. If not, returns why, and changes nothing.
  [[nodiscard]] std::optional<error> union_with(const filter_view &other) {
    using namespace detail;
    const body &theirs = other.body_;
    if (body_.n_modules != theirs.n_modules) return fail(kOtherModules, {body_.n_modules, theirs.n_modules});
    if (body_.k != theirs.k) return fail(kOtherK, {body_.k, theirs.k});
    if (seed_ != other.seed_) return fail(kOtherSeed, {hex(seed_, 1), hex(other.seed_, 1)});
    if (body_.n_blocks % theirs.n_blocks != 0) {
      const std::string factor = std::to_string(theirs.n_blocks / body_.n_blocks);
      const bool is_larger = theirs.n_blocks % body_.n_blocks == 0;
      const std::string advice = is_larger ? "fold the larger one by " + factor : "build both with one size";
      return fail(kOtherBlocks, {n_blocks(), other.n_blocks(), advice});
    }
    const uint64_t repeats = body_.n_blocks / theirs.n_blocks;
    byte copy[64];
    for (uint64_t i = 0; i < n_blocks(); ++i) unite(body_.data + 64 * i, theirs.block(i / repeats, copy));
    keys_ = kUnknown;
    return {};
  }

  /// `to_folded` in place. Views of the filter then dangle.
  [[nodiscard]] std::optional<error> fold(uint64_t factor) {
    if (factor == 1) return {};
    auto folded = to_folded(factor);
    if (!folded) return folded.error();
    *this = *std::move(folded);
    return {};
  }

  /// Removes all keys.
  void clear() noexcept {
    std::memset(body_.data, 0, body_.byte_len());
    keys_ = 0;
  }

  /// The bytes for a container that stores their length, the seed if it is not 0, and a checksum.
  std::string to_compact() const {
    std::string out = body_.fewest_lanes();
    body_.append_trailer(out);
    return out;
  }

  /// The bytes for a file or a network, with checksums.
  std::string to_standalone() const {
    using namespace detail;
    std::string out = body_.fewest_lanes();
    const size_t size = out.size(), of_module = size / body_.n_modules;
    const bool is_several = body_.n_modules > 1;
    const auto checksum_of = [&](size_t from, size_t length, uint64_t number) {
      return xxh64(reinterpret_cast<const byte *>(out.data()) + from, length, number);
    };
    const auto append = [&](uint64_t word) {
      out.append(8, '\0');
      store8(&out[out.size() - 8], word);
    };
    for (uint32_t i = 0; is_several && i < body_.n_modules; ++i) append(checksum_of(i * of_module, of_module, i));
    const size_t footer = out.size();
    append(is_several ? body_.n_blocks : size / 8);
    append(keys_);
    append(seed_);
    append(kCheckValue);
    append(is_several ? checksum_of(size, footer - size, 0) : checksum_of(0, size, 0));
    append(2 | body_.k << 8 | 2u << 16 | (is_several ? uint64_t{body_.n_modules} << 24 : 0));
    append(checksum_of(footer, 48, 0));
    return out.append(kMagics[is_several], 8);
  }

 private:
  friend class filter_base;
  friend class filter_builder;

  filter(const detail::shape &shape, uint64_t seed, detail::memory memory) noexcept
      : filter_base({memory.data(), shape}, seed, 0, nullptr), memory_(std::move(memory)) {}

  /// An empty filter of whole blocks, as many as the shape has.
  static result<filter> empty(detail::shape shape, uint64_t seed) {
    shape.n_short = 0;
    const uint64_t n_blocks = shape.n_blocks * shape.n_modules;
    detail::memory memory(n_blocks);
    if (memory.data() != nullptr) return filter(shape, seed, std::move(memory));
    return detail::fail(detail::kNoMemory, {n_blocks});
  }

  template <class Kernel>
  BLOOMLINE_INLINE bool set(uint64_t hash) noexcept {
    const detail::constants &c = *body_.probed.first;
    const uint64_t word = hash * c.factor, index = detail::block_index(body_.n_blocks, hash);
    return Kernel::set(body_.data + 64 * index, word, detail::rotation_of(word), c);
  }

  detail::memory memory_;
};

inline filter_view::filter_view(const filter &filter) noexcept : filter_base(filter) {}

inline result<filter> filter_base::to_filter() const { return to_folded(1); }

inline result<filter> filter_base::to_folded(uint64_t factor) const {
  using namespace detail;
  if (factor == 0 || body_.n_blocks % factor != 0) return fail(kBadFactor, {body_.n_blocks, factor, body_.n_blocks});
  auto folded = filter::empty({body_.n_blocks / factor, body_.n_modules, 0, body_.k}, seed_);
  if (!folded) return folded;
  // No group of neighbours spans two modules.
  byte copy[64], *const to = folded->body_.data;
  for (uint64_t i = 0; i < n_blocks(); ++i) unite(to + 64 * (i / factor), body_.block(i, copy));
  // A number of 0 may be forged, and no answer may depend on it.
  const bool is_empty = to[0] == 0 && std::memcmp(to, to + 1, folded->body_.byte_len() - 1) == 0;
  folded->keys_ = keys_ == 0 && !is_empty ? kUnknown : keys_;
  return folded;
}

/// Collects keys, then makes a filter of the right size, for writers of tables. Uses 8 bytes per key. Keys may repeat.
class filter_builder {
 public:
  /// Filters of `bits_per_key` bits, above 0 and at most 64, for each distinct key: 10 for 1% false positives. For
  /// `most_modules`, see `sizing::for_fpr`.
  static result<filter_builder> with_bits_per_key(double bits_per_key, std::optional<unsigned> most_modules = {}) {
    return of_request(detail::request_bits(bits_per_key, most_modules));
  }

  /// Filters with a false-positive rate of at most `fpr`, as `sizing::for_fpr` has them.
  static result<filter_builder> with_fpr(double fpr, std::optional<unsigned> most_modules = {}) {
    return of_request(detail::request_fpr(0, fpr, most_modules));
  }

  /// The seed that keys are hashed with, 0 by default. Fails if keys have been inserted.
  [[nodiscard]] std::optional<error> set_seed(uint64_t seed) {
    if (!empty()) return detail::fail(detail::kLateSeed, {detail::hex(seed, 1)});
    seed_ = seed;
    mixed_seed_ = detail::mixed_seed(seed);
    return {};
  }

  template <class Key>
  uint64_t hash_key(const Key &key) const noexcept { return detail::hash_mixed(key, mixed_seed_); }

  template <class Key>
  void insert(const Key &key) { insert_hash(hash_key(key)); }

  void insert_hash(uint64_t hash) {
    // Databases insert keys in sorted order, each as often as it has versions.
    if (hashes_.empty() || hashes_.back() != hash) hashes_.push_back(hash);
  }

  void insert_batch(const uint64_t *hashes, size_t n) {
    for (size_t i = 0; i < n; ++i) insert_hash(hashes[i]);
  }

  void reserve(size_t n_keys) { hashes_.reserve(n_keys); }
  /// Number of keys inserted. A key that was inserted several times may count more than once.
  size_t size() const noexcept { return hashes_.size(); }
  bool empty() const noexcept { return hashes_.empty(); }
  void clear() noexcept { hashes_.clear(); }

  /// Makes a filter of whole blocks, and empties the builder. Counts the distinct keys exactly, and inserts all of them
  /// twice if some repeat. If it fails, the builder keeps its keys.
  result<filter> finish() {
    auto filter = build(false);
    if (filter) clear();
    return filter;
  }

  /// Makes the filter, appends its compact bytes to `out`, and empties the builder. Few keys get fewer bytes, in blocks
  /// that overlap. If memory for the filter runs out, returns why, and the builder keeps its keys.
  [[nodiscard]] std::optional<error> finish_compact(std::string &out) {
    const auto filter = build(true);
    if (!filter) return filter.error();
    const detail::body &body = filter->body_;
    const uint32_t n_short = detail::size_of(filter->keys_, request_, true)->n_short;
    const std::string united = n_short == 0 ? "" : body.united(n_short);
    const bytes lanes = n_short == 0 ? bytes(body.data, body.byte_len()) : bytes(united);
    // If memory runs out here, neither `out` nor the builder has changed.
    out.reserve(out.size() + lanes.size() + 2);
    out.append(reinterpret_cast<const char *>(lanes.data()), lanes.size());
    body.append_trailer(out);
    clear();
    return {};
  }

  /// Bytes that `finish_compact` would append, exact if no key was inserted twice. SIZE_MAX if they exceed memory.
  size_t compact_len() const {
    const auto size = detail::size_of(hashes_.size(), request_, true);
    return size ? size->byte_len() + (size->n_modules > 1 ? 2 : 1) : SIZE_MAX;
  }

 private:
  explicit filter_builder(const detail::request &request) : request_(request) {}

  static result<filter_builder> of_request(const result<detail::request> &request) {
    return request ? filter_builder(*request) : result<filter_builder>(request.error());
  }

  /// An empty filter for as many keys.
  result<filter> sized(uint64_t keys, const detail::request &request, bool is_compact) const {
    const auto shape = detail::size_of(keys, request, is_compact);
    return shape ? filter::empty(*shape, seed_) : result<filter>(shape.error());
  }

  result<filter> build(bool is_compact) const {
    auto filter = sized(hashes_.size(), request_, is_compact);
    if (!filter) return filter;
    const auto repeats = count_repeats(hashes_where(false, [&](const uint64_t *hashes, size_t n, bool *changed) {
      filter->insert_batch(hashes, n, changed);
    }));
    if (!repeats) return repeats.error();
    const uint64_t keys = hashes_.size() - *repeats;
    if (*repeats != 0) {
      filter = sized(keys, request_, is_compact);
      if (!filter) return filter;
      filter->insert_batch(hashes_.data(), hashes_.size());
    }
    filter->keys_ = keys;
    return filter;
  }

  /// Counts the repeats, given the hashes whose insert changed no bit. These are all repeats, and some keys that were
  /// false positives. Sorts only keys whose hash is among them, which a filter selects, because to sort all would cost
  /// more than everything else.
  result<uint64_t> count_repeats(const std::vector<uint64_t> &unchanged) const {
    if (unchanged.empty()) return 0;
    auto suspects = sized(unchanged.size(), *detail::request_bits(12, 1), false);
    if (!suspects) return suspects.error();
    suspects->insert_batch(unchanged.data(), unchanged.size());
    auto found = hashes_where(true, [&](const uint64_t *hashes, size_t n, bool *is_found) {
      suspects->contains_batch(hashes, n, is_found);
    });
    std::sort(found.begin(), found.end());
    return static_cast<uint64_t>(found.end() - std::unique(found.begin(), found.end()));
  }

  /// The hashes to which `ask` has this answer, which are few.
  template <class Ask>
  std::vector<uint64_t> hashes_where(bool answer, const Ask &ask) const {
    std::vector<uint64_t> all;
    bool answers[4096];
    for (size_t start = 0; start < hashes_.size(); start += sizeof answers) {
      const size_t n = (std::min)(hashes_.size() - start, sizeof answers);
      ask(&hashes_[start], n, answers);
      for (size_t i = 0; i < n; ++i) {
        const void *const next = std::memchr(answers + i, answer, n - i);
        if (next == nullptr) break;
        i = static_cast<size_t>(static_cast<const bool *>(next) - answers);
        all.push_back(hashes_[start + i]);
      }
    }
    return all;
  }

  detail::request request_;
  std::vector<uint64_t> hashes_;
  uint64_t seed_ = 0, mixed_seed_ = detail::kMixedZero;
};

}  // namespace v0_1
}  // namespace bloomline
#endif
