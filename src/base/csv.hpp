// Comma-separated values, as RFC 4180 has them. Internal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace attmirror {

// One cell. In quotes if it holds a comma, a quote or a line end, or a blank at either end, which only quotes save from
// all readers.
void append_csv_cell(std::string& line, std::string_view text);

// A row of a file, with the line it begins on, from 1.
struct CsvRow {
  std::size_t line = 0;
  std::vector<std::string> cells;
};

// All rows of a text, the names of the columns first. Rows end in LF or CRLF, the last one perhaps in nothing; a text
// without a letter has no rows. Throws Error (bad input), naming `name` and the line, for a row with more or fewer
// cells than the first one and for quotes that do not fit.
std::vector<CsvRow> parse_csv(std::string_view text, std::string_view name);

}  // namespace attmirror
