/* A LevelDB database with bloomline's filters, through LevelDB's C interface. Usage: leveldb DIRECTORY */
#include <bloomline/leveldb.h>
#include <stdio.h>

int main(int argc, char **argv) {
  if (argc != 2) return fprintf(stderr, "usage: %s DIRECTORY\n", argv[0]), 2;
  leveldb_options_t *options = leveldb_options_create();
  leveldb_options_set_create_if_missing(options, 1);
  leveldb_filterpolicy_t *policy = bloomline_leveldb_filterpolicy_create(10);
  leveldb_options_set_filter_policy(options, policy);

  char *error = NULL;
  leveldb_t *db = leveldb_open(options, argv[1], &error);
  if (error != NULL) return fprintf(stderr, "%s\n", error), 1;
  leveldb_writeoptions_t *write = leveldb_writeoptions_create();
  leveldb_readoptions_t *read = leveldb_readoptions_create();
  leveldb_put(db, write, "ant", 3, "six legs", 8, &error);
  leveldb_compact_range(db, NULL, 0, NULL, 0); /* writes a table with filters */
  size_t length = 0;
  char *legs = leveldb_get(db, read, "ant", 3, &length, &error);
  char *none = leveldb_get(db, read, "elk", 3, &length, &error);
  if (error != NULL) return fprintf(stderr, "%s\n", error), 1;
  printf("ant: %s, elk: %s\n", legs != NULL ? "found" : "lost", none == NULL ? "not found" : "found");

  leveldb_free(legs);
  leveldb_readoptions_destroy(read);
  leveldb_writeoptions_destroy(write);
  leveldb_close(db);
  leveldb_options_destroy(options);
  leveldb_filterpolicy_destroy(policy);
  return legs == NULL || none != NULL;
}
