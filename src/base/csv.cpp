#include "base/csv.hpp"

#include <attmirror/base/error.hpp>

#include <algorithm>

#include <fmt/format.h>

namespace attmirror {

namespace {

// Reads one cell after another.
class CsvReader {
 public:
  CsvReader(std::string_view text, std::string_view name) : text_(text), name_(name) {}

  bool at_end() const { return at_ == text_.size(); }

  CsvRow row() {
    CsvRow row{.line = line_, .cells = {}};
    do row.cells.push_back(cell());
    while (skip(','));
    skip('\r');
    if (!skip('\n') && !at_end()) fail("a letter after the end of a cell");
    ++line_;
    return row;
  }

 private:
  std::string cell() {
    if (skip('"')) return quoted();
    const std::size_t end = std::min(text_.find_first_of(",\r\n", at_), text_.size());
    std::string cell(text_.substr(at_, end - at_));
    if (cell.find('"') != std::string::npos) fail("a quote inside a cell that does not begin with one");
    at_ = end;
    return cell;
  }

  std::string quoted() {
    std::string cell;
    const std::size_t opened = line_;
    for (;;) {
      if (at_end()) {
        line_ = opened;
        fail("a quote that nothing closes");
      }
      const char letter = text_[at_++];
      if (letter == '\n') ++line_;
      if (letter == '"' && !skip('"')) return cell;  // two of them stand for one
      cell += letter;
    }
  }

  bool skip(char letter) {
    if (at_end() || text_[at_] != letter) return false;
    ++at_;
    return true;
  }

  [[noreturn]] void fail(std::string_view what) const {
    throw bad_input(fmt::format("{} line {} has {}", name_, line_, what));
  }

  std::string_view text_, name_;
  std::size_t at_ = 0, line_ = 1;
};

}  // namespace

void append_csv_cell(std::string& line, std::string_view text) {
  const bool plain = text.find_first_of(",\"\r\n") == std::string_view::npos &&
                     (text.empty() || (text.front() != ' ' && text.back() != ' '));
  if (plain) {
    line += text;
    return;
  }
  line += '"';
  for (const char c : text) {
    if (c == '"') line += '"';
    line += c;
  }
  line += '"';
}

std::vector<CsvRow> parse_csv(std::string_view text, std::string_view name) {
  std::vector<CsvRow> rows;
  for (CsvReader reader(text, name); !reader.at_end();) {
    rows.push_back(reader.row());
    const CsvRow& last = rows.back();
    if (last.cells.size() != rows.front().cells.size())
      throw bad_input(fmt::format("{} line {} has {} cell{}: expected {}, one for each column", name,
                                  last.line, last.cells.size(), last.cells.size() == 1 ? "" : "s",
                                  rows.front().cells.size()));
  }
  return rows;
}

}  // namespace attmirror
