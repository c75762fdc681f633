#include "sweep/database_schema.hpp"

#include "base/json.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>

namespace attmirror {
namespace {

constexpr std::string_view format_name = "attmirror sweep";

std::string lowered(std::string_view name) {
  std::string result(name);
  for (char& c : result)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return result;
}

std::string_view to_string(CellType type) {
  switch (type) {
    case CellType::integer:
      return "integer";
    case CellType::real:
      return "real";
    case CellType::text:
      return "text";
  }
  return "unknown";
}

Error damaged(const Sqlite& database, std::string_view what) {
  return bad_input(fmt::format("{} is damaged: {}", database.name(), what));
}

Json to_json(const std::vector<RowColumn>& columns) {
  Json json = Json::array();
  for (const auto& column : columns)
    json.push_back({{"name", column.name}, {"type", std::string(to_string(column.type))}});
  return json;
}

std::vector<RowColumn> columns_of(const Json& json) {
  std::vector<RowColumn> columns;
  for (const Json& item : json) {
    const auto type = item.at("type").get<std::string>();
    if (type != "integer" && type != "real" && type != "text") throw bad_input("unknown type of a column");
    columns.push_back({item.at("name").get<std::string>(), type == "integer" ? CellType::integer
                                                           : type == "real"  ? CellType::real
                                                                             : CellType::text});
  }
  return columns;
}

}  // namespace

std::vector<RowColumn> run_columns(const SweepHeader& header) {
  std::vector<RowColumn> columns{{"key", CellType::text}, {"run", CellType::integer}};
  columns.insert(columns.end(), header.settings.begin(), header.settings.end());
  for (const char* name : {"config", "status", "reason"}) columns.push_back({name, CellType::text});
  columns.insert(columns.end(), header.metrics.begin(), header.metrics.end());
  columns.push_back({"seconds", CellType::real});
  for (const char* name : {"engine", "isa", "version", "commit", "finished"})
    columns.push_back({name, CellType::text});
  return columns;
}

std::string column_list(const std::vector<RowColumn>& columns) {
  std::string list;
  for (const auto& column : columns) list += (list.empty() ? "" : ", ") + sql_name(column.name);
  return list;
}

void make_tables(const Sqlite& database, const SweepHeader& header) {
  const std::vector<RowColumn> columns = run_columns(header);
  const int most = std::min(sqlite3_limit(database.get(), SQLITE_LIMIT_COLUMN, -1),
                            sqlite3_limit(database.get(), SQLITE_LIMIT_VARIABLE_NUMBER, -1));
  if (columns.size() > static_cast<std::size_t>(most))
    throw bad_input(
        fmt::format("{}: the sweep has {} columns ({} settings, {} metrics): SQLite holds at most {}",
                    database.name(), columns.size(), header.settings.size(), header.metrics.size(), most));
  std::string definitions;
  for (const auto& column : columns) {
    definitions += (definitions.empty() ? "" : ", ") + sql_name(column.name);
    if (column.type == CellType::integer) definitions += " INTEGER";
    if (column.type == CellType::text) definitions += " TEXT";
    if (column.name == "key") definitions += " NOT NULL PRIMARY KEY";
    if (column.name == "run") definitions += " NOT NULL";
  }
  database.execute("CREATE TABLE runs (" + definitions + ")");
  // Readers go by run; without an index SQLite would sort all rows first.
  database.execute("CREATE INDEX runs_in_order ON runs (run, key)");
  database.execute(
      "CREATE TABLE arrays (key TEXT NOT NULL, name TEXT NOT NULL, shape TEXT NOT NULL, data BLOB NOT NULL, "
      "PRIMARY KEY (key, name))");
  database.execute("CREATE TABLE meta (name TEXT NOT NULL PRIMARY KEY, value)");
  database.execute(fmt::format("INSERT INTO meta VALUES ('format', '{}'), ('format_version', {})",
                               format_name, sweep_format_version));
  store_header(database, header);
  database.execute(fmt::format("PRAGMA application_id = {}", sweep_application_id));
  database.execute(fmt::format("PRAGMA user_version = {}", sweep_format_version));
}

void drop_tables(const Sqlite& database) {
  for (const char* table : {"runs", "arrays", "meta"})
    database.execute(fmt::format("DROP TABLE IF EXISTS {}", table));
}

void store_header(const Sqlite& database, const SweepHeader& header) {
  const std::string text = dump(Json{{"name", header.name},
                                     {"description", header.description},
                                     {"file", header.file_text},
                                     {"record", header.record_text},
                                     {"axes", header.axes},
                                     {"settings", to_json(header.settings)},
                                     {"metrics", to_json(header.metrics)}});
  SqliteStatement insert = database.prepare("INSERT OR REPLACE INTO meta VALUES ('header', ?)");
  insert.bind(1, text);
  insert.run();
}

SweepHeader load_header(const Sqlite& database) {
  const auto foreign = [&] {
    return bad_input(
        fmt::format("{} is not a database of an attmirror sweep: it is an SQLite database of another program",
                    database.name()));
  };
  // One whose tables were never finished is rolled back by SQLite to nothing.
  if (database.query_integer("PRAGMA page_count") == 0)
    throw bad_input(fmt::format("{} is empty: expected the results of a sweep", database.name()));
  if (database.query_integer("PRAGMA application_id") != sweep_application_id) throw foreign();
  const std::int64_t version = database.query_integer("PRAGMA user_version");
  if (version > sweep_format_version)
    throw bad_input(fmt::format("{} has format version {}: this attmirror reads up to {}", database.name(),
                                version, sweep_format_version));
  if (version < 1) throw damaged(database, fmt::format("its format version is {}", version));

  SweepHeader header;
  try {
    const Json json = Json::parse(database.query_text("SELECT value FROM meta WHERE name = 'header'"));
    header.name = json.at("name").get<std::string>();
    header.description = json.at("description").get<std::string>();
    header.file_text = json.at("file").get<std::string>();
    header.record_text = json.at("record").get<std::string>();
    header.axes = json.at("axes").get<std::vector<std::string>>();
    header.settings = columns_of(json.at("settings"));
    header.metrics = columns_of(json.at("metrics"));
    header.validate();
  } catch (const nlohmann::json::exception&) {
    throw damaged(database, "its header is not the JSON of a sweep");
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::environment) throw;
    const std::string_view what = error.what();
    throw what.starts_with(database.name()) ? error
                                            : damaged(database, fmt::format("its header says: {}", what));
  }

  // Statements name columns; that they are there is known from here on.
  std::vector<std::string> found;
  SqliteStatement info = database.prepare("SELECT name FROM pragma_table_info('runs') ORDER BY cid");
  while (info.step()) found.push_back(info.text(0));
  const std::vector<RowColumn> expected = run_columns(header);
  if (!std::equal(found.begin(), found.end(), expected.begin(), expected.end(),
                  [](const std::string& name, const RowColumn& column) { return name == column.name; }))
    throw damaged(database, "the columns of table runs are not those that its header names");
  return header;
}

namespace {

// The first field of two JSON objects that differs, or the whole of what is no object.
std::string first_difference(const std::string& there, const std::string& here) {
  const Json old_json = Json::parse(there, nullptr, false), new_json = Json::parse(here, nullptr, false);
  if (old_json.is_object() && new_json.is_object()) {
    for (const auto& [name, value] : old_json.items())
      if (!new_json.contains(name) || new_json.at(name) != value)
        return fmt::format("{} is {} there, {} here", name, value.dump(),
                           new_json.contains(name) ? new_json.at(name).dump() : "missing");
    for (const auto& [name, value] : new_json.items())
      if (!old_json.contains(name)) return fmt::format("{} is missing there, {} here", name, value.dump());
  }
  return fmt::format("it records \"{}\", here it is \"{}\"", there, here);
}

}  // namespace

void require_same_sweep(const SweepHeader& stored, const SweepHeader& wanted, const std::string& name) {
  // What is recorded decides the metrics as well, and is what a user has changed.
  if (stored.record_text != wanted.record_text)
    throw bad_input(fmt::format("{} holds another sweep: in its [record] {}", name,
                                first_difference(stored.record_text, wanted.record_text)));
  const auto compare = [&](const char* what, const std::vector<RowColumn>& there,
                           const std::vector<RowColumn>& here) {
    const auto lacks = [&](const std::vector<RowColumn>& columns, const std::vector<RowColumn>& other,
                           const char* where) {
      for (const RowColumn& column : columns)
        if (std::ranges::find(other, column) == other.end())
          throw bad_input(fmt::format("{} holds another sweep: the {} \"{}\" ({}) is only {}", name, what,
                                      column.name, to_string(column.type), where));
    };
    lacks(there, here, "there");
    lacks(here, there, "here");
    if (there != here)
      throw bad_input(fmt::format("{} holds another sweep: its {}s have another order", name, what));
  };
  compare("setting", stored.settings, wanted.settings);
  compare("metric", stored.metrics, wanted.metrics);
}

void SweepHeader::validate() const {
  std::map<std::string, std::string> names;
  for (const auto& column : run_columns(*this)) {
    if (column.name.empty()) throw bad_input("a setting or metric has no name");
    if (column.name.find('\0') != std::string::npos)
      throw bad_input("the name of a setting or metric has a NUL byte");
    const auto [other, is_new] = names.emplace(lowered(column.name), column.name);
    if (!is_new)
      throw bad_input(fmt::format(
          "the columns \"{}\" and \"{}\" have one name: SQL does not tell capitals from small letters",
          other->second, column.name));
  }
}

}  // namespace attmirror
