// Boost.Bloom's filters whose lookups read 64 or 32 bytes, with k = 7, which it needs at compile time.

#include <boost/bloom.hpp>

#include "loops.h"

namespace {

// The contenders are given hashes.
struct Identity {
  using is_avalanching = void;
  size_t operator()(uint64_t hash) const { return hash; }
};

template <typename Block>
struct Boost : Loops<Boost<Block>> {
  Boost(size_t size_bytes, double, int) : filter(8 * size_bytes) {}

  void Insert(uint64_t hash) { filter.insert(hash); }
  bool Contains(uint64_t hash) const { return filter.may_contain(hash); }
  uint64_t HashOf(const char *, size_t) const { return 0; }  // By hash only.

  boost::bloom::filter<uint64_t, 1, Block, 0, Identity> filter;
};

}  // namespace

extern "C" const Functions FUNCTIONS[] = {functions<Boost<boost::bloom::fast_multiblock64<7>>>(),
                                          functions<Boost<boost::bloom::fast_multiblock32<7>>>()};
