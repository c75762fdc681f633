// A table as plain data: whoever measures fills it in, whoever shows it (terminal, Markdown, HTML) lays it out.
//
// Cells are text. How many digits a number deserves is known where it was measured, not where it is printed.
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

// For a terminal: the title, the names, a rule, the rows; columns two spaces apart, no trailing blanks, each
// line ended by a line feed. Line feeds and tabs within a cell become spaces.
std::string to_text(const Table& table);

// GitHub's flavour; the title, if any, in bold above it. Bars within a cell are escaped.
std::string to_markdown(const Table& table);

// Columns of a terminal that UTF-8 text takes: letters such as ‖ and ℓ one, combining marks none, East Asian
// wide letters and emoji two. A byte that is no UTF-8 counts as one.
std::size_t display_width(std::string_view text);

}  // namespace attmirror
