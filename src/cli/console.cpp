#include "cli/console.hpp"

#include "base/words.hpp"
#include "cli/screen.hpp"
#include <attmirror/base/error.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

namespace attmirror::cli {

namespace {

void write_out(std::string_view text) {
  errno = 0;
  const std::size_t written = std::fwrite(text.data(), 1, text.size(), stdout);
  if (written != text.size() || std::fflush(stdout) != 0)
    throw environment_error(
        fmt::format("cannot write to standard output: {}", errno == 0 ? "it failed" : std::strerror(errno)));
}

void write_error(std::string_view who, std::string_view text) {
  const std::string line = fmt::format("{} {}\n", who, one_line(text));
  std::fwrite(line.data(), 1, line.size(), stderr);
}

struct Warnings {
  std::vector<std::string> texts;
  bool silent = false;
};

// Of this command, from its first data set to its answer.
Warnings& warnings() {
  static Warnings all;
  return all;
}

}  // namespace

void print(std::string_view text) {
  const std::string shown = printable(text, Breaks::keep);
  write_out(takes_color(STDOUT_FILENO) ? colored(shown) : shown);
}

void print_json(const Json& object) {
  Json answer = object;
  if (!warnings().texts.empty()) answer["warnings"] = warnings().texts;
  print_json_text(dump(answer) + "\n");
}
void print_json_text(std::string_view text) { write_out(printable(text, Breaks::keep, Escapes::json)); }

void note(std::string_view text) { write_error("attmirror:", text); }

void note_error(std::string_view text) {
  write_error(takes_color(STDERR_FILENO) ? as_error("attmirror:") : "attmirror:", text);
}

void warn(std::string_view text) {
  Warnings& all = warnings();
  if (std::ranges::find(all.texts, text) != all.texts.end()) return;
  all.texts.emplace_back(text);
  if (!all.silent) note(fmt::format("warning: {}", text));
}

void silence_warnings() { warnings().silent = true; }

std::string short_list(const std::vector<std::int64_t>& values) {
  constexpr std::size_t longest = 20;
  if (values.size() <= longest) return fmt::format("({})", fmt::join(values, ", "));
  return fmt::format("({}, ... {} more)", fmt::join(values.begin(), values.begin() + longest, ", "),
                     values.size() - longest);
}

}  // namespace attmirror::cli
