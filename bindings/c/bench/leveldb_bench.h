// Shared by the comparisons of LevelDB's own filter policy with bloomline's.
#pragma once

#include <bloomline/leveldb.h>
#include <leveldb/filter_policy.h>
#include <leveldb/slice.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <memory>

#include "../tests/leveldb_support.h"

constexpr int kBitsPerKey = 10;

using Policy = std::unique_ptr<const leveldb::FilterPolicy>;

inline Policy their_policy() { return Policy(leveldb::NewBloomFilterPolicy(kBitsPerKey)); }

inline Policy our_policy(int bits_per_key = kBitsPerKey) {
  return std::make_unique<bloomline::LevelDBFilterPolicy>(bits_per_key);
}

// Keys of 16 bytes end to end, because a string for each would cost one more cache miss.
class Keys {
 public:
  void add(const leveldb::Slice &key) { bytes_.append(key.data(), key.size()); }

  leveldb::Slice operator[](size_t i) const { return leveldb::Slice(bytes_.data() + 16 * i, 16); }
  size_t size() const { return bytes_.size() / 16; }

 private:
  std::string bytes_;
};

// Of each operation of some work.
template <typename Work>
double nanoseconds(size_t operations, Work work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  const std::chrono::duration<double, std::nano> spent = std::chrono::steady_clock::now() - start;
  return spent.count() / static_cast<double>(operations);
}

// The lower quartile, the median and the upper quartile.
inline std::array<double, 3> quartiles(std::vector<double> numbers) {
  std::sort(numbers.begin(), numbers.end());
  return {numbers[numbers.size() / 4], numbers[numbers.size() / 2], numbers[numbers.size() * 3 / 4]};
}

// Of the ratios within a round.
inline std::array<double, 3> ratios(std::vector<double> times, const std::vector<double> &others) {
  for (size_t round = 0; round < times.size(); ++round) times[round] /= others[round];
  return quartiles(std::move(times));
}
