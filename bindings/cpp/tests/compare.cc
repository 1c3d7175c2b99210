// The header against Rust, through the C interface: the same bytes, answers and messages, whatever the input.
//
//   compare [CASES [SEED]]        100 cases by default, with each kernel
//
// With -DFUZZ -fsanitize=fuzzer, opens libFuzzer's inputs instead.
#include <bloomline/bloomline.h>

#include <cmath>
#include <memory>

#include "support.h"

namespace {

template <auto free>
struct Free {
  template <class T>
  void operator()(T *object) const { free(object); }
};
using RustFilter = std::unique_ptr<bloomline_filter_t, Free<bloomline_filter_free>>;
using RustView = std::unique_ptr<bloomline_view_t, Free<bloomline_view_free>>;
using RustBuilder = std::unique_ptr<bloomline_builder_t, Free<bloomline_builder_free>>;

uint64_t n_lookups, n_inputs, n_accepted;
Fenced fenced(1 << 20);

template <class Write, class Object>
std::string written(Write write, Object *object) {
  size_t size;
  const std::unique_ptr<void, Free<bloomline_free>> memory(write(object, &size));
  return std::string(static_cast<const char *>(memory.get()), size);
}

// Both succeed, or fail with the same message, but for what to do with another kind of filter. Returns the success.
bool same_result(const std::optional<error> &ours, bool is_success) {
  std::string text = ours ? ours->message : "no error", theirs = is_success ? "no error" : bloomline_last_error();
  for (std::string *const each : {&text, &theirs}) {
    if (each->rfind("these are the bytes of a ", 0) == 0) each->erase(each->find_first_of(",:"));
  }
  CHECK(text == theirs, "\n  " + text + "\n  " + theirs);
  return is_success;
}
template <class T>
bool same_result(const result<T> &ours, bool is_success) {
  return same_result(ours ? std::nullopt : std::optional<error>(ours.error()), is_success);
}

void same_filter(const filter &ours, const bloomline_filter_t *theirs, const std::vector<uint64_t> &hashes) {
  CHECK(ours.to_compact() == written(bloomline_filter_to_compact, theirs));
  CHECK(ours.to_standalone() == written(bloomline_filter_to_standalone, theirs));
  for (const uint64_t hash : hashes) CHECK(ours.contains_hash(hash) == bloomline_filter_contains_hash(theirs, hash));
  n_lookups += hashes.size();
}

// Arbitrary bytes, in memory that ends with them.
void same_view(const std::string &input, Random random) {
  const size_t n = input.size();
  const bytes at(fenced.copy(input.data(), n), n);
  const uint64_t seed = random.once_in(2) ? 0 : random.next();
  const std::vector<uint64_t> hashes = random.hashes(40);
  bool is_accepted = false;
  for (const int form : {0, 1, 2}) {
    const auto ours = form == 0   ? filter_view::from_compact(at, seed)
                      : form == 1 ? filter_view::from_standalone(at)
                                  : filter_view::from_standalone_unverified(at);
    const RustView theirs(form == 0   ? bloomline_view_from_compact_with_seed(at.data(), n, seed)
                          : form == 1 ? bloomline_view_from_standalone(at.data(), n)
                                      : bloomline_view_from_standalone_unverified(at.data(), n));
    const bool is_open = same_result(ours, theirs != nullptr);
    CHECK(form != 0 || filter_view::is_compact(at) == is_open);
    for (const uint64_t hash : hashes) {
      if (form != 0) break;
      CHECK(filter_view::compact_contains_hash(at, hash) == bloomline_compact_contains_hash(at.data(), n, hash));
    }
    if (!is_open) continue;
    is_accepted = true;
    same_result(ours->verify(), bloomline_view_verify(theirs.get()) == BLOOMLINE_OK);
    bool found[40];
    ours->contains_batch(hashes.data(), 40, found);
    for (size_t i = 0; i < 40; ++i) {
      CHECK(ours->contains_hash(hashes[i]) == bloomline_view_contains_hash(theirs.get(), hashes[i]));
      CHECK(ours->contains_hash(hashes[i]) == found[i]);
    }
    same_filter(*ours->to_filter(), RustFilter(bloomline_view_to_filter(theirs.get())).get(), hashes);
  }
  ++n_inputs;
  n_accepted += is_accepted;
}

// Writes the checksums that the bytes would have, so that readers look at what these protect.
void repair(std::string &input) {
  if (input.size() < 64) return;
  const auto *const data = reinterpret_cast<const unsigned char *>(input.data());
  const size_t footer = input.size() - 64, n_modules = data[footer + 43];
  size_t from = 0;
  if (data[footer + 59] == 'm' && n_modules > 0 && footer > 8 * n_modules) {
    from = footer - 8 * n_modules;
    const size_t size = from / n_modules;
    for (size_t i = 0; i < n_modules; ++i) {
      detail::store8(&input[from + 8 * i], detail::xxh64(data + i * size, size, i));
    }
  }
  detail::store8(&input[footer + 32], detail::xxh64(data + from, footer - from, 0));
  detail::store8(&input[footer + 48], detail::xxh64(data + footer, 48, 0));
}

#ifdef FUZZ

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string input(reinterpret_cast<const char *>(data), size);
  for (int i = 0; i < 2; ++i, repair(input)) same_view(input, Random{size});
  return 0;
}
}  // namespace

#else

std::string damage(std::string input, Random &random) {
  for (size_t changes = random.between(1, 3); changes > 0 && !input.empty(); --changes) {
    const size_t size = input.size(), at = random.below(size), n = size_t{1} << random.below(8);
    const size_t footer = size < 64 ? 0 : size - 64;
    const uint64_t edges[] = {random.below(20), ~uint64_t{random.below(20)}, uint64_t{1} << random.below(64)};
    const auto byte = static_cast<char>(random.next());
    switch (random.below(8)) {
      case 0: input[at] = static_cast<char>(input[at] ^ 1 << random.below(8)); break;
      case 1: input.erase(0, random.once_in(2) ? n : at); break;
      case 2: input.erase(size - std::min(size, random.once_in(2) ? n : at)); break;
      case 3: input.insert(random.once_in(2) ? 0 : at, random.once_in(2) ? n : at % 100, byte); break;
      case 4: input.back() = byte; break;
      case 5: input[size - std::min<size_t>(size, 2)] = static_cast<char>(random.below(20)); break;
      case 6: input[std::min(footer + 40 + random.below(8), size - 1)] = static_cast<char>(edges[at % 3]); break;
      default: if (size >= 64) detail::store8(&input[footer + 8 * random.below(5)], edges[random.below(3)]);
    }
  }
  if (random.once_in(2)) repair(input);
  return input;
}

void same_changes(Random &random) {
  const auto k = static_cast<unsigned>(random.between(1, 16));
  const auto n_modules = static_cast<unsigned>(random.once_in(2) ? 1 : random.between(1, 16));
  const uint64_t seed = random.once_in(2) ? 0 : random.next();
  // A filter with keys, but now and then of another k, number of modules or seed.
  const auto filter_of = [&](uint64_t n_blocks, size_t odds) {
    const unsigned modules = random.once_in(odds) ? 1 : n_modules;
    const sizing shape = *sizing::of(n_blocks * modules, random.once_in(odds) ? 1 : k, modules);
    filter made = *filter::with_sizing(shape, random.once_in(odds) ? 1 : seed);
    const std::vector<uint64_t> hashes = random.hashes(random.below(10 * n_blocks + 2));
    made.insert_batch(hashes.data(), hashes.size());
    return made;
  };
  const auto copied = [](const filter &from) {
    const std::string all = from.to_standalone();
    const RustView view(bloomline_view_from_standalone(all.data(), all.size()));
    return RustFilter(bloomline_view_to_filter(view.get()));
  };
  filter ours = filter_of(random.between(1, random.once_in(10) ? 1000 : 80), SIZE_MAX);
  const RustFilter theirs = copied(ours);
  for (int i = 0; i < 20; ++i) {
    std::string key(random.below(random.once_in(4) ? 200 : 20), '\0');
    for (char &byte : key) byte = static_cast<char>(random.next());
    const std::vector<uint64_t> hashes = random.hashes(random.below(40));
    const size_t n = ours.n_blocks() / n_modules, factor = random.below(6);
    switch (random.below(16)) {
      case 0:
        ours.clear(), bloomline_filter_clear(theirs.get());
        [[fallthrough]];
      case 1: {
        const filter other = filter_of(factor > 0 && n % factor == 0 ? n / factor : random.between(1, 2 * n), 9);
        same_result(ours.union_with(other), !bloomline_filter_union_with(theirs.get(), copied(other).get()));
        break;
      }
      case 2: same_result(ours.fold(factor), !bloomline_filter_fold(theirs.get(), factor)); break;
      case 3: ours.clear(), bloomline_filter_clear(theirs.get()); break;
      case 4:
        ours.insert_batch(hashes.data(), hashes.size());
        bloomline_filter_insert_batch(theirs.get(), hashes.data(), hashes.size());
        break;
      default:
        CHECK(ours.hash_key(key) == bloomline_filter_hash_key(theirs.get(), key.data(), key.size()));
        CHECK(ours.insert(key) == bloomline_filter_insert(theirs.get(), key.data(), key.size()));
        for (const uint64_t hash : hashes) {
          CHECK(ours.insert_hash(hash) == bloomline_filter_insert_hash(theirs.get(), hash));
        }
    }
    same_filter(ours, theirs.get(), random.hashes(50));
    same_view(damage(random.once_in(2) ? ours.to_standalone() : ours.to_compact(), random), random);
  }
}

void same_sizes(Random &random) {
  const double fpr = std::exp(-static_cast<double>(random.below(31 << 20)) / (1 << 20));
  const double bits = static_cast<double>(random.below(70 << 20)) / (1 << 20);
  const uint64_t keys = random.next() >> random.between(40, 63);
  const auto most = static_cast<unsigned>(random.below(18));
  test_case += ", " + std::to_string(keys) + " keys, at most " + std::to_string(most) + " modules";
  const auto same = [](const result<sizing> &ours, bool is_rounded, const RustFilter &theirs) {
    if (!same_result(ours, theirs != nullptr)) return;
    const sizing size = is_rounded ? ours->rounded_to_fold() : *ours;
    CHECK(size.n_blocks() == bloomline_filter_n_blocks(theirs.get()), std::to_string(size.n_blocks()));
    CHECK(size.k() == bloomline_filter_k(theirs.get()) && size.n_modules() == bloomline_filter_n_modules(theirs.get()));
  };
  same(sizing::for_fpr(keys, fpr), true, RustFilter(bloomline_filter_with_fpr(keys, fpr)));
  same(sizing::for_fpr(keys, fpr, most), true, RustFilter(bloomline_filter_with_fpr_within(keys, fpr, most)));
  same(sizing::for_bits_per_key(keys, bits), false, RustFilter(bloomline_filter_with_bits_per_key(keys, bits)));

  const bool is_rate = random.once_in(2);
  const RustBuilder theirs(is_rate ? bloomline_builder_with_fpr(fpr) : bloomline_builder_with_bits_per_key(bits));
  const bool is_limited = theirs && random.once_in(2);
  auto ours = !is_limited ? is_rate ? filter_builder::with_fpr(fpr) : filter_builder::with_bits_per_key(bits)
              : is_rate   ? filter_builder::with_fpr(fpr, most)
                          : filter_builder::with_bits_per_key(bits, most);
  if (is_limited && bloomline_builder_set_most_modules(theirs.get(), most) != BLOOMLINE_OK) {
    same_result(ours, false);
    return;
  }
  if (!same_result(ours, theirs != nullptr)) return;
  for (int round = 0; round < 2; ++round) {
    const uint64_t seed = random.once_in(2) ? 0 : random.next();
    CHECK(!ours->set_seed(seed) && bloomline_builder_set_seed(theirs.get(), seed) == BLOOMLINE_OK);
    const bool has_repeats = random.once_in(2);
    for (uint64_t hash : random.hashes(random.below(random.once_in(9) ? 20'000 : 100))) {
      if (!has_repeats) hash = random.next();
      ours->insert(std::to_string(hash));
      bloomline_builder_insert(theirs.get(), std::to_string(hash).data(), std::to_string(hash).size());
    }
    CHECK(ours->size() == bloomline_builder_len(theirs.get()));
    if (random.once_in(2)) {
      const RustFilter filter(bloomline_builder_finish(theirs.get()));
      same_filter(*ours->finish(), filter.get(), random.hashes(50));
    } else {
      std::string compact = "before";
      const size_t size = compact.size() + ours->compact_len();
      CHECK(!ours->finish_compact(compact) && (has_repeats || compact.size() == size));
      CHECK(compact == "before" + written(bloomline_builder_finish_compact, theirs.get()));
    }
    CHECK(ours->empty() && bloomline_builder_len(theirs.get()) == 0);
  }
}

}  // namespace

int main(int argc, char **argv) {
  const uint64_t n_cases = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 100;
  const uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  with_each_kernel([&] {
    n_lookups = n_inputs = n_accepted = 0;
    for (uint64_t i = 0; i < n_cases; ++i) {
      test_case = "seed " + std::to_string(seed + i);
      Random random{seed + i};
      same_changes(random);
      same_sizes(random);
    }
    std::printf("%s: %llu lookups, %llu damaged inputs, of which %llu were accepted\n", kernel_in_use.c_str(),
                (unsigned long long)n_lookups, (unsigned long long)n_inputs, (unsigned long long)n_accepted);
  });
}
#endif
