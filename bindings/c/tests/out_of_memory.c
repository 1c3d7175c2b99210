/* Refuses every allocation of each function in turn, by a malloc of its own: each must be reported, none may abort.
 * Lookups and inserts must not allocate at all. For glibc. Usage: out_of_memory */
#include <bloomline/bloomline.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

/* Allocations until one is refused, and all after it. */
static size_t allowed = SIZE_MAX;

static bool refused(void) {
  if (allowed == SIZE_MAX) return false;
  if (allowed == 0) return true;
  --allowed;
  return false;
}

void *malloc(size_t n) { return refused() ? NULL : __libc_malloc(n); }
void *calloc(size_t n, size_t size) { return refused() ? NULL : __libc_calloc(n, size); }
void *realloc(void *memory, size_t n) { return refused() ? NULL : __libc_realloc(memory, n); }
int posix_memalign(void **memory, size_t alignment, size_t n) {
  *memory = refused() ? NULL : __libc_memalign(alignment, n);
  return *memory == NULL ? ENOMEM : 0;
}

#define CHECK(condition)                                                                           \
  do {                                                                                             \
    if (!(condition)) {                                                                            \
      allowed = SIZE_MAX;                                                                          \
      fprintf(stderr, "%s:%d: failed: %s; last error: \"%s\"\n", __FILE__, __LINE__,     \
              #condition, bloomline_last_error());                                                 \
      exit(1);                                                                                     \
    }                                                                                              \
  } while (0)

/* Runs `call` with 0, 1, 2, ... allocations allowed, until it is `good`. `unchanged` must hold after each failure. */
#define SWEEP(least, call, good, unchanged)                                                        \
  do {                                                                                             \
    size_t failures = 0;                                                                           \
    for (;; ++failures) {                                                                          \
      bloomline_clear_error();                                                                     \
      allowed = failures;                                                                          \
      call;                                                                                        \
      allowed = SIZE_MAX;                                                                          \
      if (good) break;                                                                             \
      CHECK(bloomline_last_status() == BLOOMLINE_OUT_OF_MEMORY);                                   \
      CHECK(strstr(bloomline_last_error(), " bytes") != NULL);                                     \
      CHECK(unchanged);                                                                            \
    }                                                                                              \
    CHECK(bloomline_last_status() == BLOOMLINE_OK);                                                \
    CHECK(failures + 1 > (least));                                                                 \
    ++functions, allocations += failures;                                                          \
  } while (0)

#define SWEEP_NEW(type, call, free)                                                                \
  do {                                                                                             \
    type *object;                                                                                  \
    SWEEP(1, object = (call), object != NULL, true);                                               \
    free(object);                                                                                  \
  } while (0)

enum { KEYS = 20000 };

static unsigned functions;
static size_t allocations;
static uint64_t hashes[KEYS];

static void filters(void) {
  SWEEP_NEW(bloomline_filter_t, bloomline_filter_with_fpr(KEYS, 0.01), bloomline_filter_free);
  SWEEP_NEW(bloomline_filter_t, bloomline_filter_with_fpr_within(KEYS, 0.01, 2), bloomline_filter_free);
  SWEEP_NEW(bloomline_filter_t, bloomline_filter_with_bits_per_key(KEYS, 10), bloomline_filter_free);
  SWEEP_NEW(bloomline_filter_t, bloomline_filter_with_blocks(64, 6), bloomline_filter_free);
  bloomline_filter_t *filter = bloomline_filter_with_blocks(64, 6), *converted;
  bloomline_status_t status;
  SWEEP(1, status = bloomline_filter_set_seed(filter, 7), status == BLOOMLINE_OK, bloomline_filter_seed(filter) == 0);
  CHECK(bloomline_filter_seed(filter) == 7);
  bloomline_filter_insert_batch(filter, hashes, 20);
  SWEEP_NEW(bloomline_filter_t, bloomline_filter_clone(filter), bloomline_filter_free);
  SWEEP(1, status = bloomline_filter_fold(filter, 2), status == BLOOMLINE_OK, bloomline_filter_n_blocks(filter) == 64);
  SWEEP(2, status = bloomline_filter_shrink_to_fpr(filter, 0.01), status == BLOOMLINE_OK,
        bloomline_filter_n_blocks(filter) == 32);
  size_t length;
  SWEEP_NEW(void, bloomline_filter_to_compact(filter, &length), bloomline_free);
  SWEEP_NEW(void, bloomline_filter_to_standalone(filter, &length), bloomline_free);
  static char buffer[65536];
  SWEEP(1, status = bloomline_filter_write_compact(filter, buffer, sizeof buffer, &length), status == BLOOMLINE_OK,
        length == 0);
  SWEEP_NEW(bloomline_view_t, bloomline_view_from_compact(buffer, length), bloomline_view_free);
  SWEEP_NEW(bloomline_view_t, bloomline_view_from_compact_with_seed(buffer, length, 7), bloomline_view_free);
  SWEEP(1, status = bloomline_filter_write_standalone(filter, buffer, sizeof buffer, &length), status == BLOOMLINE_OK,
        length == 0);
  SWEEP_NEW(bloomline_view_t, bloomline_view_from_standalone(buffer, length), bloomline_view_free);
  SWEEP_NEW(bloomline_view_t, bloomline_view_from_standalone_unverified(buffer, length), bloomline_view_free);
  bloomline_view_t *view = bloomline_view_from_standalone(buffer, length);
  SWEEP_NEW(bloomline_filter_t, bloomline_view_to_filter(view), bloomline_filter_free);

  SWEEP_NEW(bloomline_atomic_filter_t, bloomline_atomic_filter_with_fpr(KEYS, 0.01), bloomline_atomic_filter_free);
  SWEEP_NEW(bloomline_atomic_filter_t, bloomline_atomic_filter_with_bits_per_key(KEYS, 10),
            bloomline_atomic_filter_free);
  SWEEP_NEW(bloomline_atomic_filter_t, bloomline_atomic_filter_with_blocks(64, 6), bloomline_atomic_filter_free);
  bloomline_atomic_filter_t *shared = bloomline_atomic_filter_with_blocks(64, 6);
  SWEEP(1, status = bloomline_atomic_filter_set_seed(shared, 7), status == BLOOMLINE_OK,
        bloomline_atomic_filter_seed(shared) == 0 && bloomline_atomic_filter_n_blocks(shared) == 64);
  SWEEP_NEW(void, bloomline_atomic_filter_to_standalone(shared, &length), bloomline_free);
  bloomline_atomic_filter_free(shared);
  shared = bloomline_atomic_filter_with_fpr(KEYS, 0.0001); /* Two modules, with a checksum of each. */
  SWEEP_NEW(void, bloomline_atomic_filter_to_standalone(shared, &length), bloomline_free);
  bloomline_atomic_filter_free(shared);
  SWEEP(1, status = bloomline_filter_write_standalone(filter, buffer, sizeof buffer, &length), status == BLOOMLINE_OK,
        length == 0);
  SWEEP_NEW(bloomline_atomic_filter_t, bloomline_atomic_filter_from_standalone(buffer, length),
            bloomline_atomic_filter_free);
  SWEEP(1, shared = bloomline_atomic_filter_from_filter(filter), shared != NULL, bloomline_filter_k(filter) == 6);
  SWEEP_NEW(bloomline_filter_t, bloomline_atomic_filter_to_filter(shared), bloomline_filter_free);

  allowed = 0;
  bloomline_clear_error();
  bool found[9];
  const uint64_t hash = bloomline_hash_key("ant", 3, 7);
  CHECK(bloomline_view_contains_hash(view, hashes[0]) && !bloomline_view_contains(view, "ant", 3));
  CHECK(bloomline_view_contains_batch(view, hashes, 9, found) == BLOOMLINE_OK && found[8]);
  CHECK(bloomline_atomic_filter_insert_hash(shared, hash) && bloomline_atomic_filter_contains(shared, "ant", 3));
  CHECK(bloomline_atomic_filter_insert_batch(shared, hashes, 99) == BLOOMLINE_OK);
  CHECK(bloomline_compact_contains(buffer, 3, "ant", 3) && bloomline_view_verify(view) == BLOOMLINE_OK);
  CHECK(bloomline_filter_contains(NULL, "ant", 3) && strlen(bloomline_last_error()) != 0);
  CHECK(bloomline_which_contain((const bloomline_view_t **)&view, 1, hash, found) == BLOOMLINE_OK && !found[0]);
  CHECK(strlen(bloomline_kernel_name()) != 0);
  allowed = SIZE_MAX;

  bloomline_view_free(view);
  SWEEP(1, converted = bloomline_atomic_filter_into_filter(shared), converted != NULL,
        bloomline_atomic_filter_k(shared) == 6);
  allowed = 0;
  bloomline_filter_insert(converted, "bee", 3);
  CHECK(bloomline_filter_contains(converted, "bee", 3));
  CHECK(bloomline_filter_insert_batch(converted, hashes, 200) == BLOOMLINE_OK);
  allowed = SIZE_MAX;
  bloomline_filter_free(converted);
}

/* A golden file, beside this one in the sources. */
static void banks(void) {
  static char path[4096], bytes[1 << 20];
  snprintf(path, sizeof path, "%.*s../../../tests/golden/bank-100-slots.bin", (int)(strlen(__FILE__) - 15), __FILE__);
  FILE *file = fopen(path, "rb");
  CHECK(file != NULL);
  const size_t length = fread(bytes, 1, sizeof bytes, file);
  fclose(file);
  SWEEP_NEW(bloomline_bank_t, bloomline_bank_from_standalone(bytes, length), bloomline_bank_free);
  bloomline_bank_t *bank = bloomline_bank_from_standalone(bytes, length);
  uint64_t found[2];
  allowed = 0;
  CHECK(bloomline_bank_find(bank, "99-0", 4, found, 2) == BLOOMLINE_OK && found[1] >> (99 - 64) & 1);
  allowed = SIZE_MAX;
  bloomline_bank_free(bank);
}

static void builders(void) {
  SWEEP_NEW(bloomline_builder_t, bloomline_builder_with_fpr(0.01), bloomline_builder_free);
  SWEEP_NEW(bloomline_builder_t, bloomline_builder_with_bits_per_key(10), bloomline_builder_free);
  static const size_t sizes[] = {0, 1, 34, 1000, KEYS};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
    const size_t n = sizes[i], n_added = n + n / 2;
    bloomline_builder_t *builder = bloomline_builder_with_bits_per_key(10);
    bloomline_status_t is_set;
    SWEEP(0, is_set = bloomline_builder_set_most_modules(builder, 1), is_set == BLOOMLINE_OK, false);
    for (int form = 0; form < 2; ++form) {
      for (size_t key = 0; key < n_added; ++key) {
        bloomline_status_t status;
        if (key == 0) {
          SWEEP(form == 0, status = bloomline_builder_insert(builder, "ant", 3), status == BLOOMLINE_OK,
                bloomline_builder_len(builder) == 0);
        } else {
          SWEEP(0, status = bloomline_builder_insert_hash(builder, hashes[key % n]), status == BLOOMLINE_OK,
                bloomline_builder_len(builder) == key);
        }
      }
      CHECK(bloomline_builder_len(builder) == n_added);
      if (form == 0) {
        size_t length;
        void *bytes;
        SWEEP(3, bytes = bloomline_builder_finish_compact(builder, &length), bytes != NULL,
              length == 0 && bloomline_builder_len(builder) == n_added);
        CHECK(n == 0 || bloomline_compact_contains(bytes, length, "ant", 3));
        bloomline_free(bytes);
      } else {
        bloomline_filter_t *filter;
        SWEEP(2, filter = bloomline_builder_finish(builder), filter != NULL, bloomline_builder_len(builder) == n_added);
        CHECK(n == 0 || bloomline_filter_contains(filter, "ant", 3));
        bloomline_filter_free(filter);
      }
      CHECK(bloomline_builder_len(builder) == 0);
    }
    bloomline_builder_free(builder);
  }
}

static void policies(void) {
  static const void *keys[KEYS];
  static size_t lengths[KEYS];
  for (size_t i = 0; i < KEYS; ++i) {
    keys[i] = &hashes[i];
    lengths[i] = sizeof *hashes;
  }
  SWEEP_NEW(bloomline_policy_t, bloomline_policy_with_fpr(0.01), bloomline_policy_free);
  SWEEP_NEW(bloomline_policy_t, bloomline_policy_with_bits_per_key(10), bloomline_policy_free);
  bloomline_policy_t *policy = bloomline_policy_with_bits_per_key(10);
  bloomline_status_t is_set;
  SWEEP(0, is_set = bloomline_policy_set_most_modules(policy, 1), is_set == BLOOMLINE_OK, false);
  static const size_t sizes[] = {0, 34, 1000, KEYS};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
    size_t n = sizes[i], length;
    void *filter;
    SWEEP(3, filter = bloomline_policy_create_filter(policy, keys, lengths, n, &length), filter != NULL, length == 0);
    bloomline_free(filter);
    SWEEP(3, filter = bloomline_policy_create_filter_from_hashes(policy, hashes, n, &length), filter != NULL,
          length == 0);
    allowed = 0;
    CHECK(n != 0 || !bloomline_policy_key_may_match(policy, filter, length, "ant", 3));
    CHECK(bloomline_policy_key_may_match(policy, filter, 1, "ant", 3));
    allowed = SIZE_MAX;
    bloomline_free(filter);
  }
  bloomline_policy_free(policy);
}

int main(void) {
  for (size_t i = 0; i < KEYS; ++i) hashes[i] = bloomline_mix(i);
  bloomline_kernel_name(); /* A copy of BLOOMLINE_KERNEL, if that is set, is made once. */
  filters();
  banks();
  builders();
  policies();
  printf("%u calls, %zu refused allocations: passed\n", functions, allocations);
  return allocations < 100;
}
