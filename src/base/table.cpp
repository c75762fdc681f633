#include "base/table_fold.hpp"
#include "base/utf8.hpp"
#include "base/words.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/base/table.hpp>

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace attmirror {
namespace {

struct Range {
  char32_t first, last;
};

// Enough of Unicode's tables for what appears in reports; wcwidth() would depend on the user's locale.
constexpr std::array<Range, 8> no_columns{{{0x0300, 0x036F},  // combining accents
                                           {0x0483, 0x0489},
                                           {0x1AB0, 0x1AFF},
                                           {0x1DC0, 0x1DFF},
                                           {0x200B, 0x200F},  // zero-width space and joiners
                                           {0x20D0, 0x20FF},  // combining marks for symbols
                                           {0xFE00, 0xFE0F},  // variation selectors
                                           {0xFE20, 0xFE2F}}};
constexpr std::array<Range, 9> two_columns{{{0x1100, 0x115F},  // Hangul
                                            {0x2E80, 0x303E},  // CJK
                                            {0x3041, 0xA4CF},
                                            {0xAC00, 0xD7A3},
                                            {0xF900, 0xFAFF},
                                            {0xFE30, 0xFE6F},
                                            {0xFF00, 0xFF60},    // full-width forms
                                            {0x1F300, 0x1FAFF},  // pictographs
                                            {0x20000, 0x3FFFD}}};

std::size_t width(char32_t code) {
  const auto holds = [code](Range range) { return range.first <= code && code <= range.last; };
  if (std::any_of(no_columns.begin(), no_columns.end(), holds)) return 0;
  return std::any_of(two_columns.begin(), two_columns.end(), holds) ? 2 : 1;
}

// A cell is one line, and shows what it holds: escapes are laid out as wide as they are printed.
std::string on_one_line(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c == '\n' || c == '\r' || c == '\t'; }, ' ');
  return one_line(text);
}

std::string escape_markdown(const std::string& text) {
  std::string escaped;
  for (const char c : on_one_line(text)) {
    if (c == '|') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

std::string aligned(const std::string& cell, std::size_t columns, Align align) {
  const std::string blanks(columns - display_width(cell), ' ');
  return align == Align::left ? cell + blanks : blanks + cell;
}

std::string without_trailing_blanks(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

}  // namespace

std::size_t display_width(std::string_view text) {
  std::size_t columns = 0;
  while (!text.empty()) {
    const Letter letter = first_letter(text);
    columns += width(letter.code);
    text.remove_prefix(letter.bytes);
  }
  return columns;
}

void Table::validate() const {
  if (columns.empty()) throw bad_input(fmt::format("table '{}' has no columns: expected 1 or more", title));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].size() != columns.size()) {
      throw bad_input(fmt::format("rows[{}] of table '{}' has {} cells: expected {}, one per column", i,
                                  title, rows[i].size(), columns.size()));
    }
  }
}

std::string to_text(const Table& table) {
  table.validate();
  // The names are laid out like a first row.
  std::vector<std::vector<std::string>> lines(1);
  for (const Column& column : table.columns) lines[0].push_back(on_one_line(column.name));
  for (const auto& row : table.rows) {
    std::transform(row.begin(), row.end(), std::back_inserter(lines.emplace_back()), on_one_line);
  }
  std::vector<std::size_t> widths(table.columns.size(), 0);
  for (const auto& line : lines) {
    for (std::size_t c = 0; c < line.size(); ++c) widths[c] = std::max(widths[c], display_width(line[c]));
  }

  std::string text = table.title.empty() ? "" : on_one_line(table.title) + "\n";
  for (std::size_t i = 0; i < lines.size(); ++i) {
    std::string laid_out;
    for (std::size_t c = 0; c < widths.size(); ++c) {
      if (c > 0) laid_out += "  ";
      laid_out += aligned(lines[i][c], widths[c], table.columns[c].align);
    }
    text += without_trailing_blanks(laid_out) + "\n";
    if (i > 0) continue;
    for (std::size_t c = 0; c < widths.size(); ++c) text += (c > 0 ? "  " : "") + std::string(widths[c], '-');
    text += "\n";
  }
  return text;
}

std::string to_text(const Table& table, const Fold& fold) {
  table.validate();
  const std::size_t kept = std::min(fold.kept, table.columns.size());
  std::vector<std::size_t> widths;
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    widths.push_back(display_width(on_one_line(table.columns[c].name)));
    for (const auto& row : table.rows) widths[c] = std::max(widths[c], display_width(on_one_line(row[c])));
  }
  std::size_t kept_width = 0;
  for (std::size_t c = 0; c < kept; ++c) kept_width += widths[c] + 2;
  std::string text;
  for (std::size_t begin = kept; begin < table.columns.size() || text.empty();) {
    std::size_t end = begin, line = kept_width;
    while (end < table.columns.size() && (end == begin || line + widths[end] <= fold.width))
      line += widths[end++] + 2;
    const auto part_of = [&](const auto& all) {
      auto part = all;
      part.erase(part.begin() + static_cast<std::ptrdiff_t>(end), part.end());
      part.erase(part.begin() + static_cast<std::ptrdiff_t>(kept),
                 part.begin() + static_cast<std::ptrdiff_t>(begin));
      return part;
    };
    Table part;
    if (text.empty()) part.title = table.title;
    part.columns = part_of(table.columns);
    for (const auto& row : table.rows) part.rows.push_back(part_of(row));
    if (!text.empty()) text += '\n';
    text += to_text(part);
    begin = end;
  }
  return text;
}

std::string to_markdown(const Table& table) {
  table.validate();
  std::string text = table.title.empty() ? "" : "**" + on_one_line(table.title) + "**\n\n";
  for (const Column& column : table.columns) text += "| " + escape_markdown(column.name) + " ";
  text += "|\n";
  for (const Column& column : table.columns) text += column.align == Align::left ? "| :--- " : "| ---: ";
  text += "|\n";
  for (const auto& row : table.rows) {
    for (const std::string& cell : row) text += "| " + escape_markdown(cell) + " ";
    text += "|\n";
  }
  return text;
}

}  // namespace attmirror
