// What a sweep keeps about one run: a row of named cells and a few arrays. Plain data, made by the code that
// measures, written by the database, sent between processes.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace attmirror {

// A cell of the table; empty if a value does not exist (the margin of a run that diverged). A NaN is empty, too.
using Cell = std::variant<std::monostate, std::int64_t, double, std::string>;

// The type of a column.
enum class CellType { integer, real, text };

// The name and the type of a column.
struct RowColumn {
  std::string name;
  CellType type = CellType::real;

  friend bool operator==(const RowColumn&, const RowColumn&) = default;
};

// A curve over the run, or weights.
struct RowArray {
  std::string name;
  std::vector<std::int64_t> shape;
  std::vector<double> values;  // row by row

  friend bool operator==(const RowArray&, const RowArray&) = default;
};

// The results of one run.
struct RunRow {
  std::string key;             // of the run's configuration, 16 hexadecimal digits: unique in a database
  std::int64_t run = 0;        // its number in the sweep, from 0
  std::vector<Cell> settings;  // what was asked, one per setting column
  std::string config;          // the resolved configuration, as JSON
  std::string
      status;  // "ok", or what went wrong: "diverged", "unsaturated", "infeasible", "stopped", "error"
  std::string reason;         // one sentence; empty for "ok"
  std::vector<Cell> metrics;  // one per metric column
  std::vector<RowArray> arrays;
  double seconds = 0;  // its share of the time
  std::string engine;  // "lanes:8" or "single"
  std::string isa, version, commit;
  std::string finished;  // when, UTC: "2026-01-31T12:34:56Z"

  friend bool operator==(const RunRow&, const RunRow&) = default;
};

// A row as bytes, and back, to send between processes. parse_rows() throws Error (environment) for bytes that
// are not rows.
std::string to_bytes(const std::vector<RunRow>& rows);
std::vector<RunRow> parse_rows(const std::string& bytes);

}  // namespace attmirror
