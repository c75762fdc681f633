// A table as plain data: the code that measures fills it in, the code that shows it (terminal, HTML) lays it out.
//
// Cells are text. How many digits a number deserves is known where it is measured, not where it is printed.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace attmirror {

// The side of a column that its cells keep to.
enum class Align { left, right };

// The head of a column, and how its cells are aligned.
struct Column {
  std::string name;
  Align align = Align::right;  // most cells are numbers
};

// A table of texts, for the terminal, CSV, LaTeX and pages.
struct Table {
  std::string title = {};  // may be empty
  std::vector<Column> columns = {};
  std::vector<std::vector<std::string>> rows = {};

  // Throws Error (bad input) unless there is a column and every row has a cell for each.
  void validate() const;
};

// For a terminal: the title, the names, a rule and the rows, with columns two spaces apart, no trailing
// blanks, and a line feed after each line. Line feeds and tabs within a cell become spaces.
std::string to_text(const Table& table);

// GitHub's flavor; the title, if any, in bold above it. Bars within a cell are escaped.
std::string to_markdown(const Table& table);

// The number of terminal columns that UTF-8 text takes: one for letters such as ‖ and ℓ, none for combining
// marks, two for East Asian wide letters and emoji. A byte that is not UTF-8 counts as one.
std::size_t display_width(std::string_view text);

}  // namespace attmirror
