// Rows of a .tsv file, and which of their ends holds the label.
//
// A text may hold tabs itself. So the label is what stands before the first tab, or what stands after the last one: two
// candidates, whatever the number of tabs. One pass keeps, for each, the first line at which it is not a label.
#include "data/messages.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/deep/text_set.hpp>

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

namespace attmirror {
namespace {

constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";

struct Line {
  std::string_view text;
  std::size_t number = 0;  // from 1
};

// Refuses NUL bytes: what has them is UTF-16, or no text.
std::vector<Line> lines_of(std::string_view content, std::string_view name) {
  if (content.starts_with(byte_order_mark)) content.remove_prefix(byte_order_mark.size());
  std::vector<Line> lines;
  while (!content.empty()) {
    const std::size_t end = std::min(content.find('\n'), content.size());
    Line line{content.substr(0, end), lines.size() + 1};
    if (line.text.ends_with('\r')) line.text.remove_suffix(1);
    if (line.text.find('\0') != std::string_view::npos)
      throw bad_input(fmt::format("{}, line {} has a NUL byte: expected text in UTF-8", name, line.number));
    lines.push_back(line);
    content.remove_prefix(std::min(end + 1, content.size()));
  }
  return lines;
}

std::optional<std::int32_t> label_of(std::string_view field) {
  if (field == "0") return 0;
  if (field == "1") return 1;
  return std::nullopt;
}

struct Row {
  std::string_view label, text;
};

Row split(std::string_view line, TextColumns columns) {
  if (columns == TextColumns::label_text) {
    const std::size_t tab = line.find('\t');
    return {line.substr(0, tab), line.substr(tab + 1)};
  }
  const std::size_t tab = line.rfind('\t');
  return {line.substr(tab + 1), line.substr(0, tab)};
}

constexpr std::string_view words[] = {"auto", "label,text", "text,label"};

TextColumns find_columns(const std::vector<Line>& lines, std::string_view name) {
  const auto first_wrong = [&](TextColumns columns) {
    return std::find_if(lines.begin(), lines.end(),
                        [&](const Line& line) { return !label_of(split(line.text, columns).label); });
  };
  const auto first = first_wrong(TextColumns::label_text), last = first_wrong(TextColumns::text_label);
  if (first == lines.end() && last == lines.end())
    throw bad_input(
        fmt::format("{}, line 1 to {}: both columns are 0 or 1 in every row; say with the columns {} or {} "
                    "which are the labels",
                    name, lines.back().number, words[1], words[2]));
  if (first == lines.end()) return TextColumns::label_text;
  if (last == lines.end()) return TextColumns::text_label;
  // The column that looked like labels for longer is the one that was meant.
  const bool meant_first = first > last;
  const Line& wrong = meant_first ? *first : *last;
  const Row row = split(wrong.text, meant_first ? TextColumns::label_text : TextColumns::text_label);
  throw bad_input(fmt::format("{}, line {}: the {} column is {}: expected a label, 0 or 1", name,
                              wrong.number, meant_first ? "first" : "last", in_quotes(row.label)));
}

}  // namespace

std::string_view to_string(TextColumns columns) { return words[static_cast<std::size_t>(columns)]; }

TextColumns parse_text_columns(std::string_view word) {
  for (const TextColumns columns : {TextColumns::found, TextColumns::label_text, TextColumns::text_label})
    if (to_string(columns) == word) return columns;
  throw bad_input(
      fmt::format("columns is {}: expected {}, {} or {}", in_quotes(word), words[0], words[1], words[2]));
}

TextSet parse_text_set(std::string_view content, std::string_view name, const TextSetOptions& options) {
  std::vector<Line> lines = lines_of(content, name);
  for (const Line& line : lines)
    if (line.text.find('\t') == std::string_view::npos)
      throw bad_input(fmt::format("{}, line {} has no tab: expected a label and a text", name, line.number));
  if (!lines.empty() && (split(lines.front().text, TextColumns::label_text).label == "label" ||
                         split(lines.front().text, TextColumns::text_label).label == "label"))
    lines.erase(lines.begin());
  if (lines.empty()) throw bad_input(fmt::format("{} has no rows: expected a label and a text a line", name));

  const TextColumns columns =
      options.columns == TextColumns::found ? find_columns(lines, name) : options.columns;
  TextSet set;
  set.texts.reserve(lines.size());
  set.labels.reserve(lines.size());
  for (const Line& line : lines) {
    const Row row = split(line.text, columns);
    const std::optional<std::int32_t> label = label_of(row.label);
    if (!label)
      throw bad_input(fmt::format("{}, line {}: the label is {}: expected 0 or 1", name, line.number,
                                  in_quotes(row.label)));
    set.labels.push_back(*label);
    set.texts.emplace_back(row.text);
  }
  return set;
}

std::vector<PivotalSentence> parse_pivotal_sentences(std::string_view content, std::string_view name) {
  const std::vector<Line> lines = lines_of(content, name);
  constexpr std::string_view header = "label\tpivotal\tsentence";
  if (lines.empty() || lines.front().text != header)
    throw bad_input(fmt::format("{}, line 1 is {}: expected label, pivotal and sentence, separated by tabs",
                                name, in_quotes(lines.empty() ? "" : lines.front().text)));
  if (lines.size() == 1) throw bad_input(fmt::format("{} has no rows after its header", name));
  std::vector<PivotalSentence> sentences;
  for (const Line& line : std::vector<Line>(lines.begin() + 1, lines.end())) {
    const std::size_t first = line.text.find('\t'), second = line.text.find('\t', first + 1);
    if (std::count(line.text.begin(), line.text.end(), '\t') != 2)
      throw bad_input(fmt::format("{}, line {} has {} columns: expected label, pivotal and sentence", name,
                                  line.number, 1 + std::count(line.text.begin(), line.text.end(), '\t')));
    const std::optional<std::int32_t> label = label_of(line.text.substr(0, first));
    if (!label)
      throw bad_input(fmt::format("{}, line {}: the label is {}: expected 0 or 1", name, line.number,
                                  in_quotes(line.text.substr(0, first))));
    PivotalSentence sentence{*label, std::string(line.text.substr(first + 1, second - first - 1)),
                             std::string(line.text.substr(second + 1))};
    if (sentence.pivotal.empty() || sentence.sentence.empty())
      throw bad_input(fmt::format("{}, line {}: the {} is empty", name, line.number,
                                  sentence.pivotal.empty() ? "pivotal word" : "sentence"));
    sentences.push_back(std::move(sentence));
  }
  return sentences;
}

}  // namespace attmirror
