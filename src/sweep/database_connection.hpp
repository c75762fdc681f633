// An open database: the use of its file, SQLite's connection, the statements that write. Internal.
#pragma once

#include "sweep/file_use.hpp"
#include "sweep/sqlite.hpp"
#include <attmirror/sweep/database.hpp>

#include <filesystem>
#include <string>

namespace attmirror {

// The order of the members is that of their making; they go in the opposite one: statements, SQLite's files, and last
// the descriptor with the lock.
struct SweepDatabase::Connection {
  Connection(const std::filesystem::path& path, Mode mode, const SweepHeader& header);
  explicit Connection(const std::filesystem::path& path);

  std::filesystem::path path;
  FileUse use;
  Sqlite database;
  SweepHeader header;
  SqliteStatement insert_run{}, insert_array{}, remove_error{};  // of a writer only

  bool writes() const { return static_cast<bool>(insert_run); }
  void write(std::span<const RunRow> rows);
  void require_in_place() const;
};

}  // namespace attmirror
