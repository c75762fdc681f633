// What the reader of a sweep's results owes whatever stands in a database, for the fuzzer and for the ordinary tests
// that run its corpus.
//
// SQLite checks the structure of its files; which values stand in the cells is ours to check. The first byte of an
// input says which value of an honest database is replaced, the rest is the value; a second byte of n, i or b makes
// it nothing, a whole number or bytes instead of text:
//
//   h  the header (JSON)    s  the shape of an array    d  its data    c  the configuration of a run    t  its status
//   k  its key    r  its number    m  a metric    g  a setting
//   a  the name of an array    @  bytes of the file itself
#pragma once

#include "check_parser.hpp"
#include "result_checks.hpp"
#include "sweep/sweep_rows.hpp"
#include <attmirror/sweep/database.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <sqlite3.h>

namespace attmirror::fuzz {

inline const std::vector<std::byte>& honest_database() {
  static const std::vector<std::byte> content = [] {
    const ScratchFolder folder;
    const auto path = folder / "honest.db";
    SweepDatabase(path, SweepDatabase::Mode::create, test::example_header()).write(test::example_rows(0, 2));
    return read_file(path);
  }();
  return content;
}

// Which statement replaces the value; nothing for the file itself.
inline const char* replacement(char which) {
  switch (which) {
    case 'h':
      return "UPDATE meta SET value = ? WHERE name = 'header'";
    case 's':
      return "UPDATE arrays SET shape = ? WHERE rowid = 1";
    case 'd':
      return "UPDATE arrays SET data = ? WHERE rowid = 1";
    case 'a':
      return "UPDATE arrays SET name = ? WHERE rowid = 1";
    case 'c':
      return "UPDATE runs SET config = ? WHERE run = 0";
    case 't':
      return "UPDATE runs SET status = ? WHERE run = 0";
    case 'k':
      return "UPDATE runs SET key = ? WHERE run = 0";
    case 'r':
      return "UPDATE runs SET run = ? WHERE run = 0";
    case 'm':
      return "UPDATE runs SET loss = ? WHERE run = 0";
    case 'g':
      return "UPDATE runs SET seed = ? WHERE run = 0";
    default:
      return nullptr;
  }
}

inline void replace_value(const std::filesystem::path& path, const char* sql, char type,
                          std::string_view value) {
  sqlite3* database = nullptr;
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_open(path.c_str(), &database) == SQLITE_OK) {
    sqlite3_exec(database, "PRAGMA journal_mode = DELETE; PRAGMA synchronous = OFF", nullptr, nullptr,
                 nullptr);
    if (sqlite3_prepare_v2(database, sql, -1, &statement, nullptr) != SQLITE_OK) std::abort();
    const auto length = static_cast<int>(value.size());
    if (type == 'n')
      sqlite3_bind_null(statement, 1);
    else if (type == 'i')
      sqlite3_bind_int64(statement, 1, value.empty() ? -1 : std::int64_t{value[0]} << (value.size() % 64));
    else if (type == 'b')
      sqlite3_bind_blob(statement, 1, value.data(), length, SQLITE_TRANSIENT);
    else
      sqlite3_bind_text(statement, 1, value.data(), length, SQLITE_TRANSIENT);
    sqlite3_step(statement);
    sqlite3_finalize(statement);
  }
  sqlite3_close(database);
}

inline void check_database(std::span<const std::byte> file) {
  if (file.size() < 2) return;
  static const ScratchFolder folder;
  const auto path = folder / "results.db";
  std::vector<std::byte> content = honest_database();
  const char which = std::to_integer<char>(file[0]), type = std::to_integer<char>(file[1]);
  const std::string_view value(reinterpret_cast<const char*>(file.data()) + 2, file.size() - 2);
  if (which == '@')  // (place, new byte), the place in two bytes
    for (std::size_t i = 1; i + 2 < file.size(); i += 3)
      content[(std::to_integer<std::size_t>(file[i]) * 256 + std::to_integer<std::size_t>(file[i + 1])) %
              content.size()] = file[i + 2];
  for (const char* end : {"", "-wal", "-shm", "-journal"}) std::filesystem::remove(path.string() + end);
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(content.data()), std::ssize(content));
  if (const char* sql = replacement(which)) replace_value(path, sql, type, value);
  check_reading([&] {
    const SweepDatabase database(path);
    check_reading([&] { database.rows(SweepDatabase::Arrays::load); });
    check_reading([&] { database.finished_keys(); });
    check_reading([&] { database.array_shapes(); });
    check_reading([&] { database.for_each_array("loss", [](const auto&) {}); });
    check_reading([&] { database.integrity(); });
  });
}

}  // namespace attmirror::fuzz
