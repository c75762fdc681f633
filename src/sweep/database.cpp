// Rows into the database and out of it. How it is opened stands in database_open.cpp, the tables
// in database_schema.hpp.
#include "base/json.hpp"
#include "base/words.hpp"
#include "sweep/database_connection.hpp"
#include "sweep/database_schema.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>

#include <fmt/format.h>
#include <sys/stat.h>

namespace attmirror {
namespace {

// Numbers lie in the file with the lowest byte first, whatever machine wrote them; where the highest comes first in
// memory they are turned round, there and back.
void turn_to_little_endian(std::span<double> values) {
  if constexpr (std::endian::native == std::endian::big)
    for (double& value : values) std::ranges::reverse(std::as_writable_bytes(std::span(&value, 1)));
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

// The number of values of a shape, or -1 if it is none.
std::int64_t volume(const std::vector<std::int64_t>& shape) {
  std::int64_t product = 1;
  for (const std::int64_t extent : shape) {
    if (extent < 0) return -1;
    if (extent != 0 && product > std::numeric_limits<std::int64_t>::max() / extent) return -1;
    product *= extent;
  }
  return product;
}

Error wrong_shape(const std::string& array, const std::string& file) {
  return bad_input(
      fmt::format("{} is damaged: the data of array \"{}\" do not have its shape", file, one_line(array)));
}

std::vector<std::int64_t> parse_shape(const std::string& text, const std::string& array,
                                      const std::string& file) try {
  const Json json = Json::parse(text);
  if (!json.is_array()) throw wrong_shape(array, file);
  std::vector<std::int64_t> shape;
  for (const Json& extent : json) {
    constexpr std::uint64_t most = std::numeric_limits<std::int64_t>::max();
    if (!extent.is_number_unsigned() || extent.get<std::uint64_t>() > most) throw wrong_shape(array, file);
    shape.push_back(extent.get<std::int64_t>());
  }
  if (volume(shape) < 0) throw wrong_shape(array, file);
  return shape;
} catch (const nlohmann::json::exception&) {
  throw wrong_shape(array, file);
}

RowArray read_array(const SqliteStatement& statement, std::string name, int shape_column,
                    const std::string& file) {
  RowArray array{.name = std::move(name), .shape = {}, .values = {}};
  array.shape = parse_shape(statement.text(shape_column), array.name, file);
  const auto blob = statement.blob(shape_column + 1);
  const auto values = static_cast<std::size_t>(volume(array.shape));
  if (blob.size() % sizeof(double) != 0 || blob.size() / sizeof(double) != values)
    throw wrong_shape(array.name, file);
  array.values.resize(values);
  if (blob.empty()) return array;
  std::memcpy(array.values.data(), blob.data(), blob.size());
  turn_to_little_endian(array.values);
  return array;
}

// A cell comes back as its column's type; SQLite itself would let anything stand anywhere.
Cell read_cell(const SqliteStatement& statement, int at, const RowColumn& column, const std::string& file) {
  const int type = statement.type(at);
  if (type == SQLITE_NULL) return {};
  if (column.type == CellType::integer && type == SQLITE_INTEGER) return statement.integer(at);
  if (column.type == CellType::real && (type == SQLITE_FLOAT || type == SQLITE_INTEGER))
    return statement.real(at);
  if (column.type == CellType::text && type == SQLITE_TEXT) return statement.text(at);
  throw bad_input(fmt::format("{} is damaged: column \"{}\" of table runs has a value of another type", file,
                              column.name));
}

void bind_real(SqliteStatement& statement, int index, double value) {
  if (std::isnan(value))
    statement.bind_nothing(index);
  else
    statement.bind(index, value);
}

// What a row must be, said before anything is written.
void check_cells(const std::vector<Cell>& cells, const std::vector<RowColumn>& columns, const char* what,
                 const RunRow& row) {
  if (cells.size() != columns.size())
    throw bad_input(
        fmt::format("run {} has {} {}: the sweep has {}", row.run, cells.size(), what, columns.size()));
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const CellType type = columns[i].type;
    const bool fits = std::holds_alternative<std::monostate>(cells[i]) ||
                      (std::holds_alternative<std::int64_t>(cells[i]) && type != CellType::text) ||
                      (std::holds_alternative<double>(cells[i]) && type == CellType::real) ||
                      (std::holds_alternative<std::string>(cells[i]) && type == CellType::text);
    if (!fits)
      throw bad_input(fmt::format("{}[{}] (\"{}\") of run {} has another type than its column", what, i,
                                  columns[i].name, row.run));
  }
}

void check_row(const RunRow& row, const SweepHeader& header) {
  if (row.key.empty()) throw bad_input(fmt::format("run {} has no key", row.run));
  check_cells(row.settings, header.settings, "settings", row);
  check_cells(row.metrics, header.metrics, "metrics", row);
  std::set<std::string_view> names;
  for (const RowArray& array : row.arrays) {
    if (!names.insert(array.name).second)
      throw bad_input(fmt::format("run {} has two arrays \"{}\"", row.run, array.name));
    if (volume(array.shape) != static_cast<std::int64_t>(array.values.size()))
      throw bad_input(fmt::format("array \"{}\" of run {} has {} values: its shape is {}", array.name,
                                  row.run, array.values.size(), shape_text(array.shape)));
  }
}

class Binder {
 public:
  explicit Binder(SqliteStatement& statement) : statement_(statement) {}
  void put(const std::string& text) { statement_.bind(++index_, text); }
  void put(std::int64_t value) { statement_.bind(++index_, value); }
  void put(double value) { bind_real(statement_, ++index_, value); }
  void put(const std::vector<Cell>& cells, const std::vector<RowColumn>& columns) {
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const Cell& cell = cells[i];
      if (const auto* text = std::get_if<std::string>(&cell))
        put(*text);
      else if (const auto* real = std::get_if<double>(&cell))
        put(*real);
      else if (const auto* integer = std::get_if<std::int64_t>(&cell))
        columns[i].type == CellType::real ? put(static_cast<double>(*integer)) : put(*integer);
      else
        statement_.bind_nothing(++index_);
    }
  }

 private:
  SqliteStatement& statement_;
  int index_ = 0;
};

std::vector<RowArray> read_arrays(const Sqlite& database, SqliteStatement& statement,
                                  const std::string& key) {
  std::vector<RowArray> arrays;
  statement.reset();
  statement.bind(1, key);
  while (statement.step()) arrays.push_back(read_array(statement, statement.text(0), 1, database.name()));
  return arrays;
}

constexpr const char* arrays_of_key = "SELECT name, shape, data FROM arrays WHERE key = ? ORDER BY rowid";

}  // namespace

SweepDatabase::SweepDatabase(const std::filesystem::path& path, Mode mode, const SweepHeader& header)
    : connection_(std::make_unique<Connection>(path, mode, header)) {}
SweepDatabase::SweepDatabase(const std::filesystem::path& path)
    : connection_(std::make_unique<Connection>(path)) {}
SweepDatabase::~SweepDatabase() = default;
SweepDatabase::SweepDatabase(SweepDatabase&&) noexcept = default;
SweepDatabase& SweepDatabase::operator=(SweepDatabase&&) noexcept = default;

const SweepHeader& SweepDatabase::header() const { return connection_->header; }
const std::filesystem::path& SweepDatabase::path() const { return connection_->path; }

std::vector<std::string> SweepDatabase::finished_keys() const {
  std::vector<std::string> keys;
  SqliteStatement statement =
      connection_->database.prepare("SELECT key FROM runs WHERE status <> 'error' ORDER BY key");
  while (statement.step()) keys.push_back(statement.text(0));
  return keys;
}

std::int64_t SweepDatabase::count() const {
  return connection_->database.query_integer("SELECT count(*) FROM runs");
}

void SweepDatabase::write(std::span<const RunRow> rows) { connection_->write(rows); }

void SweepDatabase::require_in_place() const { connection_->require_in_place(); }

// Somebody may have removed the file, put another in its place or emptied it: what is written now would go nowhere.
void SweepDatabase::Connection::require_in_place() const {
  if (!writes()) return;
  struct stat named {
  }, open{};
  const bool same = ::stat(path.c_str(), &named) == 0 && ::fstat(use.descriptor(), &open) == 0 &&
                    named.st_dev == open.st_dev && named.st_ino == open.st_ino && open.st_size > 0;
  if (!same)
    throw environment_error(
        fmt::format("{} was removed, replaced or emptied while it was being written", path.string()));
}

void SweepDatabase::Connection::write(std::span<const RunRow> rows) {
  if (!writes()) throw bad_input(fmt::format("{} was opened to read", database.name()));
  for (const RunRow& row : rows) check_row(row, header);
  if (rows.empty()) return;
  require_in_place();
  SqliteTransaction transaction(database, SqliteTransaction::Kind::write);
  for (const RunRow& row : rows) {
    remove_error.bind(1, row.key);
    remove_error.run();
    Binder binder(insert_run);
    binder.put(row.key);
    binder.put(row.run);
    binder.put(row.settings, header.settings);
    for (const std::string* text : {&row.config, &row.status, &row.reason}) binder.put(*text);
    binder.put(row.metrics, header.metrics);
    binder.put(row.seconds);
    for (const std::string* text : {&row.engine, &row.isa, &row.version, &row.commit, &row.finished})
      binder.put(*text);
    insert_run.run();
    if (database.changes() == 0) continue;  // the key was there
    for (const RowArray& array : row.arrays) {
      const std::string shape = shape_text(array.shape);
      std::span<const double> values = array.values;
      std::vector<double> turned;
      if constexpr (std::endian::native == std::endian::big) {
        turned = array.values;
        turn_to_little_endian(turned);
        values = turned;
      }
      insert_array.bind(1, row.key);
      insert_array.bind(2, array.name);
      insert_array.bind(3, shape);
      insert_array.bind_blob(4, std::as_bytes(values));
      insert_array.run();
    }
  }
  transaction.commit();
}

std::vector<RunRow> SweepDatabase::rows(Arrays arrays) const {
  std::vector<RunRow> result;
  for_each_row([&](const RunRow& row) { result.push_back(row); }, arrays);
  return result;
}

std::vector<RowArray> SweepDatabase::arrays(const std::string& key) const {
  SqliteStatement statement = connection_->database.prepare(arrays_of_key);
  return read_arrays(connection_->database, statement, key);
}

std::vector<RowColumn> SweepDatabase::columns() const { return run_columns(connection_->header); }

std::map<std::string, std::vector<std::vector<std::int64_t>>> SweepDatabase::array_shapes() const {
  const Sqlite& database = connection_->database;
  std::map<std::string, std::vector<std::vector<std::int64_t>>> shapes;
  SqliteStatement statement =
      database.prepare("SELECT DISTINCT name, shape FROM arrays ORDER BY name, shape");
  while (statement.step())
    shapes[statement.text(0)].push_back(parse_shape(statement.text(1), statement.text(0), database.name()));
  return shapes;
}

void SweepDatabase::for_each_row(const std::function<void(const RunRow&)>& visit, Arrays arrays) const {
  const Sqlite& database = connection_->database;
  const SweepHeader& header = connection_->header;
  const std::vector<RowColumn> columns = run_columns(header);
  SqliteStatement statement =
      database.prepare(fmt::format("SELECT {} FROM runs ORDER BY run, key", column_list(columns)));
  SqliteStatement array_statement = database.prepare(arrays_of_key);
  RunRow row;
  while (statement.step()) {
    int at = 0;
    const auto next = [&] {
      return read_cell(statement, at, columns[static_cast<std::size_t>(at)], database.name());
    };
    const auto take = [&](auto& target) {
      const Cell cell = next();
      ++at;
      using Target = std::decay_t<decltype(target)>;
      const auto* value = std::get_if<Target>(&cell);
      if constexpr (std::is_same_v<Target, double>)
        target = value ? *value : std::numeric_limits<double>::quiet_NaN();
      else
        target = value ? *value : Target();
    };
    const auto take_cells = [&](std::vector<Cell>& cells, std::size_t count) {
      cells.clear();
      for (; cells.size() < count; ++at) cells.push_back(next());
    };
    take(row.key);
    take(row.run);
    take_cells(row.settings, header.settings.size());
    for (std::string* text : {&row.config, &row.status, &row.reason}) take(*text);
    take_cells(row.metrics, header.metrics.size());
    take(row.seconds);
    for (std::string* text : {&row.engine, &row.isa, &row.version, &row.commit, &row.finished}) take(*text);
    if (arrays == Arrays::load) row.arrays = read_arrays(database, array_statement, row.key);
    visit(row);
  }
}

void SweepDatabase::for_each_run(std::span<const std::string> names,
                                 const std::function<void(std::span<const Cell>)>& visit) const {
  const Sqlite& database = connection_->database;
  const std::vector<RowColumn> all = run_columns(connection_->header);
  std::vector<RowColumn> columns;
  for (const std::string& name : names) {
    const auto found =
        std::find_if(all.begin(), all.end(), [&](const RowColumn& c) { return c.name == name; });
    if (found == all.end()) {
      std::vector<std::string_view> known;
      for (const auto& column : all) known.push_back(column.name);
      throw bad_input(fmt::format("there is no column \"{}\"{}", name, did_you_mean(name, known)));
    }
    columns.push_back(*found);
  }
  SqliteStatement statement = database.prepare(
      fmt::format("SELECT {} FROM runs ORDER BY run, key", columns.empty() ? "NULL" : column_list(columns)));
  std::vector<Cell> cells(columns.size());
  while (statement.step()) {
    for (std::size_t i = 0; i < columns.size(); ++i)
      cells[i] = read_cell(statement, static_cast<int>(i), columns[i], database.name());
    visit(cells);
  }
}

void SweepDatabase::for_each_array(const std::string& name,
                                   const std::function<void(const std::optional<RowArray>&)>& visit) const {
  const Sqlite& database = connection_->database;
  SqliteStatement statement = database.prepare(
      "SELECT shape, data FROM runs LEFT JOIN arrays ON arrays.key = runs.key AND arrays.name = ? "
      "ORDER BY runs.run, runs.key");
  statement.bind(1, name);
  while (statement.step()) {
    if (statement.type(0) == SQLITE_NULL)
      visit(std::nullopt);
    else
      visit(read_array(statement, name, 0, database.name()));
  }
}

SweepDatabase::Snapshot::Snapshot(const SweepDatabase& database) : database_(database) {
  const Sqlite& sqlite = database.connection_->database;
  sqlite.execute("BEGIN");
  sqlite.query_integer("SELECT count(*) FROM meta");  // the moment is that of the first read
}

SweepDatabase::Snapshot::~Snapshot() {
  sqlite3_exec(database_.connection_->database.get(), "ROLLBACK", nullptr, nullptr, nullptr);
}

std::string SweepDatabase::integrity() const try {
  std::string problems;
  SqliteStatement statement = connection_->database.prepare("PRAGMA integrity_check(10)");
  while (statement.step()) problems += (problems.empty() ? "" : "; ") + one_line(statement.text(0));
  return problems == "ok" ? std::string() : problems;
} catch (const Error& error) {
  if (error.kind() == ErrorKind::environment) throw;
  return error.what();
}

}  // namespace attmirror
