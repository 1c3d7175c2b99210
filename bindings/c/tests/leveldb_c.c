/* The filter policy through LevelDB's C interface, in C99: no key is lost, filters are queried, and all memory
 * is freed exactly once.
 *
 *   leveldb_c [KEYS]      20,000 keys by default
 */
#define _POSIX_C_SOURCE 200809L
#include <bloomline/bloomline.h>
#include <leveldb/c.h>

/* Counts the adapter's calls. */
static int n_freed;
static long n_created, n_queries, n_matched;

static void counted_free(bloomline_policy_t *policy) {
  ++n_freed;
  bloomline_policy_free(policy);
}

static void *counted_create(const bloomline_policy_t *policy, const void *const *keys, const size_t *lengths,
                            size_t n, size_t *length) {
  ++n_created;
  return bloomline_policy_create_filter(policy, keys, lengths, n, length);
}

static bool counted_may_match(const bloomline_policy_t *policy, const void *bytes, size_t n, const void *key,
                              size_t length) {
  bool matched = bloomline_policy_key_may_match(policy, bytes, n, key, length);
  ++n_queries;
  n_matched += matched;
  return matched;
}

#define bloomline_policy_free counted_free
#define bloomline_policy_create_filter counted_create
#define bloomline_policy_key_may_match counted_may_match
#include <bloomline/leveldb.h>
#undef bloomline_policy_free
#undef bloomline_policy_create_filter
#undef bloomline_policy_key_may_match

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char directory[4096];

#define CHECK(condition, format, found)                                                                   \
  do {                                                                                                    \
    if (!(condition)) {                                                                                   \
      fprintf(stderr, "%s:%d: expected %s; found " format "\n", __FILE__, __LINE__, #condition, (found)); \
      exit(1);                                                                                            \
    }                                                                                                     \
  } while (0)

static void check_no_error(char *error) { CHECK(error == NULL, "%s", error); }

/* Keys of odd numbers are never put. */
static size_t key_of(long number, char *key) { return (size_t)sprintf(key, "user%012ld", number); }

static void check_all(leveldb_t *database, long n_keys, const leveldb_readoptions_t *options) {
  for (long number = 0; number < 2 * n_keys; ++number) {
    char key[32], *error = NULL;
    const size_t length = key_of(number, key);
    size_t value_length;
    char *value = leveldb_get(database, options, key, length, &value_length, &error);
    check_no_error(error);
    if (number % 2 == 0) {
      CHECK(value != NULL, "key %ld lost", number);
      CHECK(value_length == length && memcmp(value, key, length) == 0, "another value for key %ld", number);
    } else {
      CHECK(value == NULL, "a value for key %ld, which was never put", number);
    }
    leveldb_free(value);
  }
}

static long memory_of(leveldb_t *database) {
  char *bytes = leveldb_property_value(database, "leveldb.approximate-memory-usage");
  CHECK(bytes != NULL, "%s", "no such property");
  const long memory = atol(bytes);
  leveldb_free(bytes);
  return memory;
}

/* By how much gets of every 200th number from `first` on grow the block cache. */
static long memory_for(leveldb_t *database, long n_keys, long first, const leveldb_readoptions_t *options) {
  const long before = memory_of(database);
  for (long number = first; number < 2 * n_keys; number += 200) {
    char key[32], *error = NULL;
    const size_t length = key_of(number, key);
    size_t value_length;
    leveldb_free(leveldb_get(database, options, key, length, &value_length, &error));
    check_no_error(error);
  }
  return memory_of(database) - before;
}

static void run(long n_keys) {
  CHECK(bloomline_leveldb_filterpolicy_create(-1) == NULL, "%s", "a policy of -1 bits per key");
  n_freed = 0;
  leveldb_filterpolicy_t *policy = bloomline_leveldb_filterpolicy_create(10);
  CHECK(policy != NULL, "%s", "no policy");
  leveldb_cache_t *cache = leveldb_cache_create_lru(64 << 20);
  leveldb_options_t *options = leveldb_options_create();
  leveldb_options_set_create_if_missing(options, 1);
  leveldb_options_set_write_buffer_size(options, 1 << 18);
  leveldb_options_set_filter_policy(options, policy);
  leveldb_options_set_cache(options, cache);
  leveldb_readoptions_t *read = leveldb_readoptions_create();
  leveldb_writeoptions_t *write = leveldb_writeoptions_create();
  char database_path[sizeof directory + 16], *error = NULL;
  sprintf(database_path, "%s/database", directory);

  leveldb_t *database = leveldb_open(options, database_path, &error);
  check_no_error(error);
  for (long number = 0; number < n_keys; ++number) {
    char key[32];
    const size_t length = key_of(2 * number, key);
    leveldb_put(database, write, key, length, key, length, &error);
    check_no_error(error);
  }
  leveldb_compact_range(database, NULL, 0, NULL, 0);
  check_all(database, n_keys, read);
  leveldb_close(database);
  CHECK(n_created > 0, "%ld filters", n_created);

  database = leveldb_open(options, database_path, &error);
  check_no_error(error);
  /* The counters see answers before LevelDB does. The data blocks that it skips show that it uses them. */
  const long for_missing = memory_for(database, n_keys, 1, read),
             for_present = memory_for(database, n_keys, 0, read);
  CHECK(for_missing < for_present / 4, "%ld bytes of data blocks read for missing keys", for_missing);
  n_queries = n_matched = 0;
  check_all(database, n_keys, read);
  leveldb_close(database);
  CHECK(n_freed == 0, "%d policies freed while the database may still use them", n_freed);
  CHECK(n_queries > n_keys, "%ld queries", n_queries);
  /* Every present key matches, and few of the others. */
  const long n_false = n_matched - n_keys;
  CHECK(n_false >= 0 && n_false < n_keys / 50 + 10, "%ld false positives", n_false);
  printf("leveldb_c: %ld keys, none lost; %ld filters created; %ld false positives in %ld queries\n", n_keys,
         n_created, n_false, n_queries - n_keys);

  leveldb_filterpolicy_destroy(policy);
  CHECK(n_freed == 1, "%d times freed", n_freed);
  leveldb_destroy_db(options, database_path, &error);
  check_no_error(error);
  leveldb_writeoptions_destroy(write);
  leveldb_readoptions_destroy(read);
  leveldb_options_destroy(options);
  leveldb_cache_destroy(cache);
}

/* File by file, because LevelDB does not destroy an open database, and after a failed check it is open. */
static void remove_directory(void) {
  char database_path[sizeof directory + 16];
  sprintf(database_path, "%s/database", directory);
  DIR *database = opendir(database_path);
  if (database != NULL) {
    for (struct dirent *entry; (entry = readdir(database)) != NULL;)
      unlinkat(dirfd(database), entry->d_name, 0);
    closedir(database);
  }
  rmdir(database_path);
  rmdir(directory);
}

int main(int argc, char **argv) {
  const long n_keys = argc > 1 ? atol(argv[1]) : 20000;
  if (argc > 2 || n_keys < 1) {
    fprintf(stderr, "usage: %s [KEYS]\n", argv[0]);
    return 2;
  }
  const char *parent = getenv("TMPDIR");
  snprintf(directory, sizeof directory, "%s/bloomline-XXXXXX", parent != NULL ? parent : "/tmp");
  CHECK(mkdtemp(directory) != NULL, "no directory %s", directory);
  atexit(remove_directory);
  run(n_keys);
  return 0;
}
