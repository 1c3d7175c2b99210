// A LevelDB database with bloomline's filters. Usage: leveldb DIRECTORY
#include <bloomline/leveldb.h>
#include <leveldb/db.h>

#include <cstdio>
#include <memory>

int main(int argc, char **argv) {
  if (argc != 2) return std::fprintf(stderr, "usage: %s DIRECTORY\n", argv[0]), 2;
  bloomline::LevelDBFilterPolicy policy(10);
  leveldb::Options options;
  options.create_if_missing = true;
  options.filter_policy = &policy;

  leveldb::DB *opened = nullptr;
  leveldb::Status status = leveldb::DB::Open(options, argv[1], &opened);
  if (!status.ok()) return std::fprintf(stderr, "%s\n", status.ToString().c_str()), 1;
  std::unique_ptr<leveldb::DB> db(opened);
  db->Put({}, "ant", "six legs");
  db->CompactRange(nullptr, nullptr);  // writes a table with filters
  std::string legs, none;
  const bool ant = db->Get({}, "ant", &legs).ok(), elk = db->Get({}, "elk", &none).IsNotFound();
  std::printf("ant: %s, elk: %s; %llu unusable filters\n", ant ? legs.c_str() : "lost", elk ? "not found" : "found",
              static_cast<unsigned long long>(policy.unusable_filters()));
  return !ant || !elk;
}
