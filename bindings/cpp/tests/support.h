// What the tests of the header share. It compiles without exceptions and RTTI, as the header does.
#ifndef BLOOMLINE_CPP_TESTS_SUPPORT_H
#define BLOOMLINE_CPP_TESTS_SUPPORT_H

#include <sys/mman.h>
#include <unistd.h>

#include <bloomline/bloomline.hpp>

using namespace bloomline;

// For the message of a check that fails.
inline std::string test_case, kernel_in_use = "default";

// `CHECK(condition)`, or `CHECK(condition, found)` with text for the message.
#define CHECK(...) check(__FILE__, __LINE__, #__VA_ARGS__, __VA_ARGS__)

template <class Condition>
void check(const char *file, int line, const char *text, const Condition &condition, const std::string &found = "") {
  if (static_cast<bool>(condition)) return;
  std::fprintf(stderr, "%s:%d: %s, kernel %s: expected %s; found %s\n", file, line, test_case.c_str(),
               kernel_in_use.c_str(), text, found.c_str());
  std::abort();
}

// Calls `test` with each kernel that this CPU has and BLOOMLINE_KERNEL allows, and prints their names. If
// EXPECT_KERNELS is set, they must be these, so that no machine passes with fewer than intended. Only Rust has
// "reference".
template <class Test>
void with_each_kernel(const Test &test) {
  using detail::kernel;
  const kernel fastest = detail::choose_kernel();
  std::string covered;
  for (const kernel each : {kernel::avx512, kernel::avx2, kernel::sse41, kernel::neon, kernel::portable}) {
    if (each > fastest || !detail::has(each)) continue;
    detail::use_kernel(each);
    kernel_in_use = detail::kKernelNames[static_cast<size_t>(each)];
    test();
    covered += (covered.empty() ? "" : ",") + kernel_in_use;
  }
  std::printf("kernels: %s\n", covered.c_str());
  const char *const expected = std::getenv("EXPECT_KERNELS");
  CHECK(!expected || *expected == '\0' || expected == covered || expected == covered + ",reference", covered);
}

struct Random {
  uint64_t state;

  // SplitMix64.
  uint64_t next() {
    uint64_t word = state++ * 0x9e3779b97f4a7c15;
    word = (word ^ word >> 30) * 0xbf58476d1ce4e5b9;
    word = (word ^ word >> 27) * 0x94d049bb133111eb;
    return word ^ word >> 31;
  }
  size_t below(size_t n) { return static_cast<size_t>(next() % n); }
  size_t between(size_t least, size_t most) { return least + below(most - least + 1); }
  bool once_in(size_t n) { return below(n) == 0; }

  // Some at the edges of the block index, and some with equal high bits, which fall in one block.
  std::vector<uint64_t> hashes(size_t n) {
    std::vector<uint64_t> hashes(n);
    for (uint64_t &hash : hashes) {
      hash = once_in(8) ? (0 - uint64_t{below(2)}) >> below(2) ^ below(2) : next();
      if (once_in(8)) hash = hash >> 62 << 62 | below(1 << 16);
    }
    return hashes;
  }
};

// Memory before a page that cannot be read, so that a read or write beyond its end ends the program, also in assembly,
// which sanitizers do not see.
class Fenced {
 public:
  explicit Fenced(size_t size) {
    void *const all = mmap(nullptr, size + 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    end_ = static_cast<char *>(all) + size;
    CHECK(all != MAP_FAILED && mprotect(end_, 65536, PROT_NONE) == 0);
  }

  // A copy, `gap` bytes before the end.
  template <class T>
  T *copy(const T *from, size_t n, size_t gap = 0) const {
    void *const to = end_ - gap - n * sizeof(T);
    return static_cast<T *>(n == 0 ? to : std::memcpy(to, from, n * sizeof(T)));
  }

 private:
  char *end_;
};

#endif
