// Rows of an invented sweep, as the tests of the database write and expect them.
#pragma once

#include <attmirror/sweep/database.hpp>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace attmirror::test {

inline SweepHeader example_header() {
  SweepHeader header;
  header.name = "p against seeds";
  header.description = "a \"quoted\" description, ℓp";
  header.file_text = "[grid]\nseed = \"1:100\"\np = [1.75, 2]\n";
  header.record_text = "final";
  header.settings = {{"seed", CellType::integer}, {"p", CellType::real}, {"optimizer", CellType::text}};
  header.metrics = {{"loss", CellType::real}, {"selected", CellType::text}, {"rank", CellType::integer}};
  header.axes = {"seed", "p"};
  return header;
}

inline std::string key_of(std::int64_t run) {
  return fmt::format("{:016x}", 0x9e3779b97f4a7c15u * (static_cast<std::uint64_t>(run) + 1));
}

inline RunRow example_row(std::int64_t run) {
  RunRow row;
  row.key = key_of(run);
  row.run = run;
  row.settings = {run / 2 + 1, run % 2 == 0 ? 1.75 : 2.0, std::string("md")};
  row.config = fmt::format("{{\"seed\": {}}}", run);
  row.status = "ok";
  row.metrics = {1.0 / static_cast<double>(run + 1), std::string("0,1,2"), std::int64_t{3}};
  const auto x = static_cast<double>(run);
  row.arrays = {
      {"step", {3}, {0, 10, 100}}, {"loss", {3}, {x, x / 2, x / 4}}, {"W", {2, 2}, {x, 1, 2, -0.0}}};
  row.seconds = 0.25;
  row.engine = "lanes:8";
  row.isa = "avx2";
  row.version = "0.1.0";
  row.commit = "abc";
  row.finished = "2026-01-31T12:34:56Z";
  return row;
}

inline std::vector<RunRow> example_rows(std::int64_t begin, std::int64_t end) {
  std::vector<RunRow> rows;
  for (std::int64_t run = begin; run < end; ++run) rows.push_back(example_row(run));
  return rows;
}

}  // namespace attmirror::test
