#include "sweep/sqlite.hpp"

#include "base/words.hpp"

#include <cerrno>
#include <cstring>
#include <new>
#include <system_error>
#include <utility>

#include <fmt/format.h>

namespace attmirror {
namespace {

// Why a disk refused, if it is known. SQLite keeps the number for errors of statements but not for those of COMMIT;
// then the last call that failed said it, if what it said is of this kind.
std::string disk_problem(sqlite3* connection, const std::string& otherwise) {
  const int last = errno;
  if (const int kept = connection ? sqlite3_system_errno(connection) : 0)
    return std::generic_category().message(kept);
  for (const int known : {ENOSPC, EDQUOT, EFBIG, EIO, EROFS})
    if (last == known) return std::generic_category().message(last);
  return otherwise;
}

}  // namespace

Error sqlite_error(sqlite3* connection, int code, const std::string& name) {
  const std::string problem = disk_problem(connection, sqlite3_errstr(code));
  const std::string message = one_line(connection ? sqlite3_errmsg(connection) : sqlite3_errstr(code));
  switch (code & 0xff) {  // the lower byte is the kind, the others the case
    case SQLITE_CORRUPT:
    case SQLITE_FORMAT:
    case SQLITE_ERROR:  // our statements are right: tables or columns that they name are not there
    case SQLITE_SCHEMA:
      return bad_input(fmt::format("{} is damaged: {}", name, message));
    case SQLITE_NOTADB:
      return bad_input(
          fmt::format("{} is damaged or does not hold the results of a sweep: {}", name, message));
    case SQLITE_FULL:
      return environment_error(fmt::format("cannot write {}: No space left on device", name));
    case SQLITE_IOERR:
      if (code == SQLITE_IOERR_SHORT_READ || code == SQLITE_IOERR_CORRUPTFS)
        return bad_input(fmt::format("{} is damaged: {}", name, message));
      return environment_error(
          fmt::format("cannot {} {}: {}", code == SQLITE_IOERR_READ ? "read" : "write", name, problem));
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return environment_error(fmt::format("{} is in use by another process: {}", name, message));
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_CANTOPEN:
      return environment_error(fmt::format("cannot open {}: {}", name, message));
    case SQLITE_NOMEM:
      return environment_error(fmt::format("{}: not enough memory", name));
    case SQLITE_TOOBIG:
      return bad_input(fmt::format("{}: a text or array exceeds SQLite's limit of a gigabyte", name));
    default:
      return environment_error(fmt::format("{}: {} (SQLite's error {})", name, message, code));
  }
}

std::string sql_name(std::string_view name) {
  std::string result = "\"";
  for (const char c : name) {
    if (c == '"') result += '"';
    result += c;
  }
  return result + '"';
}

SqliteStatement::SqliteStatement(SqliteStatement&& other) noexcept
    : statement_(std::exchange(other.statement_, nullptr)), name_(std::move(other.name_)) {}

SqliteStatement& SqliteStatement::operator=(SqliteStatement&& other) noexcept {
  std::swap(statement_, other.statement_);
  std::swap(name_, other.name_);
  return *this;
}

SqliteStatement::~SqliteStatement() { sqlite3_finalize(statement_); }

void SqliteStatement::check(int code) const {
  if (code != SQLITE_OK) throw sqlite_error(sqlite3_db_handle(statement_), code, name_);
}

void SqliteStatement::bind_nothing(int index) { check(sqlite3_bind_null(statement_, index)); }
void SqliteStatement::bind(int index, std::int64_t value) {
  check(sqlite3_bind_int64(statement_, index, value));
}
void SqliteStatement::bind(int index, double value) { check(sqlite3_bind_double(statement_, index, value)); }
void SqliteStatement::bind(int index, std::string_view text) {
  // A null pointer would be NULL, and an empty text is none.
  check(sqlite3_bind_text64(statement_, index, text.empty() ? "" : text.data(), text.size(), SQLITE_STATIC,
                            SQLITE_UTF8));
}
void SqliteStatement::bind_blob(int index, std::span<const std::byte> blob) {
  if (blob.empty())
    check(sqlite3_bind_zeroblob(statement_, index, 0));
  else
    check(sqlite3_bind_blob64(statement_, index, blob.data(), blob.size(), SQLITE_STATIC));
}

bool SqliteStatement::step() {
  const int code = sqlite3_step(statement_);
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  const Error error = sqlite_error(sqlite3_db_handle(statement_), code, name_);
  sqlite3_reset(statement_);  // ends the read or write that it was in
  throw error;
}

void SqliteStatement::run() {
  while (step()) {
  }
  reset();
}

void SqliteStatement::reset() { check(sqlite3_reset(statement_)); }

std::string SqliteStatement::text(int column) const {
  if (sqlite3_column_type(statement_, column) == SQLITE_NULL) return {};
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
  if (!text) throw std::bad_alloc();  // SQLite has no other reason
  return {text, static_cast<std::size_t>(sqlite3_column_bytes(statement_, column))};
}

std::span<const std::byte> SqliteStatement::blob(int column) const {
  const auto* bytes = static_cast<const std::byte*>(sqlite3_column_blob(statement_, column));
  if (!bytes) return {};
  return {bytes, static_cast<std::size_t>(sqlite3_column_bytes(statement_, column))};
}

Sqlite::Sqlite(const std::string& location, int flags, std::string name) : name_(std::move(name)) {
  const int code = sqlite3_open_v2(location.c_str(), &connection_, flags | SQLITE_OPEN_EXRESCODE, nullptr);
  if (code != SQLITE_OK) {
    const Error error = sqlite_error(connection_, code, name_);
    sqlite3_close(connection_);
    throw error;
  }
}

Sqlite::Sqlite(Sqlite&& other) noexcept
    : connection_(std::exchange(other.connection_, nullptr)), name_(std::move(other.name_)) {}

Sqlite& Sqlite::operator=(Sqlite&& other) noexcept {
  std::swap(connection_, other.connection_);
  std::swap(name_, other.name_);
  return *this;
}

Sqlite::~Sqlite() { sqlite3_close(connection_); }

void Sqlite::execute(const std::string& sql) const {
  const int code = sqlite3_exec(connection_, sql.c_str(), nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) throw sqlite_error(connection_, code, name_);
}

SqliteStatement Sqlite::prepare(const std::string& sql) const {
  sqlite3_stmt* statement = nullptr;
  const int code =
      sqlite3_prepare_v2(connection_, sql.data(), static_cast<int>(sql.size()), &statement, nullptr);
  if (code != SQLITE_OK) throw sqlite_error(connection_, code, name_);
  return {statement, name_};
}

std::int64_t Sqlite::query_integer(const std::string& sql) const {
  SqliteStatement statement = prepare(sql);
  return statement.step() ? statement.integer(0) : 0;
}

std::string Sqlite::query_text(const std::string& sql) const {
  SqliteStatement statement = prepare(sql);
  return statement.step() ? statement.text(0) : std::string();
}

SqliteTransaction::SqliteTransaction(const Sqlite& database, Kind kind) : database_(database) {
  database.execute(kind == Kind::read    ? "BEGIN"
                   : kind == Kind::write ? "BEGIN IMMEDIATE"
                                         : "BEGIN EXCLUSIVE");
}

SqliteTransaction::~SqliteTransaction() {
  // SQLite has rolled back by itself after some errors; asking again would be one more.
  if (!done_ && !sqlite3_get_autocommit(database_.get()))
    sqlite3_exec(database_.get(), "ROLLBACK", nullptr, nullptr, nullptr);
}

void SqliteTransaction::commit() {
  errno = 0;  // see disk_problem()
  database_.execute("COMMIT");
  done_ = true;
}

}  // namespace attmirror
