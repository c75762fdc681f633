// SQLite with owners and exceptions: a connection, a statement, a transaction. Internal.
//
// Result codes become Errors here, once: what a full disk, a damaged file or a second process is called is the same
// in all places that meet it.
#pragma once

#include <attmirror/base/error.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <sqlite3.h>

namespace attmirror {

// A statement that was prepared: bind values from 1, step through rows, read columns from 0. Texts and blobs that are
// bound must live until the statement has been stepped; those that are read are valid until the next step.
class SqliteStatement {
 public:
  SqliteStatement() = default;
  SqliteStatement(sqlite3_stmt* statement, const std::string& name) : statement_(statement), name_(name) {}
  SqliteStatement(SqliteStatement&& other) noexcept;
  SqliteStatement& operator=(SqliteStatement&& other) noexcept;
  ~SqliteStatement();

  explicit operator bool() const { return statement_ != nullptr; }

  void bind_nothing(int index);
  void bind(int index, std::int64_t value);
  void bind(int index, double value);
  void bind(int index, std::string_view text);
  void bind_blob(int index, std::span<const std::byte> blob);

  bool step();   // whether there is a row
  void run();    // a statement without rows; can be run again
  void reset();  // before values are bound anew

  int type(int column) const { return sqlite3_column_type(statement_, column); }
  std::int64_t integer(int column) const { return sqlite3_column_int64(statement_, column); }
  double real(int column) const { return sqlite3_column_double(statement_, column); }
  std::string text(int column) const;
  std::span<const std::byte> blob(int column) const;

 private:
  void check(int code) const;

  sqlite3_stmt* statement_ = nullptr;
  std::string name_;
};

class Sqlite {
 public:
  Sqlite() = default;
  // `name` is what messages call the file, `location` a path that is absolute or a "file:" URI.
  Sqlite(const std::string& location, int flags, std::string name);
  Sqlite(Sqlite&& other) noexcept;
  Sqlite& operator=(Sqlite&& other) noexcept;
  ~Sqlite();

  sqlite3* get() const { return connection_; }
  const std::string& name() const { return name_; }

  void execute(const std::string& sql) const;
  SqliteStatement prepare(const std::string& sql) const;
  // The single value of a query; 0 or empty where there is no row.
  std::int64_t query_integer(const std::string& sql) const;
  std::string query_text(const std::string& sql) const;
  int changes() const { return sqlite3_changes(connection_); }

 private:
  sqlite3* connection_ = nullptr;
  std::string name_;
};

// Rolls back unless committed.
class SqliteTransaction {
 public:
  enum class Kind { read, write, exclusive };
  SqliteTransaction(const Sqlite& database, Kind kind);
  SqliteTransaction(const SqliteTransaction&) = delete;
  SqliteTransaction& operator=(const SqliteTransaction&) = delete;
  ~SqliteTransaction();
  void commit();

 private:
  const Sqlite& database_;
  bool done_ = false;
};

// What a result code means, in one sentence about the file `name`.
Error sqlite_error(sqlite3* connection, int code, const std::string& name);

// "name" as SQL writes it, with quotes inside doubled.
std::string sql_name(std::string_view name);

}  // namespace attmirror
