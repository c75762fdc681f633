// Comma-separated values: what is written is read again, and what does not fit is refused by line.
#include "base/csv.hpp"

#include "support/files.hpp"
#include <attmirror/base/error.hpp>

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace attmirror {
namespace {

std::vector<std::vector<std::string>> cells_of(std::string_view text) {
  std::vector<std::vector<std::string>> rows;
  for (const CsvRow& row : parse_csv(text, "a.csv")) rows.push_back(row.cells);
  return rows;
}

using Rows = std::vector<std::vector<std::string>>;

TEST(Csv, RowsEndInLfOrCrlfOrNothing) {
  const Rows expected{{"a", "b"}, {"1", ""}};
  EXPECT_EQ(cells_of("a,b\n1,\n"), expected);
  EXPECT_EQ(cells_of("a,b\r\n1,\r\n"), expected);
  EXPECT_EQ(cells_of("a,b\n1,"), expected);
  EXPECT_EQ(cells_of(""), Rows{});
  EXPECT_EQ(cells_of("a\n\n"), (Rows{{"a"}, {""}}));
}

TEST(Csv, WhatIsWrittenIsRead) {
  const std::vector<std::string> cells{"plain",   "a,b", "\"quoted\"", "two\nlines",
                                       " blank ", "",    "\r\n",       "ℓ"};
  std::string text;
  for (const int row : {0, 1})
    for (std::size_t c = 0; c < cells.size(); ++c) {
      append_csv_cell(text, cells[c]);
      text += c + 1 < cells.size() ? "," : row == 0 ? "\r\n" : "\n";
    }
  EXPECT_EQ(cells_of(text), (Rows{cells, cells}));
  // A row has the line on which it begins.
  const std::vector<CsvRow> rows = parse_csv(text, "a.csv");
  EXPECT_EQ(rows[0].line, 1u);
  EXPECT_EQ(rows[1].line, 4u);
}

TEST(Csv, WhatDoesNotFitIsRefused) {
  const auto refused = [](std::string_view text, std::string_view message) {
    test::expect_bad_input({message}, [&] { parse_csv(text, "a.csv"); });
  };
  refused("a,b\n1\n", "a.csv line 2 has 1 cell: expected 2, one for each column");
  refused("a,b\n1,2\n1,2,3\n", "a.csv line 3 has 3 cells: expected 2, one for each column");
  refused("a\n\"b\n\n", "a.csv line 2 has a quote that nothing closes");
  refused("a\n\"b\"c\n", "a.csv line 2 has a letter after the end of a cell");
  refused("a\nb\rc\n", "a.csv line 2 has a letter after the end of a cell");
  refused("a\nb\"c\n", "a.csv line 2 has a quote inside a cell that does not begin with one");
}

}  // namespace
}  // namespace attmirror
