#include "papers/global_grid_record.hpp"

#include "base/csv.hpp"
#include <attmirror/base/error.hpp>

#include <array>
#include <charconv>
#include <map>
#include <span>
#include <string>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace attmirror {

namespace {

const std::vector<std::string> grid_columns{"params",    "samples", "tokens", "dim",       "runs",
                                            "saturated", "global",  "local",  "certified", "infeasible"};

// params and the nine numbers of a row.
struct GridLine {
  bool factored = false;
  std::array<std::int64_t, 9> numbers{};
};

GridLine parse_grid_row(const CsvRow& row) {
  const auto wrong = [&] {
    return bad_input(fmt::format("line {} is \"{}\": expected W or KQ and nine whole numbers", row.line,
                                 fmt::join(row.cells, ",")));
  };
  GridLine result;
  if (row.cells[0] != "W" && row.cells[0] != "KQ") throw wrong();
  result.factored = row.cells[0] == "KQ";
  for (std::size_t k = 0; k < result.numbers.size(); ++k) {
    const std::string& cell = row.cells[k + 1];
    const char* const end = cell.data() + cell.size();
    const auto [next, error] = std::from_chars(cell.data(), end, result.numbers[k]);
    if (error != std::errc() || next != end || result.numbers[k] < 0) throw wrong();
  }
  return result;
}

}  // namespace

std::vector<GridCell> parse_global_grid(std::string_view csv) {
  std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t>, GridCell> cells;
  const std::vector<CsvRow> rows = parse_csv(csv, "the grid's record");
  if (rows.empty() || rows.front().cells != grid_columns)
    throw bad_input(fmt::format("line 1 is \"{}\": expected \"{}\"",
                                rows.empty() ? "" : fmt::format("{}", fmt::join(rows.front().cells, ",")),
                                fmt::join(grid_columns, ",")));
  for (const CsvRow& row : std::span(rows).subspan(1)) {
    const GridLine read = parse_grid_row(row);
    const auto [n, T, d, runs, saturated, global, local, certified, infeasible] = read.numbers;
    if (global + local > saturated || saturated > runs || certified + infeasible > runs)
      throw bad_input(fmt::format("line {} is \"{}\": expected parts that are no larger than the whole",
                                  row.line, fmt::join(row.cells, ",")));
    GridCell& cell = cells[{n, T, d}];
    cell.n = n;
    cell.T = T;
    cell.d = d;
    (read.factored ? cell.KQ : cell.W) = {runs, saturated, global, local, certified};
  }
  std::vector<GridCell> result;
  for (const auto& [place, cell] : cells) {
    if (cell.W.runs == 0 || cell.KQ.runs == 0)
      throw bad_input(fmt::format("n = {}, T = {}, d = {} has no runs of {}: expected W and KQ", cell.n,
                                  cell.T, cell.d, cell.W.runs == 0 ? "W" : "KQ"));
    result.push_back(cell);
  }
  return result;
}

}  // namespace attmirror
