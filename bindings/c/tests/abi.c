/* The whole C interface, as C99 and as C++17: each function, also with null, with no keys, with invalid arguments and
 * at odd addresses. Usage: abi DIRECTORY FILE, where DIRECTORY exists. Writes FILE. */
#include <bloomline/bloomline.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Not `assert`, which NDEBUG removes. */
#define CHECK(condition)                                                                           \
  do {                                                                                             \
    if (!(condition)) {                                                                            \
      fprintf(stderr, "%s:%d: failed: %s; last error: \"%s\"\n", __FILE__, __LINE__,     \
              #condition, bloomline_last_error());                                                 \
      exit(1);                                                                                     \
    }                                                                                              \
  } while (0)

/* Checks that an expression is true and leaves this status, and an error message that contains this text, and no name
 * of another language, which has a backtick or "::". */
#define FAILS(status, text, condition)                                                             \
  do {                                                                                             \
    bloomline_clear_error();                                                                       \
    CHECK(condition);                                                                              \
    CHECK(bloomline_last_status() == (status));                                                    \
    CHECK(strstr(bloomline_last_error(), (text)) != NULL);                                         \
    CHECK(strstr(bloomline_last_error(), "::") == NULL && strchr(bloomline_last_error(), '`') == NULL); \
  } while (0)

#define NULL_FAILS(text, condition) FAILS(BLOOMLINE_INVALID_ARGUMENT, text " is a null pointer", condition)

/* Of calls that return their status. */
#define RETURNS(status, text, call) FAILS(status, text, (call) == (status))
#define NULL_RETURNS(text, call) RETURNS(BLOOMLINE_INVALID_ARGUMENT, text " is a null pointer", call)

/* Checks that an expression is true and no error is recorded. */
#define SUCCEEDS(condition)                                                                        \
  do {                                                                                             \
    bloomline_clear_error();                                                                       \
    CHECK(condition);                                                                              \
    CHECK(bloomline_last_status() == BLOOMLINE_OK);                                                \
    CHECK(strcmp(bloomline_last_error(), "") == 0);                                                \
  } while (0)

enum { KEYS = 1000 };
#define TOO_LONG SIZE_MAX

static const char *a_directory, *file_path;

/* The decimal digits of numbers, and their hashes with seed 0. */
static char digits[KEYS][16];
static const void *keys[KEYS];
static size_t lengths[KEYS];
static uint64_t present[KEYS];

static void make_keys(void) {
  for (unsigned i = 0; i < KEYS; ++i) {
    lengths[i] = (size_t)snprintf(digits[i], sizeof *digits, "%u", i);
    keys[i] = digits[i];
    present[i] = bloomline_hash_key(keys[i], lengths[i], 0);
  }
}

static void insert_all(bloomline_filter_t *filter) {
  for (unsigned i = 0; i < KEYS; ++i) bloomline_filter_insert(filter, keys[i], lengths[i]);
}

static bool has_all(const bloomline_filter_t *filter) {
  for (unsigned i = 0; i < KEYS; ++i) {
    if (!bloomline_filter_contains(filter, keys[i], lengths[i])) return false;
  }
  return true;
}

static bool view_has_all(const bloomline_view_t *view) {
  for (unsigned i = 0; i < KEYS; ++i) {
    if (!bloomline_view_contains(view, keys[i], lengths[i])) return false;
  }
  return true;
}

static unsigned count(const bool *found, size_t n) {
  unsigned sum = 0;
  for (size_t i = 0; i < n; ++i) sum += found[i];
  return sum;
}

static bloomline_filter_t *filter_of_keys(void) {
  bloomline_filter_t *filter = bloomline_filter_with_bits_per_key(KEYS, 10);
  CHECK(filter != NULL);
  insert_all(filter);
  return filter;
}

static bool same_bytes(const void *a, size_t a_length, const void *b, size_t b_length) {
  return a_length == b_length && memcmp(a, b, a_length) == 0;
}

static void about(void) {
  char parts[32];
  snprintf(parts, sizeof parts, "%d.%d.%d", BLOOMLINE_VERSION_MAJOR, BLOOMLINE_VERSION_MINOR, BLOOMLINE_VERSION_PATCH);
  CHECK(strcmp(parts, BLOOMLINE_VERSION) == 0);
  CHECK(strcmp(bloomline_version(), BLOOMLINE_VERSION) == 0);
  CHECK(strlen(bloomline_kernel_name()) != 0);
  CHECK(bloomline_kernel_name() == bloomline_kernel_name());
  CHECK(sizeof(bloomline_status_t) == 4 && BLOOMLINE_OK == 0);
}

static void errors(void) {
  bloomline_filter_t *filter = filter_of_keys();
  SUCCEEDS(true);
  FAILS(BLOOMLINE_SIZING, "probes per key must be 1 to 16, not 17", bloomline_filter_with_blocks(1, 17) == NULL);
  /* Like errno, a success does not clear it. */
  CHECK(bloomline_filter_clear(filter) == BLOOMLINE_OK);
  bloomline_filter_free(filter);
  CHECK(bloomline_last_status() == BLOOMLINE_SIZING);
  CHECK(strstr(bloomline_last_error(), "not 17") != NULL);
}

static void *errors_of_another_thread(void *unused) {
  SUCCEEDS(unused == NULL);
  NULL_FAILS("filter", bloomline_filter_k(NULL) == 0);
  return NULL;
}

static void errors_are_of_a_thread(void) {
  pthread_t thread;
  FAILS(BLOOMLINE_SIZING, "not 0", bloomline_filter_with_blocks(1, 0) == NULL);
  CHECK(pthread_create(&thread, NULL, errors_of_another_thread, NULL) == 0);
  CHECK(pthread_join(thread, NULL) == 0);
  CHECK(bloomline_last_status() == BLOOMLINE_SIZING);
}

static void hashes(void) {
  SUCCEEDS(bloomline_hash_key("boa", 3, 0) == 0x4a4f80b3040125ef); /* docs/format.md, section 6 */
  CHECK(bloomline_hash_key("ant", 3, 1) != bloomline_hash_key("ant", 3, 0));
  /* The integers 42 and -1, as in tests/golden/keys.tsv. */
  CHECK(bloomline_hash_key("\x2a\0\0\0\0\0\0", 8, 0) == 0x95551ac55e16f7c1);
  CHECK(bloomline_hash_key("\xff\xff\xff\xff\xff\xff\xff\xff", 8, 0) == 0x5ccb313aff050a23);
  SUCCEEDS(bloomline_hash_key(NULL, 0, 0) == bloomline_hash_key("", 0, 0));
  NULL_FAILS("key", bloomline_hash_key(NULL, 3, 0) == 0);
  FAILS(BLOOMLINE_INVALID_ARGUMENT, "key is longer than any object", bloomline_hash_key("ant", TOO_LONG, 0) == 0);
  CHECK(bloomline_mix(0) == 0xe220a8397b1dcdaf); /* SplitMix64's first output for seed 0 */
}

static void sizes(void) {
  double value = -1;
  uint32_t k = 0;
  SUCCEEDS(bloomline_bits_per_key(0.01, &value) == BLOOMLINE_OK && value > 9.9 && value < 10);
  RETURNS(BLOOMLINE_SIZING, "between 0 and 1", bloomline_bits_per_key(1, &value));
  CHECK(value > 9.9 && value < 10);
  SUCCEEDS(bloomline_fpr(10, 6, &value) == BLOOMLINE_OK && value > 0.0097 && value < 0.0098);
  RETURNS(BLOOMLINE_SIZING, "not 17", bloomline_fpr(10, 17, &value));
  SUCCEEDS(bloomline_best_k(10, &k) == BLOOMLINE_OK && k == 6);
  RETURNS(BLOOMLINE_SIZING, "not 65", bloomline_best_k(65, &k));
  CHECK(k == 6);
  NULL_RETURNS("out", bloomline_bits_per_key(0.01, NULL));
  NULL_RETURNS("out", bloomline_fpr(10, 6, NULL));
  NULL_RETURNS("out", bloomline_best_k(10, NULL));
}

static void filters_are_made(void) {
  bloomline_filter_t *filter = bloomline_filter_with_fpr(KEYS, 0.01);
  CHECK(filter != NULL && bloomline_filter_estimated_fpr(filter) == 0);
  CHECK(bloomline_filter_k(filter) == 7);
  CHECK(bloomline_filter_n_blocks(filter) % 2 == 0);
  CHECK(bloomline_filter_byte_len(filter) == 64 * bloomline_filter_n_blocks(filter));
  CHECK(bloomline_filter_seed(filter) == 0);
  bloomline_filter_free(filter);
  FAILS(BLOOMLINE_SIZING, "between 0 and 1", bloomline_filter_with_fpr(KEYS, 0) == NULL);
  FAILS(BLOOMLINE_SIZING, "use an exact structure", bloomline_filter_with_fpr(KEYS, 1e-13) == NULL);
  FAILS(BLOOMLINE_SIZING, "use an exact structure", bloomline_filter_with_fpr_within(KEYS, 1e-9, 1) == NULL);
  FAILS(BLOOMLINE_SIZING, "address space", bloomline_filter_with_fpr_within(TOO_LONG, 1e-6, 1) == NULL);
  FAILS(BLOOMLINE_SIZING, "modules must be 1 to 16, not 0", bloomline_filter_with_fpr_within(KEYS, 1e-6, 0) == NULL);

  filter = bloomline_filter_with_bits_per_key(0, 10);
  CHECK(filter != NULL && bloomline_filter_n_blocks(filter) == 1);
  bloomline_filter_free(filter);
  FAILS(BLOOMLINE_SIZING, "bits per key", bloomline_filter_with_bits_per_key(KEYS, 0) == NULL);

  filter = bloomline_filter_with_blocks(3, 16);
  CHECK(filter != NULL && bloomline_filter_n_blocks(filter) == 3 && bloomline_filter_k(filter) == 16);
  CHECK(bloomline_filter_n_modules(filter) == 1);
  bloomline_filter_free(filter);
  FAILS(BLOOMLINE_SIZING, "blocks of 64 bytes on this machine, not 0", bloomline_filter_with_blocks(0, 6) == NULL);
  FAILS(BLOOMLINE_OUT_OF_MEMORY, "cannot allocate", bloomline_filter_with_blocks(SIZE_MAX / 256, 6) == NULL);
  bloomline_filter_free(NULL);
}

static void filters_hold_keys(void) {
  bloomline_filter_t *filter = bloomline_filter_with_bits_per_key(KEYS, 10), *clone;
  CHECK(bloomline_filter_estimated_keys(filter) == 0 && bloomline_filter_fill_ratio(filter) == 0);
  SUCCEEDS(!bloomline_filter_contains(filter, "ant", 3));
  SUCCEEDS(bloomline_filter_insert(filter, "ant", 3));
  SUCCEEDS(!bloomline_filter_insert(filter, "ant", 3));
  CHECK(bloomline_filter_contains(filter, "ant", 3));

  /* The empty key, whose pointer may be null. */
  CHECK(!bloomline_filter_contains(filter, "", 0) && !bloomline_filter_contains(filter, NULL, 0));
  SUCCEEDS(bloomline_filter_insert(filter, NULL, 0));
  CHECK(bloomline_filter_contains(filter, "", 0) && bloomline_filter_contains(filter, NULL, 0));

  /* Keys at any address, with any bytes. */
  unsigned char bytes[64];
  for (unsigned i = 0; i < 64; ++i) bytes[i] = (unsigned char)(i * 37);
  for (unsigned start = 0; start < 16; ++start) {
    for (unsigned length = 0; length < 48; ++length) {
      bloomline_filter_insert(filter, bytes + start, length);
      CHECK(bloomline_filter_contains(filter, bytes + start, length));
    }
  }

  clone = bloomline_filter_clone(filter);
  CHECK(clone != NULL && bloomline_filter_contains(clone, "ant", 3));
  bloomline_filter_insert(clone, "bee", 3);
  CHECK(!bloomline_filter_contains(filter, "bee", 3));
  bloomline_filter_free(clone);

  SUCCEEDS(bloomline_filter_clear(filter) == BLOOMLINE_OK);
  CHECK(!bloomline_filter_contains(filter, "ant", 3));
  insert_all(filter);
  CHECK(has_all(filter));
  CHECK(bloomline_filter_estimated_keys(filter) > 950 && bloomline_filter_estimated_keys(filter) < 1050);
  CHECK(bloomline_filter_fill_ratio(filter) > 0.4 && bloomline_filter_fill_ratio(filter) < 0.5);
  CHECK(bloomline_filter_estimated_fpr(filter) > 0.005 && bloomline_filter_estimated_fpr(filter) < 0.02);
  bloomline_filter_free(filter);
}

static void seeds(void) {
  bloomline_filter_t *filter = bloomline_filter_with_blocks(100, 6);
  SUCCEEDS(bloomline_filter_set_seed(filter, 7) == BLOOMLINE_OK);
  CHECK(bloomline_filter_seed(filter) == 7 && bloomline_filter_n_blocks(filter) == 100);
  CHECK(bloomline_filter_k(filter) == 6);
  bloomline_filter_insert(filter, "ant", 3);
  SUCCEEDS(bloomline_filter_hash_key(filter, "ant", 3) == bloomline_hash_key("ant", 3, 7));
  CHECK(bloomline_filter_contains_hash(filter, bloomline_hash_key("ant", 3, 7)));
  CHECK(!bloomline_filter_contains_hash(filter, bloomline_hash_key("ant", 3, 0)));
  RETURNS(BLOOMLINE_NOT_EMPTY, "before the first key", bloomline_filter_set_seed(filter, 8));
  CHECK(bloomline_filter_seed(filter) == 7 && bloomline_filter_contains(filter, "ant", 3));
  bloomline_filter_clear(filter);
  SUCCEEDS(bloomline_filter_set_seed(filter, 8) == BLOOMLINE_OK);
  bloomline_filter_free(filter);
}

static void hashes_of_keys_and_batches(void) {
  bloomline_filter_t *one_by_one = filter_of_keys(), *batch = bloomline_filter_with_bits_per_key(KEYS, 10);
  static uint64_t absent[KEYS];
  bool found[KEYS + 1];
  for (unsigned i = 0; i < KEYS; ++i) absent[i] = bloomline_mix(i);
  SUCCEEDS(bloomline_filter_insert_hash(batch, present[0]));
  SUCCEEDS(!bloomline_filter_insert_hash(batch, present[0]));
  SUCCEEDS(bloomline_filter_insert_batch(batch, present, KEYS) == BLOOMLINE_OK);
  SUCCEEDS(bloomline_filter_insert_batch(batch, NULL, 0) == BLOOMLINE_OK);

  memset(found, 0xaa, sizeof found);
  SUCCEEDS(bloomline_filter_contains_batch(batch, present, KEYS, found) == BLOOMLINE_OK);
  CHECK(count(found, KEYS) == KEYS);
  CHECK(*(unsigned char *)&found[KEYS] == 0xaa);
  SUCCEEDS(bloomline_filter_contains_batch(one_by_one, absent, KEYS, found) == BLOOMLINE_OK);
  CHECK(count(found, KEYS) < 40);
  for (unsigned i = 0; i < KEYS; ++i) {
    bloomline_filter_prefetch(batch, absent[i]);
    CHECK(bloomline_filter_contains_hash(one_by_one, present[i]));
    CHECK(bloomline_filter_contains_hash(batch, absent[i]) == found[i]);
  }
  SUCCEEDS(bloomline_filter_contains_batch(batch, NULL, 0, NULL) == BLOOMLINE_OK);

  /* Invalid arguments must not report a key as absent. */
  memset(found, 0, sizeof found);
  NULL_RETURNS("hashes", bloomline_filter_contains_batch(batch, NULL, KEYS, found));
  CHECK(count(found, KEYS) == KEYS && !found[KEYS]);
  memset(found, 0, sizeof found);
  NULL_RETURNS("filter", bloomline_filter_contains_batch(NULL, absent, KEYS, found));
  CHECK(count(found, KEYS) == KEYS && !found[KEYS]);
  NULL_RETURNS("found", bloomline_filter_contains_batch(batch, absent, KEYS, NULL));
  RETURNS(BLOOMLINE_INVALID_ARGUMENT, "hashes is longer",
          bloomline_filter_contains_batch(batch, absent, TOO_LONG, found));
  NULL_RETURNS("hashes", bloomline_filter_insert_batch(batch, NULL, 1));
  NULL_RETURNS("filter", bloomline_filter_insert_batch(NULL, present, 1));
  RETURNS(BLOOMLINE_INVALID_ARGUMENT, "hashes is longer", bloomline_filter_insert_batch(batch, present, TOO_LONG));
  bloomline_filter_free(one_by_one);
  bloomline_filter_free(batch);
}

/* Through memcpy, because C forbids the cast to a misaligned `uint64_t *`; a caller may still have made one. */
static void misaligned_hashes(void) {
  static uint64_t words[3];
  const uintptr_t odd = (uintptr_t)words + 1;
  uint64_t *hashes;
  bool found[2] = {false, false};
  memcpy(&hashes, &odd, sizeof hashes);
  bloomline_filter_t *filter = filter_of_keys();
  RETURNS(BLOOMLINE_INVALID_ARGUMENT, "hashes is not aligned", bloomline_filter_insert_batch(filter, hashes, 2));
  RETURNS(BLOOMLINE_INVALID_ARGUMENT, "hashes is not aligned",
          bloomline_filter_contains_batch(filter, hashes, 2, found));
  CHECK(count(found, 2) == 2);
  RETURNS(BLOOMLINE_INVALID_ARGUMENT, "found is not aligned", bloomline_bank_find_hash(NULL, 42, hashes, 2));
  CHECK(words[0] == 0 && words[1] == 0);
  bloomline_filter_free(filter);
}

static void filters_are_combined(void) {
  bloomline_filter_t *a = bloomline_filter_with_blocks(64, 6), *b = bloomline_filter_clone(a), *c;
  bloomline_filter_insert(a, "ant", 3);
  bloomline_filter_insert(a, "bee", 3);
  bloomline_filter_insert(b, "bee", 3);
  bloomline_filter_insert(b, "cat", 3);
  c = bloomline_filter_clone(a);
  SUCCEEDS(bloomline_filter_union_with(c, b) == BLOOMLINE_OK);
  CHECK(bloomline_filter_contains(c, "ant", 3) && bloomline_filter_contains(c, "cat", 3));
  SUCCEEDS(bloomline_filter_intersect_with(c, b) == BLOOMLINE_OK);
  CHECK(bloomline_filter_contains(c, "bee", 3) && !bloomline_filter_contains(c, "ant", 3));
  SUCCEEDS(bloomline_filter_union_with(a, a) == BLOOMLINE_OK);
  SUCCEEDS(bloomline_filter_intersect_with(a, a) == BLOOMLINE_OK);
  CHECK(bloomline_filter_contains(a, "ant", 3) && !bloomline_filter_contains(a, "cat", 3));
  bloomline_filter_free(c);

  NULL_RETURNS("filter", bloomline_filter_union_with(NULL, a));
  NULL_RETURNS("filter", bloomline_filter_union_with(a, NULL));
  NULL_RETURNS("filter", bloomline_filter_union_with(NULL, NULL));
  NULL_RETURNS("filter", bloomline_filter_intersect_with(NULL, a));
  NULL_RETURNS("filter", bloomline_filter_intersect_with(a, NULL));
  c = bloomline_filter_with_blocks(32, 6);
  RETURNS(BLOOMLINE_MISMATCH, "32 and 64 blocks", bloomline_filter_union_with(c, a));
  RETURNS(BLOOMLINE_MISMATCH, "32 and 64 blocks", bloomline_filter_intersect_with(c, a));
  bloomline_filter_free(c);

  SUCCEEDS(bloomline_filter_fold(a, 4) == BLOOMLINE_OK);
  CHECK(bloomline_filter_n_blocks(a) == 16 && bloomline_filter_contains(a, "ant", 3));
  RETURNS(BLOOMLINE_SIZING, "cannot be folded by 3", bloomline_filter_fold(a, 3));
  RETURNS(BLOOMLINE_SIZING, "cannot be folded by 0", bloomline_filter_fold(a, 0));
  SUCCEEDS(bloomline_filter_shrink_to_fpr(a, 0.01) == BLOOMLINE_OK);
  CHECK(bloomline_filter_n_blocks(a) == 1 && bloomline_filter_contains(a, "ant", 3));
  RETURNS(BLOOMLINE_SIZING, "between 0 and 1", bloomline_filter_shrink_to_fpr(a, 2));
  bloomline_filter_free(a);
  bloomline_filter_free(b);
}

static void a_null_filter(void) {
  NULL_FAILS("filter", bloomline_filter_contains(NULL, "ant", 3));
  NULL_FAILS("filter", bloomline_filter_contains(NULL, NULL, 0));
  NULL_FAILS("filter", bloomline_filter_contains_hash(NULL, 42));
  NULL_FAILS("filter", !bloomline_filter_insert(NULL, "ant", 3));
  NULL_FAILS("filter", !bloomline_filter_insert_hash(NULL, 42));
  NULL_FAILS("filter", bloomline_filter_hash_key(NULL, "ant", 3) == 0);
  NULL_RETURNS("filter", bloomline_filter_set_seed(NULL, 1));
  NULL_FAILS("filter", bloomline_filter_clone(NULL) == NULL);
  NULL_RETURNS("filter", bloomline_filter_fold(NULL, 1));
  NULL_RETURNS("filter", bloomline_filter_shrink_to_fpr(NULL, 0.5));
  NULL_RETURNS("filter", bloomline_filter_clear(NULL));
  NULL_FAILS("filter", bloomline_filter_k(NULL) == 0);
  NULL_FAILS("filter", bloomline_filter_n_modules(NULL) == 0);
  NULL_FAILS("filter", bloomline_filter_n_blocks(NULL) == 0);
  NULL_FAILS("filter", bloomline_filter_byte_len(NULL) == 0);
  NULL_FAILS("filter", bloomline_filter_seed(NULL) == 0);
  NULL_FAILS("filter", bloomline_filter_fill_ratio(NULL) == 1);
  NULL_FAILS("filter", bloomline_filter_estimated_keys(NULL) == UINT64_MAX);
  NULL_FAILS("filter", bloomline_filter_estimated_fpr(NULL) == 1);
  NULL_FAILS("filter", bloomline_filter_compact_len(NULL) == 0);
  NULL_FAILS("filter", bloomline_filter_standalone_len(NULL) == 0);
  SUCCEEDS((bloomline_filter_prefetch(NULL, 42), true));

  bloomline_filter_t *filter = bloomline_filter_with_blocks(1, 6);
  NULL_FAILS("key", bloomline_filter_contains(filter, NULL, 3));
  NULL_FAILS("key", !bloomline_filter_insert(filter, NULL, 3));
  NULL_FAILS("key", bloomline_filter_hash_key(filter, NULL, 3) == 0);
  FAILS(BLOOMLINE_INVALID_ARGUMENT, "key is longer", bloomline_filter_contains(filter, "ant", TOO_LONG));
  FAILS(BLOOMLINE_INVALID_ARGUMENT, "key is longer", !bloomline_filter_insert(filter, "ant", TOO_LONG));
  CHECK(bloomline_filter_fill_ratio(filter) == 0);
  bloomline_filter_free(filter);
}

typedef bloomline_status_t writer(const bloomline_filter_t *, void *, size_t, size_t *);
typedef void *allocator(const bloomline_filter_t *, size_t *);

static void a_form(const bloomline_filter_t *filter, size_t size, writer *write, allocator *allocate) {
  size_t length = 1;
  void *bytes = allocate(filter, &length);
  CHECK(bytes != NULL && length == size);
  unsigned char *buffer = (unsigned char *)malloc(size + 1);
  memset(buffer, 0xaa, size + 1);
  length = 0;
  RETURNS(BLOOMLINE_BUFFER_TOO_SMALL, "is too small", write(filter, buffer, size - 1, &length));
  CHECK(length == size);
  for (size_t i = 0; i <= size; ++i) CHECK(buffer[i] == 0xaa);
  length = 0;
  RETURNS(BLOOMLINE_BUFFER_TOO_SMALL, "of 0 bytes", write(filter, NULL, 0, &length));
  CHECK(length == size);
  NULL_RETURNS("buffer", write(filter, NULL, size, &length));
  CHECK(length == 0);

  /* At an odd address, and into a buffer of exactly the size needed. */
  SUCCEEDS(write(filter, buffer + 1, size, &length) == BLOOMLINE_OK);
  CHECK(buffer[0] == 0xaa && same_bytes(buffer + 1, length, bytes, size));
  buffer[size] = 0xaa;
  SUCCEEDS(write(filter, buffer, size + 1, &length) == BLOOMLINE_OK);
  CHECK(buffer[size] == 0xaa && same_bytes(buffer, length, bytes, size));

  NULL_RETURNS("length", write(filter, buffer, size, NULL));
  NULL_RETURNS("filter", write(NULL, buffer, size, &length));
  CHECK(length == 0);
  NULL_FAILS("length", allocate(filter, NULL) == NULL);
  length = 1;
  NULL_FAILS("filter", allocate(NULL, &length) == NULL);
  CHECK(length == 0);
  free(buffer);
  bloomline_free(bytes);
}

static void both_forms(const bloomline_filter_t *filter) {
  a_form(filter, bloomline_filter_compact_len(filter), bloomline_filter_write_compact, bloomline_filter_to_compact);
  a_form(filter, bloomline_filter_standalone_len(filter), bloomline_filter_write_standalone,
         bloomline_filter_to_standalone);
}

static void bytes_of_filters(void) {
  /* Short filters, whole blocks, and several modules. */
  static const unsigned key_counts[] = {0, 1, 9, 35, KEYS};
  for (size_t i = 0; i < sizeof key_counts / sizeof *key_counts; ++i) {
    bloomline_builder_t *builder = bloomline_builder_with_bits_per_key(10);
    for (unsigned key = 0; key < key_counts[i]; ++key) bloomline_builder_insert_hash(builder, present[key]);
    bloomline_filter_t *filter = bloomline_builder_finish(builder);
    both_forms(filter);
    bloomline_filter_free(filter);
    bloomline_builder_free(builder);
  }
  for (size_t n_modules = 1; n_modules <= 3; ++n_modules) {
    bloomline_filter_t *filter = bloomline_filter_with_fpr_within(KEYS, 1e-6, n_modules);
    CHECK(bloomline_filter_n_modules(filter) == n_modules);
    insert_all(filter);
    both_forms(filter);
    bloomline_filter_free(filter);
  }
}

static void views(void) {
  bloomline_filter_t *filter = bloomline_filter_with_bits_per_key(KEYS, 10), *copy;
  bloomline_view_t *view;
  bool found[KEYS];
  size_t n;
  insert_all(filter);
  unsigned char *bytes = (unsigned char *)bloomline_filter_to_compact(filter, &n);
  for (unsigned offset = 0; offset < 9; ++offset) {
    unsigned char *moved = (unsigned char *)malloc(n + offset);
    memcpy(moved + offset, bytes, n);
    view = bloomline_view_from_compact(moved + offset, n);
    CHECK(view != NULL && view_has_all(view) && !bloomline_view_contains(view, "ant", 3));
    SUCCEEDS(bloomline_view_contains_batch(view, present, KEYS, found) == BLOOMLINE_OK);
    CHECK(count(found, KEYS) == KEYS);
    bloomline_view_prefetch(view, 42);
    CHECK(bloomline_view_contains_hash(view, present[0]) && !bloomline_view_contains_hash(view, bloomline_mix(0)));
    CHECK(bloomline_view_contains(view, NULL, 0) == bloomline_filter_contains(filter, NULL, 0));
    CHECK(bloomline_compact_contains(moved + offset, n, "999", 3));
    SUCCEEDS(!bloomline_compact_contains(moved + offset, n, "ant", 3));
    CHECK(bloomline_compact_contains_hash(moved + offset, n, present[0]));
    SUCCEEDS(!bloomline_compact_contains_hash(moved + offset, n, bloomline_mix(0)));
    bloomline_view_free(view);
    free(moved);
  }

  view = bloomline_view_from_compact(bytes, n);
  RETURNS(BLOOMLINE_DECODE, "no checksum", bloomline_view_verify(view));
  NULL_FAILS("key", bloomline_view_contains(view, NULL, 3));
  NULL_FAILS("key", bloomline_view_hash_key(view, NULL, 3) == 0);
  memset(found, 0, sizeof found);
  NULL_RETURNS("hashes", bloomline_view_contains_batch(view, NULL, KEYS, found));
  CHECK(count(found, KEYS) == KEYS);
  NULL_RETURNS("found", bloomline_view_contains_batch(view, present, KEYS, NULL));
  copy = bloomline_view_to_filter(view);
  bloomline_view_free(view);
  bloomline_free(bytes);
  CHECK(has_all(copy) && bloomline_filter_n_blocks(copy) == 20);
  bloomline_filter_free(copy);

  /* Seeds: standalone bytes store them, compact bytes do not. */
  bloomline_filter_clear(filter);
  bloomline_filter_set_seed(filter, 7);
  insert_all(filter);
  bytes = (unsigned char *)bloomline_filter_to_compact(filter, &n);
  view = bloomline_view_from_compact_with_seed(bytes, n, 7);
  CHECK(view != NULL && view_has_all(view) && bloomline_view_seed(view) == 7);
  SUCCEEDS(bloomline_view_hash_key(view, "ant", 3) == bloomline_hash_key("ant", 3, 7));
  bloomline_view_free(view);
  bloomline_free(bytes);

  bytes = (unsigned char *)bloomline_filter_to_standalone(filter, &n);
  view = bloomline_view_from_standalone(bytes, n);
  CHECK(view != NULL && view_has_all(view) && bloomline_view_seed(view) == 7);
  SUCCEEDS(bloomline_view_verify(view) == BLOOMLINE_OK);
  bytes[0] ^= 1;
  RETURNS(BLOOMLINE_DECODE, "the bytes are damaged", bloomline_view_verify(view));
  bloomline_view_free(view);
  FAILS(BLOOMLINE_DECODE, "the bytes are damaged", bloomline_view_from_standalone(bytes, n) == NULL);
  SUCCEEDS((view = bloomline_view_from_standalone_unverified(bytes, n)) != NULL);
  CHECK(bloomline_view_seed(view) == 7 && bloomline_view_n_blocks(view) == 20 && bloomline_view_k(view) == 7);
  RETURNS(BLOOMLINE_DECODE, "the bytes are damaged", bloomline_view_verify(view));
  bloomline_view_free(view);
  bytes[n - 20] ^= 1;
  FAILS(BLOOMLINE_DECODE, "footer", bloomline_view_from_standalone_unverified(bytes, n) == NULL);
  FAILS(BLOOMLINE_DECODE, "at least 72 are needed", bloomline_view_from_standalone(bytes, 63) == NULL);
  bloomline_free(bytes);
  bloomline_free(NULL);
  bloomline_filter_free(filter);
  bloomline_view_free(NULL);
}

static void null_and_malformed_bytes(void) {
  const char zeros[65] = {0};
  uint64_t hash = 42;
  bool found = false;
  FAILS(BLOOMLINE_DECODE, "not 0", bloomline_view_from_compact(NULL, 0) == NULL);
  FAILS(BLOOMLINE_DECODE, "not 2", bloomline_view_from_compact(zeros, 2) == NULL);
  FAILS(BLOOMLINE_DECODE, "not 0x0: ", bloomline_view_from_compact(zeros, 65) == NULL);
  FAILS(BLOOMLINE_DECODE, "not 0x0: ", bloomline_view_from_compact_with_seed(zeros, 65, 1) == NULL);
  FAILS(BLOOMLINE_DECODE, "there are 0", bloomline_view_from_standalone(NULL, 0) == NULL);
  NULL_FAILS("bytes", bloomline_view_from_compact(NULL, 9) == NULL);
  NULL_FAILS("bytes", bloomline_view_from_compact_with_seed(NULL, 9, 1) == NULL);
  NULL_FAILS("bytes", bloomline_view_from_standalone(NULL, 72) == NULL);
  NULL_FAILS("bytes", bloomline_view_from_standalone_unverified(NULL, 72) == NULL);
  FAILS(BLOOMLINE_INVALID_ARGUMENT, "bytes is longer", bloomline_view_from_compact(zeros, TOO_LONG) == NULL);

  SUCCEEDS(bloomline_compact_contains(zeros, 65, "ant", 3));
  SUCCEEDS(bloomline_compact_contains(zeros, 2, "ant", 3));
  SUCCEEDS(bloomline_compact_contains(NULL, 0, "ant", 3));
  SUCCEEDS(bloomline_compact_contains_hash(zeros, 65, 42));
  SUCCEEDS(bloomline_compact_contains_hash(NULL, 0, 42));
  NULL_FAILS("bytes", bloomline_compact_contains(NULL, 9, "ant", 3));
  NULL_FAILS("bytes", bloomline_compact_contains_hash(NULL, 9, 42));
  NULL_FAILS("key", bloomline_compact_contains(zeros, 65, NULL, 3));

  NULL_FAILS("view", bloomline_view_contains(NULL, "ant", 3));
  NULL_FAILS("view", bloomline_view_contains_hash(NULL, 42));
  NULL_FAILS("view", bloomline_view_hash_key(NULL, "ant", 3) == 0);
  NULL_RETURNS("view", bloomline_view_contains_batch(NULL, &hash, 1, &found));
  CHECK(found);
  NULL_RETURNS("view", bloomline_view_verify(NULL));
  NULL_FAILS("view", bloomline_view_k(NULL) == 0);
  NULL_FAILS("view", bloomline_view_n_modules(NULL) == 0);
  NULL_FAILS("view", bloomline_view_n_blocks(NULL) == 0);
  NULL_FAILS("view", bloomline_view_seed(NULL) == 0);
  NULL_FAILS("view", bloomline_view_to_filter(NULL) == NULL);
  SUCCEEDS((bloomline_view_prefetch(NULL, 42), true));
}

static void many_views(void) {
  enum { VIEWS = 11 };
  const bloomline_view_t *views[VIEWS];
  void *bytes[VIEWS];
  bool found[VIEWS + 1];
  size_t n;
  /* View i has the keys from 90 * i on. Two have several modules, and one is not there. */
  for (unsigned i = 0; i < VIEWS; ++i) {
    bloomline_filter_t *filter = bloomline_filter_with_fpr(KEYS, i % 5 == 1 ? 1e-5 : 0.01);
    bloomline_filter_insert_batch(filter, present + 90 * i, KEYS - 90 * i);
    bytes[i] = bloomline_filter_to_compact(filter, &n);
    views[i] = i == 4 ? NULL : bloomline_view_from_compact(bytes[i], n);
    bloomline_filter_free(filter);
  }
  for (unsigned n_views = 0; n_views <= VIEWS; ++n_views) {
    for (unsigned key = 0; key < KEYS; ++key) {
      memset(found, 0xaa, sizeof found);
      SUCCEEDS(bloomline_which_contain(views, n_views, present[key], found) == BLOOMLINE_OK);
      for (unsigned i = 0; i < n_views; ++i) {
        CHECK(found[i] == (i == 4 || bloomline_view_contains_hash(views[i], present[key])));
        CHECK(found[i] || key < 90 * i);
      }
      CHECK(((unsigned char *)found)[n_views] == 0xaa);
    }
  }
  SUCCEEDS(bloomline_which_contain(NULL, 0, 42, NULL) == BLOOMLINE_OK);
  memset(found, 0, sizeof found);
  NULL_RETURNS("views", bloomline_which_contain(NULL, VIEWS, 42, found));
  CHECK(count(found, VIEWS) == VIEWS && !found[VIEWS]);
  NULL_RETURNS("found", bloomline_which_contain(views, VIEWS, 42, NULL));
  RETURNS(BLOOMLINE_INVALID_ARGUMENT, "views is longer", bloomline_which_contain(views, TOO_LONG, 42, found));
  for (unsigned i = 0; i < VIEWS; ++i) {
    bloomline_view_free((bloomline_view_t *)views[i]);
    bloomline_free(bytes[i]);
  }
}

/* In a golden file, beside this one in the sources. Slot s has s % 7 keys, named by s and their number. */
static void banks(void) {
  char path[4096], key[32];
  static unsigned char bytes[1 << 20];
  uint64_t found[4], by_hash[2];
  unsigned n_found = 0, n_keys = 0;
  snprintf(path, sizeof path, "%.*s../../../tests/golden/bank-100-slots.bin", (int)(strlen(__FILE__) - 5), __FILE__);
  FILE *file = fopen(path, "rb");
  CHECK(file != NULL);
  const size_t n = fread(bytes, 1, sizeof bytes, file);
  fclose(file);
  bloomline_bank_t *bank = bloomline_bank_from_standalone(bytes, n);
  CHECK(bank != NULL && bloomline_bank_n_slots(bank) == 100);
  for (unsigned slot = 0; slot < 100; ++slot) {
    for (unsigned i = 0; i < slot % 7; ++i) {
      const size_t length = (size_t)snprintf(key, sizeof key, "%u-%u", slot, i);
      const uint64_t hash = bloomline_bank_hash_key(bank, key, length);
      memset(found, 0xaa, sizeof found);
      memset(by_hash, 0xaa, sizeof by_hash);
      SUCCEEDS(bloomline_bank_find(bank, key, length, found, 3) == BLOOMLINE_OK);
      SUCCEEDS(bloomline_bank_find_hash(bank, hash, by_hash, 2) == BLOOMLINE_OK);
      CHECK(found[slot / 64] >> slot % 64 & 1);
      CHECK(memcmp(found, by_hash, sizeof by_hash) == 0 && found[2] == 0 && found[3] == 0xaaaaaaaaaaaaaaaa);
      for (unsigned s = 0; s < 192; ++s) n_found += found[s / 64] >> s % 64 & 1;
      ++n_keys;
    }
  }
  CHECK(n_found < n_keys + 10);

#define ALL_FOUND(call) (memset(found, 0, sizeof found), (call), found[0] == UINT64_MAX && found[3] == 0)
  NULL_FAILS("key", ALL_FOUND(bloomline_bank_find(bank, NULL, 3, found, 2)));
  NULL_FAILS("bank", ALL_FOUND(bloomline_bank_find(NULL, "ant", 3, found, 2)));
  NULL_FAILS("bank", ALL_FOUND(bloomline_bank_find_hash(NULL, 42, found, 2)));
  FAILS(BLOOMLINE_BUFFER_TOO_SMALL, "of 8 bytes is too small: 16",
        ALL_FOUND(bloomline_bank_find_hash(bank, 42, found, 1)));
  RETURNS(BLOOMLINE_BUFFER_TOO_SMALL, "of 0 bytes", bloomline_bank_find(bank, "ant", 3, NULL, 0));
  NULL_RETURNS("found", bloomline_bank_find(bank, "ant", 3, NULL, 2));
  RETURNS(BLOOMLINE_INVALID_ARGUMENT, "found is longer", bloomline_bank_find_hash(bank, 42, found, TOO_LONG));
  NULL_FAILS("key", bloomline_bank_hash_key(bank, NULL, 3) == 0);
  bloomline_bank_free(bank);
  bytes[0] ^= 1;
  FAILS(BLOOMLINE_DECODE, "damaged", bloomline_bank_from_standalone(bytes, n) == NULL);
  FAILS(BLOOMLINE_DECODE, "there are 63", bloomline_bank_from_standalone(bytes, 63) == NULL);
  NULL_FAILS("bytes", bloomline_bank_from_standalone(NULL, 72) == NULL);
  NULL_FAILS("bank", bloomline_bank_n_slots(NULL) == 0);
  NULL_FAILS("bank", bloomline_bank_hash_key(NULL, "ant", 3) == 0);
  bloomline_bank_free(NULL);
}

static void atomic_filters(void) {
  bool found[KEYS];
  bloomline_atomic_filter_t *shared = bloomline_atomic_filter_with_bits_per_key(KEYS, 10);
  CHECK(shared != NULL);
  CHECK(bloomline_atomic_filter_k(shared) == 7 && bloomline_atomic_filter_n_blocks(shared) == 20);
  CHECK(bloomline_atomic_filter_byte_len(shared) == 20 * 64 && bloomline_atomic_filter_seed(shared) == 0);
  SUCCEEDS(!bloomline_atomic_filter_contains(shared, "0", 1));
  SUCCEEDS(bloomline_atomic_filter_insert(shared, "0", 1));
  SUCCEEDS(!bloomline_atomic_filter_insert(shared, "0", 1));
  SUCCEEDS(!bloomline_atomic_filter_insert_hash(shared, present[0]));
  SUCCEEDS(!bloomline_atomic_filter_contains_hash(shared, present[1]));
  SUCCEEDS(bloomline_atomic_filter_insert_hash(shared, present[1]));
  SUCCEEDS(bloomline_atomic_filter_contains_hash(shared, present[1]));
  SUCCEEDS(bloomline_atomic_filter_insert_batch(shared, present, KEYS) == BLOOMLINE_OK);
  SUCCEEDS(bloomline_atomic_filter_insert_batch(shared, NULL, 0) == BLOOMLINE_OK);
  memset(found, 0, sizeof found);
  SUCCEEDS(bloomline_atomic_filter_contains_batch(shared, present, KEYS, found) == BLOOMLINE_OK);
  CHECK(count(found, KEYS) == KEYS);
  bloomline_atomic_filter_prefetch(shared, present[0]);
  CHECK(bloomline_atomic_filter_contains(shared, "999", 3) && !bloomline_atomic_filter_contains(shared, "ant", 3));

  /* Its bytes are those of a filter. */
  size_t n, n_same;
  char *bytes = (char *)bloomline_atomic_filter_to_standalone(shared, &n);
  bloomline_filter_t *filter = bloomline_atomic_filter_to_filter(shared);
  void *same = bloomline_filter_to_standalone(filter, &n_same);
  CHECK(has_all(filter) && same_bytes(bytes, n, same, n_same));
  bloomline_free(same);
  bloomline_filter_insert(filter, "ant", 3);
  CHECK(!bloomline_atomic_filter_contains(shared, "ant", 3));
  bloomline_filter_free(filter);
  bloomline_atomic_filter_t *read;
  SUCCEEDS((read = bloomline_atomic_filter_from_standalone(bytes, n)) != NULL);
  bytes[0] ^= 1;
  FAILS(BLOOMLINE_DECODE, "the bytes are damaged", bloomline_atomic_filter_from_standalone(bytes, n) == NULL);
  NULL_FAILS("bytes", bloomline_atomic_filter_from_standalone(NULL, 72) == NULL);
  NULL_FAILS("length", bloomline_atomic_filter_to_standalone(shared, NULL) == NULL);
  NULL_FAILS("filter", bloomline_atomic_filter_to_standalone(NULL, &n) == NULL);
  CHECK(n == 0);
  bloomline_free(bytes);

  /* The seed of an empty filter, and unions. */
  RETURNS(BLOOMLINE_NOT_EMPTY, "before the first key", bloomline_atomic_filter_set_seed(read, 8));
  CHECK(bloomline_atomic_filter_seed(read) == 0 && bloomline_atomic_filter_contains(read, "999", 3));
  SUCCEEDS(bloomline_atomic_filter_clear(read) == BLOOMLINE_OK);
  CHECK(!bloomline_atomic_filter_contains(read, "999", 3));
  SUCCEEDS(bloomline_atomic_filter_set_seed(read, 8) == BLOOMLINE_OK);
  CHECK(bloomline_atomic_filter_seed(read) == 8 && bloomline_atomic_filter_n_blocks(read) == 20);
  SUCCEEDS(bloomline_atomic_filter_hash_key(read, "ant", 3) == bloomline_hash_key("ant", 3, 8));
  filter = bloomline_filter_with_blocks(20, 7);
  bloomline_filter_insert(filter, "ant", 3);
  RETURNS(BLOOMLINE_MISMATCH, "seeds 0x8 and 0x0", bloomline_atomic_filter_union_with(read, filter));
  SUCCEEDS(bloomline_atomic_filter_set_seed(read, 0) == BLOOMLINE_OK);
  bloomline_atomic_filter_insert(read, "bee", 3);
  SUCCEEDS(bloomline_atomic_filter_union_with(read, filter) == BLOOMLINE_OK);
  CHECK(bloomline_atomic_filter_contains(read, "ant", 3) && bloomline_atomic_filter_contains(read, "bee", 3));
  NULL_RETURNS("filter", bloomline_atomic_filter_union_with(NULL, filter));
  NULL_RETURNS("filter", bloomline_atomic_filter_union_with(read, NULL));
  bloomline_filter_free(filter);
  bloomline_atomic_filter_free(read);

  /* Converted there and back, with the keys and the seed. */
  filter = bloomline_atomic_filter_into_filter(shared);
  CHECK(filter != NULL && has_all(filter));
  bloomline_filter_clear(filter);
  bloomline_filter_set_seed(filter, 9);
  bloomline_filter_insert(filter, "ant", 3);
  shared = bloomline_atomic_filter_from_filter(filter);
  CHECK(shared != NULL && bloomline_atomic_filter_seed(shared) == 9);
  CHECK(bloomline_atomic_filter_contains_hash(shared, bloomline_hash_key("ant", 3, 9)));

  NULL_FAILS("key", bloomline_atomic_filter_contains(shared, NULL, 3));
  NULL_FAILS("key", !bloomline_atomic_filter_insert(shared, NULL, 3));
  NULL_FAILS("key", bloomline_atomic_filter_hash_key(shared, NULL, 3) == 0);
  NULL_RETURNS("hashes", bloomline_atomic_filter_insert_batch(shared, NULL, 1));
  memset(found, 0, sizeof found);
  NULL_RETURNS("hashes", bloomline_atomic_filter_contains_batch(shared, NULL, 9, found));
  CHECK(count(found, KEYS) == 9);
  bloomline_atomic_filter_free(shared);

  NULL_FAILS("filter", bloomline_atomic_filter_contains(NULL, "ant", 3));
  NULL_FAILS("filter", bloomline_atomic_filter_contains_hash(NULL, 42));
  NULL_FAILS("filter", !bloomline_atomic_filter_insert(NULL, "ant", 3));
  NULL_FAILS("filter", !bloomline_atomic_filter_insert_hash(NULL, 42));
  NULL_RETURNS("filter", bloomline_atomic_filter_insert_batch(NULL, present, 1));
  NULL_RETURNS("filter", bloomline_atomic_filter_contains_batch(NULL, present, 1, found));
  NULL_FAILS("filter", bloomline_atomic_filter_hash_key(NULL, "ant", 3) == 0);
  NULL_RETURNS("filter", bloomline_atomic_filter_set_seed(NULL, 1));
  NULL_RETURNS("filter", bloomline_atomic_filter_clear(NULL));
  NULL_FAILS("filter", bloomline_atomic_filter_from_filter(NULL) == NULL);
  NULL_FAILS("filter", bloomline_atomic_filter_into_filter(NULL) == NULL);
  NULL_FAILS("filter", bloomline_atomic_filter_to_filter(NULL) == NULL);
  NULL_FAILS("filter", bloomline_atomic_filter_k(NULL) == 0);
  NULL_FAILS("filter", bloomline_atomic_filter_n_modules(NULL) == 0);
  NULL_FAILS("filter", bloomline_atomic_filter_n_blocks(NULL) == 0);
  NULL_FAILS("filter", bloomline_atomic_filter_byte_len(NULL) == 0);
  NULL_FAILS("filter", bloomline_atomic_filter_seed(NULL) == 0);
  SUCCEEDS((bloomline_atomic_filter_prefetch(NULL, 42), true));
  bloomline_atomic_filter_free(NULL);

  shared = bloomline_atomic_filter_with_fpr(KEYS, 0.01);
  CHECK(shared != NULL);
  bloomline_atomic_filter_free(shared);
  shared = bloomline_atomic_filter_with_blocks(3, 16);
  CHECK(shared != NULL && bloomline_atomic_filter_n_blocks(shared) == 3 && bloomline_atomic_filter_k(shared) == 16);
  bloomline_atomic_filter_free(shared);
  FAILS(BLOOMLINE_SIZING, "between 0 and 1", bloomline_atomic_filter_with_fpr(KEYS, 0) == NULL);
  FAILS(BLOOMLINE_SIZING, "bits per key", bloomline_atomic_filter_with_bits_per_key(KEYS, 65) == NULL);
  FAILS(BLOOMLINE_SIZING, "not 17", bloomline_atomic_filter_with_blocks(1, 17) == NULL);
}

static void write_bytes(const void *bytes, size_t n) {
  FILE *file = fopen(file_path, "wb");
  CHECK(file != NULL && fwrite(bytes, 1, n, file) == n && fclose(file) == 0);
}

static void files(void) {
  bloomline_filter_t *filter = filter_of_keys(), *read;
  bloomline_view_t *view;
  size_t n;
  char nowhere[4096];
  remove(file_path);
  FAILS(BLOOMLINE_IO, "No such file", bloomline_filter_from_file(file_path) == NULL);
  CHECK(strstr(bloomline_last_error(), file_path) != NULL);
  FAILS(BLOOMLINE_IO, "No such file", bloomline_view_from_file(file_path) == NULL);
  SUCCEEDS(bloomline_filter_write_file(filter, file_path) == BLOOMLINE_OK);
  read = bloomline_filter_from_file(file_path);
  CHECK(read != NULL && has_all(read));

  /* A view keeps the file that it opened. */
  view = bloomline_view_from_file(file_path);
  CHECK(view != NULL && view_has_all(view) && bloomline_view_n_blocks(view) == 20);
  bloomline_filter_clear(read);
  bloomline_filter_set_seed(read, 7);
  SUCCEEDS(bloomline_filter_write_file(read, file_path) == BLOOMLINE_OK);
  bloomline_filter_free(read);
  SUCCEEDS(bloomline_view_verify(view) == BLOOMLINE_OK);
  CHECK(view_has_all(view));
  bloomline_view_free(view);
  view = bloomline_view_from_file(file_path);
  CHECK(view != NULL && bloomline_view_seed(view) == 7 && !bloomline_view_contains(view, "0", 1));
  bloomline_view_free(view);

  /* Damage, a cut, and nothing. */
  unsigned char *bytes = (unsigned char *)bloomline_filter_to_standalone(filter, &n);
  bytes[0] ^= 1;
  const size_t left[] = {n, n - 1, 0};
  for (int i = 0; i < 3; ++i) {
    const char *text = i == 0 ? "the bytes are damaged" : "";
    write_bytes(bytes, left[i]);
    FAILS(BLOOMLINE_DECODE, text, bloomline_filter_from_file(file_path) == NULL);
    FAILS(BLOOMLINE_DECODE, text, bloomline_view_from_file(file_path) == NULL);
    if (i == 0) {
      SUCCEEDS((view = bloomline_view_from_file_unverified(file_path)) != NULL);
      RETURNS(BLOOMLINE_DECODE, text, bloomline_view_verify(view));
      bloomline_view_free(view);
    } else {
      FAILS(BLOOMLINE_DECODE, text, bloomline_view_from_file_unverified(file_path) == NULL);
    }
  }
  bloomline_free(bytes);

  /* Only the end is read of a file that is no filter: there is no memory for all of this one, which has a hole. */
  FILE *large = fopen(file_path, "wb");
  CHECK(large != NULL);
  if (sizeof(long) == 8 && fseek(large, (long)(UINT64_C(1) << 40), SEEK_SET) == 0) {
    CHECK(fputc(0, large) == 0 && fclose(large) == 0);
    FAILS(BLOOMLINE_DECODE, "", bloomline_filter_from_file(file_path) == NULL);
  } else {
    fclose(large);
  }

  snprintf(nowhere, sizeof nowhere, "%s/no/such/directory", file_path);
  RETURNS(BLOOMLINE_IO, "directory", bloomline_filter_write_file(filter, nowhere));
  RETURNS(BLOOMLINE_IO, "irectory", bloomline_filter_write_file(filter, a_directory));
  FAILS(BLOOMLINE_IO, "", bloomline_filter_from_file(a_directory) == NULL);
  FAILS(BLOOMLINE_IO, "", bloomline_view_from_file(a_directory) == NULL);
  FAILS(BLOOMLINE_IO, "", bloomline_view_from_file_unverified(a_directory) == NULL);
  NULL_RETURNS("filter", bloomline_filter_write_file(NULL, file_path));
  NULL_RETURNS("path", bloomline_filter_write_file(filter, NULL));
  NULL_FAILS("path", bloomline_filter_from_file(NULL) == NULL);
  NULL_FAILS("path", bloomline_view_from_file(NULL) == NULL);
  NULL_FAILS("path", bloomline_view_from_file_unverified(NULL) == NULL);
  bloomline_filter_free(filter);
}

static void builders(void) {
  bloomline_builder_t *builder = bloomline_builder_with_bits_per_key(10);
  size_t length;
  CHECK(builder != NULL && bloomline_builder_len(builder) == 0);
  SUCCEEDS(bloomline_builder_set_seed(builder, 7) == BLOOMLINE_OK);
  for (unsigned i = 0; i < KEYS; ++i) {
    SUCCEEDS(bloomline_builder_insert(builder, keys[i], lengths[i]) == BLOOMLINE_OK);
  }
  SUCCEEDS(bloomline_builder_insert(builder, NULL, 0) == BLOOMLINE_OK);
  CHECK(bloomline_builder_len(builder) == KEYS + 1);
  RETURNS(BLOOMLINE_NOT_EMPTY, "before the first key", bloomline_builder_set_seed(builder, 8));
  NULL_RETURNS("key", bloomline_builder_insert(builder, NULL, 3));
  NULL_FAILS("length", bloomline_builder_finish_compact(builder, NULL) == NULL);
  CHECK(bloomline_builder_len(builder) == KEYS + 1);
  bloomline_filter_t *filter = bloomline_builder_finish(builder);
  CHECK(filter != NULL && has_all(filter) && bloomline_filter_contains(filter, "", 0));
  CHECK(bloomline_filter_seed(filter) == 7 && bloomline_builder_len(builder) == 0);
  bloomline_filter_free(filter);

  /* The builder is reused, with the same seed. Repeats do not count. */
  SUCCEEDS(bloomline_builder_hash_key(builder, "ant", 3) == bloomline_hash_key("ant", 3, 7));
  NULL_FAILS("key", bloomline_builder_hash_key(builder, NULL, 3) == 0);
  for (unsigned i = 0; i < 100 * KEYS; ++i) {
    CHECK(bloomline_builder_insert_hash(builder, bloomline_mix(i % KEYS)) == BLOOMLINE_OK);
  }
  void *bytes = bloomline_builder_finish_compact(builder, &length);
  CHECK(bytes != NULL && length == 20 * 64 + 1);
  for (unsigned i = 0; i < KEYS; ++i) CHECK(bloomline_compact_contains_hash(bytes, length, bloomline_mix(i)));
  bloomline_free(bytes);
  /* A filter of no keys is a filter too. */
  bytes = bloomline_builder_finish_compact(builder, &length);
  CHECK(bytes != NULL && length != 0 && !bloomline_compact_contains(bytes, length, "ant", 3));
  bloomline_free(bytes);
  bloomline_builder_free(builder);

  builder = bloomline_builder_with_fpr(1e-9);
  RETURNS(BLOOMLINE_SIZING, "out of reach", bloomline_builder_set_most_modules(builder, 1));
  RETURNS(BLOOMLINE_SIZING, "not 17", bloomline_builder_set_most_modules(builder, 17));
  for (unsigned most_modules = 2; most_modules <= 3; ++most_modules) {
    SUCCEEDS(bloomline_builder_set_most_modules(builder, most_modules) == BLOOMLINE_OK);
    for (unsigned i = 0; i < KEYS; ++i) bloomline_builder_insert_hash(builder, present[i]);
    RETURNS(BLOOMLINE_NOT_EMPTY, "before the first key", bloomline_builder_set_most_modules(builder, 2));
    filter = bloomline_builder_finish(builder);
    CHECK(has_all(filter) && bloomline_filter_n_modules(filter) == most_modules);
    bloomline_filter_free(filter);
  }
  bloomline_builder_free(builder);
  bloomline_builder_free(NULL);
  FAILS(BLOOMLINE_SIZING, "bits per key", bloomline_builder_with_bits_per_key(65) == NULL);
  FAILS(BLOOMLINE_SIZING, "between 0 and 1", bloomline_builder_with_fpr(-1) == NULL);
  NULL_RETURNS("builder", bloomline_builder_set_seed(NULL, 7));
  NULL_RETURNS("builder", bloomline_builder_set_most_modules(NULL, 1));
  NULL_RETURNS("builder", bloomline_builder_insert(NULL, "ant", 3));
  NULL_RETURNS("builder", bloomline_builder_insert_hash(NULL, 42));
  NULL_FAILS("builder", bloomline_builder_hash_key(NULL, "ant", 3) == 0);
  NULL_FAILS("builder", bloomline_builder_len(NULL) == 0);
  NULL_FAILS("builder", bloomline_builder_finish(NULL) == NULL);
  length = 1;
  NULL_FAILS("builder", bloomline_builder_finish_compact(NULL, &length) == NULL);
  CHECK(length == 0);
}

/* With each other, for any number of keys. Frees both. */
static void writers_agree(bloomline_policy_t *policy, bloomline_builder_t *builder, size_t n_modules) {
  CHECK(policy != NULL && builder != NULL);
  for (size_t n = 0; n <= KEYS; n += n < 40 ? 1 : 96) {
    size_t length, of_hashes, of_builder;
    void *filter = bloomline_policy_create_filter(policy, keys, lengths, n, &length);
    void *same = bloomline_policy_create_filter_from_hashes(policy, present, n, &of_hashes);
    for (size_t i = 0; i < n; ++i) bloomline_builder_insert_hash(builder, present[i]);
    void *built = bloomline_builder_finish_compact(builder, &of_builder);
    CHECK(filter != NULL && length != 0 && same != NULL && same_bytes(filter, length, same, of_hashes));
    CHECK(built != NULL && same_bytes(filter, length, built, of_builder));
    bloomline_view_t *view = bloomline_view_from_compact(filter, length);
    CHECK(view != NULL && (n != KEYS || (view_has_all(view) && bloomline_view_n_modules(view) == n_modules)));
    bloomline_view_free(view);
    bloomline_free(filter);
    bloomline_free(same);
    bloomline_free(built);
  }
  bloomline_policy_free(policy);
  bloomline_builder_free(builder);
}

static void numbers_of_modules(void) {
  bloomline_policy_t *policy = bloomline_policy_with_fpr(0.0001);
  bloomline_builder_t *builder = bloomline_builder_with_fpr(0.0001);
  SUCCEEDS(bloomline_policy_set_most_modules(policy, 1) == BLOOMLINE_OK);
  SUCCEEDS(bloomline_builder_set_most_modules(builder, 1) == BLOOMLINE_OK);
  writers_agree(policy, builder, 1);
  writers_agree(bloomline_policy_with_fpr(0.0001), bloomline_builder_with_fpr(0.0001), 2);
  writers_agree(bloomline_policy_with_bits_per_key(10), bloomline_builder_with_bits_per_key(10), 1);
  writers_agree(bloomline_policy_with_bits_per_key(20), bloomline_builder_with_bits_per_key(20), 2);

  policy = bloomline_policy_with_fpr(1e-9);
  RETURNS(BLOOMLINE_SIZING, "out of reach", bloomline_policy_set_most_modules(policy, 1));
  RETURNS(BLOOMLINE_SIZING, "not 17", bloomline_policy_set_most_modules(policy, 17));
  NULL_RETURNS("policy", bloomline_policy_set_most_modules(NULL, 1));
  bloomline_policy_free(policy);

  /* One handle for any number of modules. */
  bloomline_filter_t *filter = bloomline_filter_with_fpr(KEYS, 0.0001), *read;
  size_t n;
  insert_all(filter);
  CHECK(has_all(filter) && bloomline_filter_n_modules(filter) == 2);
  void *bytes = bloomline_filter_to_compact(filter, &n);
  policy = bloomline_policy_with_bits_per_key(10);
  for (unsigned i = 0; i < KEYS; ++i) {
    CHECK(bloomline_compact_contains(bytes, n, keys[i], lengths[i]));
    CHECK(bloomline_compact_contains_hash(bytes, n, present[i]));
    CHECK(bloomline_policy_key_may_match(policy, bytes, n, keys[i], lengths[i]));
  }
  SUCCEEDS(!bloomline_compact_contains(bytes, n, "cat", 3));
  SUCCEEDS(!bloomline_policy_key_may_match(policy, bytes, n, "cat", 3));
  bloomline_policy_free(policy);
  bloomline_free(bytes);
  SUCCEEDS(bloomline_filter_write_file(filter, file_path) == BLOOMLINE_OK);
  bloomline_filter_free(filter);
  read = bloomline_filter_from_file(file_path);
  CHECK(read != NULL && has_all(read) && bloomline_filter_n_modules(read) == 2);
  bloomline_atomic_filter_t *shared = bloomline_atomic_filter_from_filter(read);
  CHECK(bloomline_atomic_filter_n_modules(shared) == 2 && bloomline_atomic_filter_contains(shared, "999", 3));
  bloomline_atomic_filter_free(shared);
}

static void policies(void) {
  const void *some[3] = {"ant", NULL, "bee"};
  size_t some_lengths[3] = {3, 0, 3}, length;
  uint64_t hash = 42;
  bloomline_policy_t *policy = bloomline_policy_with_bits_per_key(10);
  CHECK(policy != NULL && strncmp(bloomline_policy_name(), "bloomline.", 10) == 0);

  char *filter = (char *)bloomline_policy_create_filter(policy, some, some_lengths, 3, &length);
  CHECK(filter != NULL);
  CHECK(bloomline_policy_key_may_match(policy, filter, length, "bee", 3));
  CHECK(bloomline_policy_key_may_match(policy, filter, length, NULL, 0));
  SUCCEEDS(!bloomline_policy_key_may_match(policy, filter, length, "cat", 3));
  CHECK(bloomline_policy_unusable_filters(policy) == 0);
  SUCCEEDS(bloomline_policy_key_may_match(policy, filter, length - 1, "cat", 3));
  SUCCEEDS(bloomline_policy_key_may_match(policy, NULL, 0, "cat", 3));
  filter[length - 1] = 0;
  SUCCEEDS(bloomline_policy_key_may_match(policy, filter, length, "cat", 3));
  CHECK(bloomline_policy_unusable_filters(policy) == 3);
  NULL_FAILS("key", bloomline_policy_key_may_match(policy, filter, length, NULL, 3));
  NULL_FAILS("bytes", bloomline_policy_key_may_match(policy, NULL, 9, "cat", 3));
  NULL_FAILS("policy", bloomline_policy_key_may_match(NULL, filter, length, "cat", 3));
  CHECK(bloomline_policy_unusable_filters(policy) == 3);
  bloomline_free(filter);

  filter = (char *)bloomline_policy_create_filter(policy, NULL, NULL, 0, &length);
  CHECK(filter != NULL && length != 0 && !bloomline_policy_key_may_match(policy, filter, length, "cat", 3));
  bloomline_free(filter);
  NULL_FAILS("keys", bloomline_policy_create_filter(policy, NULL, some_lengths, 3, &length) == NULL);
  CHECK(length == 0);
  NULL_FAILS("lengths", bloomline_policy_create_filter(policy, some, NULL, 3, &length) == NULL);
  NULL_FAILS("length", bloomline_policy_create_filter(policy, some, some_lengths, 3, NULL) == NULL);
  NULL_FAILS("policy", bloomline_policy_create_filter(NULL, some, some_lengths, 3, &length) == NULL);
  FAILS(BLOOMLINE_INVALID_ARGUMENT, "keys is longer",
        bloomline_policy_create_filter(policy, some, some_lengths, TOO_LONG, &length) == NULL);
  some_lengths[1] = 1;
  NULL_FAILS("key", bloomline_policy_create_filter(policy, some, some_lengths, 3, &length) == NULL);
  CHECK(length == 0);
  NULL_FAILS("hashes", bloomline_policy_create_filter_from_hashes(policy, NULL, 1, &length) == NULL);
  NULL_FAILS("length", bloomline_policy_create_filter_from_hashes(policy, &hash, 1, NULL) == NULL);
  NULL_FAILS("policy", bloomline_policy_create_filter_from_hashes(NULL, &hash, 1, &length) == NULL);
  NULL_FAILS("policy", bloomline_policy_unusable_filters(NULL) == 0);
  FAILS(BLOOMLINE_SIZING, "bits per key", bloomline_policy_with_bits_per_key(0) == NULL);
  FAILS(BLOOMLINE_SIZING, "between 0 and 1", bloomline_policy_with_fpr(1) == NULL);
  bloomline_policy_free(policy);
  bloomline_policy_free(NULL);
}

struct shared {
  const bloomline_filter_t *filter;
  const bloomline_policy_t *policy;
  const void *bytes;
  size_t n;
};

static void *look_up(void *argument) {
  const struct shared *shared = (const struct shared *)argument;
  for (unsigned round = 0; round < 20; ++round) {
    CHECK(has_all(shared->filter));
    for (unsigned i = 0; i < KEYS; ++i) {
      CHECK(bloomline_policy_key_may_match(shared->policy, shared->bytes, shared->n, keys[i], lengths[i]));
      CHECK(bloomline_policy_key_may_match(shared->policy, shared->bytes, 1, keys[i], lengths[i]));
    }
  }
  return NULL;
}

static void two_threads_look_up_at_once(void) {
  bloomline_filter_t *filter = filter_of_keys();
  bloomline_policy_t *policy = bloomline_policy_with_bits_per_key(10);
  struct shared shared;
  pthread_t threads[2];
  void *bytes = bloomline_filter_to_compact(filter, &shared.n);
  shared.filter = filter;
  shared.policy = policy;
  shared.bytes = bytes;
  for (int i = 0; i < 2; ++i) CHECK(pthread_create(&threads[i], NULL, look_up, &shared) == 0);
  for (int i = 0; i < 2; ++i) CHECK(pthread_join(threads[i], NULL) == 0);
  CHECK(bloomline_policy_unusable_filters(policy) == 2 * 20 * KEYS);
  bloomline_free(bytes);
  bloomline_policy_free(policy);
  bloomline_filter_free(filter);
}

int main(int argc, char **argv) {
  if (argc != 3) return fprintf(stderr, "usage: %s DIRECTORY FILE\n", argv[0]), 2;
  a_directory = argv[1];
  file_path = argv[2];
  make_keys();
  about();
  errors();
  errors_are_of_a_thread();
  hashes();
  sizes();
  filters_are_made();
  filters_hold_keys();
  seeds();
  hashes_of_keys_and_batches();
  misaligned_hashes();
  filters_are_combined();
  a_null_filter();
  bytes_of_filters();
  views();
  null_and_malformed_bytes();
  many_views();
  banks();
  atomic_filters();
  files();
  builders();
  policies();
  numbers_of_modules();
  two_threads_look_up_at_once();
  printf("bloomline %s on %s: passed\n", bloomline_version(), bloomline_kernel_name());
  return 0;
}
