// The two packages' policies for LevelDB as one, for the tests in LevelDB: they must create the same filters, and give
// the same answers. So each test is of both, without running twice.
#pragma once

#include <bloomline/leveldb.h>
#include <bloomline/leveldb.hpp>

#include <cstdio>
#include <cstdlib>
#include <string>

class BothPolicies : public leveldb::FilterPolicy {
 public:
  explicit BothPolicies(double bits_per_key) : c_(bits_per_key), cpp_(bits_per_key) {
    require(std::string(c_.Name()) == cpp_.Name(), "name");
  }

  const char *Name() const override { return cpp_.Name(); }

  void CreateFilter(const leveldb::Slice *keys, int n, std::string *filters) const override {
    std::string others = *filters;
    c_.CreateFilter(keys, n, &others);
    cpp_.CreateFilter(keys, n, filters);
    require(*filters == others, "filter");
  }

  bool KeyMayMatch(const leveldb::Slice &key, const leveldb::Slice &filter) const override {
    const bool answer = cpp_.KeyMayMatch(key, filter);
    require(answer == c_.KeyMayMatch(key, filter), "answer");
    return answer;
  }

 private:
  // LevelDB catches no exceptions.
  static void require(bool is_same, const char *what) {
    if (is_same) return;
    std::fprintf(stderr, "the C++ header's policy has another %s than the C package's\n", what);
    std::abort();
  }

  const bloomline::LevelDBFilterPolicy c_;
  const bloomline::leveldb_filter_policy cpp_;
};
