// Takes the place of LevelDB's util/options.cc, and of the function that util/bloom.cc is compiled without: LevelDB's
// tests then run with bloomline's filters, in databases whose options set no policy, too. The C package's policy and the
// C++ header's create each filter and answer each query, and must agree.
//
// POLICY=built-in in the environment chooses LevelDB's filters instead. POLICY=broken hides one key in a hundred, which
// the tests must notice.
#include <leveldb/comparator.h>
#include <leveldb/env.h>
#include <leveldb/options.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "../both_policies.h"
#include "util/hash.h"

namespace leveldb {

// In util/bloom.cc, which is compiled with this name for the function.
const FilterPolicy *NewBuiltInFilterPolicy(int bits_per_key);

namespace {

std::atomic<unsigned long> created{0}, queried{0}, matched{0};

void print_calls() {
  std::fprintf(stderr, "%lu filters created, %lu queried, %lu of them matched\n", created.load(), queried.load(),
               matched.load());
}

bool policy_is(const char *name) {
  const char *policy = std::getenv("POLICY");
  return policy != nullptr && std::string(policy) == name;
}

class Counted : public FilterPolicy {
 public:
  explicit Counted(const FilterPolicy *policy) : policy_(policy), broken_(policy_is("broken")) {
    static const int once = std::atexit(print_calls);
    (void)once;
  }

  const char *Name() const override { return policy_->Name(); }

  void CreateFilter(const Slice *keys, int n, std::string *filters) const override {
    ++created;
    policy_->CreateFilter(keys, n, filters);
  }

  bool KeyMayMatch(const Slice &key, const Slice &filter) const override {
    ++queried;
    const bool hidden = broken_ && Hash(key.data(), key.size(), 0) % 100 == 0;
    const bool match = !hidden && policy_->KeyMayMatch(key, filter);
    matched += match;
    return match;
  }

 private:
  const std::unique_ptr<const FilterPolicy> policy_;
  const bool broken_;
};

}  // namespace

const FilterPolicy *NewBloomFilterPolicy(int bits_per_key) {
  if (policy_is("built-in")) return new Counted(NewBuiltInFilterPolicy(bits_per_key));
  return new Counted(new BothPolicies(bits_per_key));
}

Options::Options() : comparator(BytewiseComparator()), env(Env::Default()) {
  static const FilterPolicy *const policy = NewBloomFilterPolicy(10);
  filter_policy = policy;
}

}  // namespace leveldb
