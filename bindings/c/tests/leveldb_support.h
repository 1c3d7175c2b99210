// Shared by the tests and benchmarks in LevelDB: keys, values, directories, and the filters of tables.
#pragma once

#include <leveldb/db.h>
#include <leveldb/slice.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

// One-to-one, so that different numbers give different keys.
inline uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// 16 bytes; keys of neighbouring numbers lie anywhere, so that absent keys fall between present ones.
inline std::string key_of(uint64_t number) {
  static const char digits[] = "0123456789abcdef";
  std::string key(16, '0');
  uint64_t bits = mix(number);
  for (char &digit : key) {
    digit = digits[bits & 15];
    bits >>= 4;
  }
  return key;
}

// The first `distinct` bytes are random, the rest repeats them.
inline std::string value_of(uint64_t number, size_t length, size_t distinct) {
  std::string value(length, '\0');
  uint64_t bits = 0;
  for (size_t i = 0; i < length; ++i) {
    if (i % 8 == 0) bits = mix(number * 1000 + i);
    value[i] = i < distinct ? static_cast<char>(bits >> (i % 8 * 8)) : value[i - distinct];
  }
  return value;
}

inline void must(const leveldb::Status &status) {
  if (!status.ok()) throw std::runtime_error("LevelDB: " + status.ToString());
}

// Into one level. CompactRange looks for the lowest level before it waits for memtables to be written, which LevelDB may
// write below that: only the second call then includes it. With tables on two levels, gets make LevelDB compact them
// while a test reads, by the policy of the moment.
inline void compact(leveldb::DB *db) {
  for (int call = 0; call < 2; ++call) db->CompactRange(nullptr, nullptr);
}

// A temporary directory, deleted at the end.
class Directory {
 public:
  explicit Directory(const std::filesystem::path &parent = std::filesystem::temp_directory_path()) {
    std::string name = parent / "bloomline-XXXXXX";
    if (mkdtemp(name.data()) == nullptr)
      throw std::runtime_error("cannot create a directory in " + parent.string());
    path_ = name;
  }
  Directory(const Directory &) = delete;
  Directory &operator=(const Directory &) = delete;
  ~Directory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  std::string operator/(const std::string &name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

inline std::string read_file(const std::filesystem::path &path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline std::vector<std::filesystem::path> tables_of(const std::string &database) {
  std::vector<std::filesystem::path> tables;
  for (const auto &entry : std::filesystem::directory_iterator(database)) {
    if (entry.path().extension() == ".ldb") tables.push_back(entry.path());
  }
  return tables;
}

// One of LevelDB's tables, parsed as far as its filters, by LevelDB's doc/table_format.md.
class Table {
 public:
  Table(std::filesystem::path path, const std::string &policy)
      : path_(std::move(path)), file_(read_file(path_)) {
    need(file_.size() > 48 && fixed(file_.size() - 8, 8) == 0xdb4775248b80fb57, "no footer");
    size_t at = file_.size() - 48;
    const uint64_t metaindex = varint(&at);
    const uint64_t metaindex_size = varint(&at);
    // The metaindex is a block of one entry: shared, unshared and value length, key, value.
    const std::string key = "filter." + policy;
    const size_t found = file_.find(key, metaindex);
    need(found < metaindex + metaindex_size, "no filter of " + policy);
    at = found + key.size();
    offset_ = varint(&at);
    size_ = varint(&at);
    need(offset_ + size_ < file_.size(), "no filter block");
    array_ = fixed(offset_ + size_ - 5, 4);
    need(array_ + 5 <= size_, "no array of offsets");
  }

  // As LevelDB wrote it: filters, array of their offsets, offset of the array, logarithm of a filter's span.
  std::string block() const { return file_.substr(offset_, size_); }
  size_t n_filters() const { return (size_ - 5 - array_) / 4; }

  // The start and the end of a filter in the block. Equal if no data block begins in its span.
  std::pair<size_t, size_t> filter(size_t index) const {
    const size_t at = offset_ + array_ + 4 * index;
    return {fixed(at, 4), fixed(at + 4, 4)};
  }

  // Rewrites the file with another filter block of the same size. The checksum stays that of the old block.
  void write(const std::string &block) const {
    std::ofstream file(path_, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(static_cast<std::streamoff>(offset_));
    need(block.size() == size_ && file.write(block.data(), static_cast<std::streamsize>(size_)), "not written");
  }

 private:
  void need(bool condition, const std::string &what) const {
    if (!condition) throw std::runtime_error(path_.string() + ": " + what);
  }

  uint64_t fixed(size_t at, size_t bytes) const {
    uint64_t number = 0;
    for (size_t i = 0; i < bytes; ++i)
      number |= uint64_t{static_cast<unsigned char>(file_.at(at + i))} << (8 * i);
    return number;
  }

  uint64_t varint(size_t *at) const {
    uint64_t number = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<unsigned char>(file_.at((*at)++));
      number |= uint64_t{byte & 127u} << shift;
      if (byte < 128) break;
    }
    return number;
  }

  std::filesystem::path path_;
  std::string file_;
  uint64_t offset_, size_, array_;
};

// The bytes of each filter in a database's tables.
inline std::vector<std::string> filters_of(const std::string &database, const std::string &policy) {
  std::vector<std::string> filters;
  for (const auto &path : tables_of(database)) {
    const Table table(path, policy);
    const std::string block = table.block();
    for (size_t i = 0; i < table.n_filters(); ++i) {
      const auto [start, end] = table.filter(i);
      if (start != end) filters.push_back(block.substr(start, end - start));
    }
  }
  return filters;
}

inline size_t total_bytes(const std::vector<std::string> &filters) {
  size_t bytes = 0;
  for (const std::string &filter : filters) bytes += filter.size();
  return bytes;
}
