// How a database is opened: made, gone on with, replaced, read.
//
// journal_mode = WAL: a batch is appended to a log beside the file and becomes part of it by one record at the end,
// so a process that is killed leaves whole batches only, and readers go on meanwhile. SQLite moves the log into the
// file from time to time; the last to close removes it.
//
// synchronous = NORMAL: the log is brought to the disk when it is moved into the file, not after every batch. What was
// written survives the death of the process (kill -9) without loss, as the system has it. A power cut may take the last
// batches with it, those runs are computed again; it never harms the file.
//
// A new file gets its tables in a transaction of the older kind (a rollback journal) before it is switched to WAL:
// killed at any moment it is empty, or has all its tables.
#include "base/words.hpp"
#include "sweep/database_connection.hpp"
#include "sweep/database_schema.hpp"

#include <cerrno>
#include <cstring>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

namespace attmirror {
namespace {

namespace fs = std::filesystem;

constexpr int busy_milliseconds = 10'000;

enum class Content { nothing, sweep, foreign };

// From the first bytes of the file: SQLite's mark, and at byte 68 the application's.
Content content_of(int descriptor, const std::string& name) {
  unsigned char first[100] = {};
  const ssize_t got = ::pread(descriptor, first, sizeof first, 0);
  if (got < 0)
    throw environment_error(fmt::format("cannot read {}: {}", name, std::generic_category().message(errno)));
  if (got == 0) return Content::nothing;
  constexpr char mark[16] = "SQLite format 3";
  if (got < 100 || std::memcmp(first, mark, sizeof mark) != 0) return Content::foreign;
  std::int64_t id = 0;
  for (int i = 68; i < 72; ++i) id = id << 8 | first[i];
  return id == sweep_application_id ? Content::sweep : Content::foreign;
}

// Where SQLite finds the file: all links followed, so that the log lies beside the file itself, and absolute, since
// SQLite reads "file:..." as something else.
std::string location_of(const fs::path& path) {
  std::error_code error;
  const fs::path result = fs::canonical(path, error);
  if (error) throw environment_error(fmt::format("cannot open {}: {}", path.string(), error.message()));
  return result.string();
}

void configure(const Sqlite& database) {
  sqlite3_busy_timeout(database.get(), busy_milliseconds);
  sqlite3_db_config(database.get(), SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(database.get(), SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  // "name" is a column and never a text, so a column that is missing is an error.
  sqlite3_db_config(database.get(), SQLITE_DBCONFIG_DQS_DML, 0, nullptr);
  sqlite3_db_config(database.get(), SQLITE_DBCONFIG_DQS_DDL, 0, nullptr);
  database.execute("PRAGMA cell_size_check = ON");
  // Keys are random, so their index is written all over: 64 MB hold that of a million runs.
  database.execute("PRAGMA cache_size = -64000");
}

// The end of a file, as it was before SQLite opened it. SQLite takes part of a page for a whole one and reads zeros
// for the rest. Only a checkpoint that was broken off leaves such a file, and then the log, which has the whole page,
// is there.
class FileEnd {
 public:
  explicit FileEnd(const fs::path& file) {
    std::error_code error;
    size_ = fs::file_size(file, error);
    const auto log = fs::file_size(file.string() + "-wal", error);
    has_log_ = !error && log > 0;
  }
  void check(const Sqlite& database) const {
    const auto page = static_cast<std::uintmax_t>(database.query_integer("PRAGMA page_size"));
    if (!has_log_ && page > 0 && size_ % page != 0)
      throw bad_input(
          fmt::format("{} is damaged: it ends within a page, after {} bytes", database.name(), size_));
  }

 private:
  std::uintmax_t size_ = 0;
  bool has_log_ = false;
};

// Byte 18 of the file is the version that a writer must know: 1, or 2 for a file with a log.
bool asks_for_newer_sqlite(int descriptor) {
  unsigned char version = 0;
  return ::pread(descriptor, &version, 1, 18) == 1 && version > 2;
}

void use_log(const Sqlite& database, int descriptor) {
  // The file was opened to write: if SQLite only reads it, either its own first page says no, or SQLite could not open
  // it once more to write and was content with less.
  database.query_integer("SELECT count(*) FROM sqlite_master");
  if (sqlite3_db_readonly(database.get(), "main") != 0) {
    if (asks_for_newer_sqlite(descriptor))
      throw bad_input(
          fmt::format("{} is damaged: its first page asks for a newer version of SQLite", database.name()));
    throw environment_error(fmt::format("cannot write {}: it can only be read", database.name()));
  }

  if (const std::string mode = database.query_text("PRAGMA journal_mode = WAL"); mode != "wal")
    throw environment_error(
        fmt::format("cannot write {}: its file system does not support a write-ahead log", database.name()));
  database.execute("PRAGMA synchronous = NORMAL");
}

void make_new(const Sqlite& database, const SweepHeader& header) {
  // Not the order that the file may have been left with by one that died here.
  database.execute("PRAGMA journal_mode = DELETE");
  SqliteTransaction transaction(database, SqliteTransaction::Kind::exclusive);
  make_tables(database, header);
  transaction.commit();
}

// In one transaction, so that it is the old or the new for everybody. The old rows leave their pages behind; VACUUM
// gives them back to the disk. It needs the room of the new tables only, and is not worth failing for.
void make_anew(const Sqlite& database, const SweepHeader& header) {
  database.execute("PRAGMA secure_delete = OFF");
  SqliteTransaction transaction(database, SqliteTransaction::Kind::write);
  drop_tables(database);
  make_tables(database, header);
  transaction.commit();
  sqlite3_exec(database.get(), "VACUUM", nullptr, nullptr, nullptr);
}

SweepHeader go_on(const Sqlite& database, const SweepHeader& header) {
  const SweepHeader stored = load_header(database);
  require_same_sweep(stored, header, database.name());
  // Rows written into a damaged file would only be lost, too.
  if (const std::string problem = database.query_text("PRAGMA quick_check(1)"); problem != "ok")
    throw bad_input(fmt::format("{} is damaged: {}", database.name(), one_line(problem)));
  if (stored != header) {
    SqliteTransaction transaction(database, SqliteTransaction::Kind::write);
    store_header(database, header);
    transaction.commit();
  }
  return header;
}

std::string insert_sql(std::string_view table, const std::string& columns, std::size_t count,
                       std::string_view conflict) {
  std::string marks;
  for (std::size_t i = 0; i < count; ++i) marks += i == 0 ? "?" : ", ?";
  return fmt::format("INSERT INTO {} ({}) VALUES ({}) {}", table, columns, marks, conflict);
}

bool writable(const fs::path& path) { return ::faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) == 0; }

// Readers, too, take part in the log, which needs two files beside the database. Where these cannot be made and there
// is no log, nobody writes, and SQLite may take the file as it is; "immutable" says so.
Sqlite open_to_read(const fs::path& path) {
  const fs::path file = location_of(path);
  const bool may_write = writable(file) && writable(file.parent_path());
  std::error_code ignored;
  const fs::path log = file.string() + "-wal";
  if (may_write || fs::exists(log, ignored)) {
    try {
      // Opened to write so that the last reader can clear the log away, as long as the file allows it; SQLite opens a
      // file that may only be read accordingly.
      Sqlite database(file.string(), SQLITE_OPEN_READWRITE, path.string());
      configure(database);
      database.execute("PRAGMA query_only = ON");
      database.query_integer("SELECT count(*) FROM sqlite_master");
      return database;
    } catch (const Error& error) {
      if (may_write || error.kind() != ErrorKind::environment) throw;
      if (const auto size = fs::file_size(log, ignored); !ignored && size > 0)
        throw environment_error(
            fmt::format("cannot read {}: rows of it are in {}-wal, which can be read only where both may be "
                        "written; copy the two "
                        "files to such a folder",
                        path.string(), path.filename().string()));
    }
  }
  std::string uri = "file:";
  for (const char c : file.string()) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '%' || c == '?' || c == '#' || byte < 32 || byte > 126)
      uri += fmt::format("%{:02X}", byte);
    else
      uri += c;
  }
  Sqlite database(uri + "?immutable=1", SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, path.string());
  configure(database);
  return database;
}

}  // namespace

SweepDatabase::Connection::Connection(const fs::path& file, Mode mode, const SweepHeader& wanted)
    : path(file) {
  wanted.validate();
  use = FileUse::to_write(path, mode == Mode::resume ? FileUse::Missing::refuse : FileUse::Missing::make);
  const std::string location = location_of(path);
  try {
    const Content content = content_of(use.descriptor(), path.string());
    const auto refuse_foreign = [&] {
      return bad_input(fmt::format(
          "{} is not a database of an attmirror sweep, or is damaged: it is left as it is", path.string()));
    };
    if (content == Content::foreign) throw refuse_foreign();
    const FileEnd end(location);
    database = Sqlite(location, SQLITE_OPEN_READWRITE, path.string());
    configure(database);
    // A file whose tables were never finished is empty once SQLite has rolled them back.
    if (content == Content::nothing || database.query_integer("PRAGMA page_count") == 0) {
      make_new(database, wanted);
      use_log(database, use.descriptor());
      header = wanted;
    } else if (mode == Mode::create) {
      throw bad_input(
          fmt::format("{} exists: resume it, overwrite it, or choose another name", path.string()));
    } else {
      use_log(database, use.descriptor());
      end.check(database);
      if (mode == Mode::overwrite)
        make_anew(database, wanted);
      else
        go_on(database, wanted);
      header = wanted;
    }
    const auto columns = run_columns(header);
    insert_run = database.prepare(
        insert_sql("runs", column_list(columns), columns.size(), "ON CONFLICT (\"key\") DO NOTHING"));
    remove_error = database.prepare("DELETE FROM runs WHERE key = ? AND status = 'error'");
    insert_array = database.prepare(insert_sql("arrays", "key, name, shape, data", 4, ""));
  } catch (...) {
    // What was made here and has come to nothing goes.
    for (SqliteStatement* statement : {&insert_run, &insert_array, &remove_error})
      *statement = SqliteStatement();
    database = Sqlite();
    struct stat status {};
    if (use.made() && ::fstat(use.descriptor(), &status) == 0 && status.st_size == 0)
      ::unlink(location.c_str());
    throw;
  }
}

SweepDatabase::Connection::Connection(const fs::path& file) : path(file) {
  use = FileUse::to_read(path);
  std::error_code error;
  if (fs::file_size(path, error) == 0 && !error)
    throw bad_input(fmt::format("{} is empty: expected the results of a sweep", path.string()));
  const FileEnd end(location_of(path));
  database = open_to_read(path);
  end.check(database);
  header = load_header(database);
}

}  // namespace attmirror
