#include "cli/screen.hpp"

#include <attmirror/base/table.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <utility>

#include <sys/ioctl.h>
#include <unistd.h>

namespace attmirror::cli {

namespace {

constexpr std::string_view color_off = "\x1b[0m", bold_on = "\x1b[1m", faint_on = "\x1b[2m",
                           red_on = "\x1b[31m", green_on = "\x1b[32m", yellow_on = "\x1b[33m";

constexpr std::array good_words{"certified", "completed", "converged",  "done",
                                "feasible",  "ok",        "reproduced", "saturated"};
constexpr std::array bad_words{"diverged", "differs", "error", "failed", "infeasible"};
constexpr std::array doubtful_words{"artefact",    "artifact", "inside", "interrupted",
                                    "out_of_time", "stopped",  "unknown"};

std::string_view color_of(std::string_view word) {
  const auto is_in = [word](const auto& words) { return std::ranges::find(words, word) != words.end(); };
  return is_in(good_words)       ? green_on
         : is_in(bad_words)      ? red_on
         : is_in(doubtful_words) ? yellow_on
                                 : std::string_view();
}

std::string painted(std::string_view text, std::string_view color) {
  if (color.empty() || text.empty()) return std::string(text);
  return std::string(color).append(text).append(color_off);
}

// The line of dashes under the names of a table's columns.
bool is_rule(std::string_view line) {
  return line.starts_with("--") && line.find_first_not_of("- ") == std::string_view::npos;
}

// Cells are two blanks apart or more.
std::string colored_cells(std::string_view line) {
  std::string result;
  while (!line.empty()) {
    const std::size_t begin = std::min(line.find_first_not_of(' '), line.size());
    result.append(line, 0, begin);
    line.remove_prefix(begin);
    const std::size_t end = std::min(line.find("  "), line.size());
    result += painted(line.substr(0, end), color_of(line.substr(0, end)));
    line.remove_prefix(end);
  }
  return result;
}

// "status          certified"
std::string colored_status(std::string_view line) {
  constexpr std::string_view name = "status ";
  if (!line.starts_with(name)) return std::string(line);
  const std::size_t begin = std::min(line.find_first_not_of(' ', name.size()), line.size());
  const std::size_t end = std::min(line.find_first_of(" ,;:", begin), line.size());
  return std::string(line.substr(0, begin))
      .append(painted(line.substr(begin, end - begin), color_of(line.substr(begin, end - begin))))
      .append(line.substr(end));
}

bool is_heading(std::string_view line) {
  return line.size() > 1 && line.ends_with(':') && line.front() != ' ' &&
         line.find("  ") == std::string_view::npos;
}

std::string_view variable_text(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? std::string_view() : std::string_view(text);
}

}  // namespace

bool takes_color(int stream) {
  return variable_text("NO_COLOR").empty() && !variable_text("TERM").empty() &&
         variable_text("TERM") != "dumb" && ::isatty(stream) == 1;
}

std::string colored(std::string_view text) {
  std::string result;
  bool in_table = false;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    const std::string_view rest = text.substr(std::min(end + 1, text.size()));
    if (line.empty())
      in_table = false;
    else if (is_rule(line))
      in_table = true;
    if (is_rule(line))
      result += painted(line, faint_on);
    else if (is_rule(rest.substr(0, rest.find('\n'))) || (!in_table && is_heading(line)))
      result += painted(line, bold_on);
    else
      result += in_table ? colored_cells(line) : colored_status(line);
    if (end < text.size()) result += '\n';
    text = rest;
  }
  return result;
}

std::string as_error(std::string_view text) { return painted(text, red_on); }

std::size_t screen_width() {
  const auto usable = [](std::size_t columns) { return columns >= 20 && columns <= 10'000; };
  const std::string_view said = variable_text("COLUMNS");
  std::size_t columns = 0;
  if (std::from_chars(said.data(), said.data() + said.size(), columns).ec == std::errc{} && usable(columns))
    return columns;
  winsize size{};
  if (::isatty(STDOUT_FILENO) == 1 && ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && usable(size.ws_col))
    return size.ws_col;
  return 80;
}

std::string wrapped(std::string_view text, std::string_view indent, std::size_t width) {
  std::string result, line(indent);
  while (!text.empty()) {
    const std::size_t space = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, space);
    if (line.size() > indent.size() && display_width(line) + 1 + display_width(word) > width) {
      result += line + "\n";
      line = indent;
    }
    if (line.size() > indent.size()) line += ' ';
    line += word;
    text.remove_prefix(std::min(space + 1, text.size()));
  }
  return result + line + "\n";
}

}  // namespace attmirror::cli
