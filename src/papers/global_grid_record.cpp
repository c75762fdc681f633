#include "papers/global_grid_record.hpp"

#include <attmirror/base/error.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <tuple>

#include <fmt/format.h>

namespace attmirror {

namespace {

constexpr std::string_view grid_header =
    "params,samples,tokens,dim,runs,saturated,global,local,certified,infeasible";

// params and the nine numbers of a line.
struct GridLine {
  bool factored = false;
  std::array<std::int64_t, 9> numbers{};
};

GridLine parse_grid_line(std::string_view line, std::size_t number) {
  const auto wrong = [&] {
    return bad_input(fmt::format("line {} is \"{}\": expected W or KQ and nine whole numbers", number, line));
  };
  GridLine result;
  const std::size_t comma = line.find(',');
  if (comma == std::string_view::npos) throw wrong();
  const std::string_view params = line.substr(0, comma);
  if (params != "W" && params != "KQ") throw wrong();
  result.factored = params == "KQ";
  const char* at = line.data() + comma;
  const char* const end = line.data() + line.size();
  for (std::int64_t& value : result.numbers) {
    if (at == end || *at != ',') throw wrong();
    const auto [next, error] = std::from_chars(at + 1, end, value);
    if (error != std::errc() || value < 0) throw wrong();
    at = next;
  }
  if (at != end) throw wrong();
  return result;
}

}  // namespace

std::vector<GridCell> parse_global_grid(std::string_view csv) {
  std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t>, GridCell> cells;
  std::size_t number = 0;
  while (!csv.empty()) {
    const std::size_t end = std::min(csv.find('\n'), csv.size());
    const std::string_view line = csv.substr(0, end);
    csv.remove_prefix(std::min(end + 1, csv.size()));
    if (++number == 1) {
      if (line != grid_header)
        throw bad_input(fmt::format("line 1 is \"{}\": expected \"{}\"", line, grid_header));
      continue;
    }
    const GridLine read = parse_grid_line(line, number);
    const auto [n, T, d, runs, saturated, global, local, certified, infeasible] = read.numbers;
    if (global + local > saturated || saturated > runs || certified + infeasible > runs)
      throw bad_input(
          fmt::format("line {} is \"{}\": expected parts that are no larger than the whole", number, line));
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
