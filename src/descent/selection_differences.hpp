// Where two selections pick different tokens, as results and answers of the command list it. Internal.
#pragma once

#include "base/json.hpp"
#include <attmirror/data/selection.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace attmirror {

struct SelectionDifference {
  std::size_t position = 0;  // in both selections
  std::int64_t first = 0, second = 0;
};

// Of selections of the same queries; none where one of them is empty.
inline std::vector<SelectionDifference> selection_differences(const Selection& first,
                                                              const Selection& second) {
  std::vector<SelectionDifference> result;
  if (first.tokens.size() != second.tokens.size()) return result;
  for (std::size_t j = 0; j < first.tokens.size(); ++j)
    if (first.tokens[j] != second.tokens[j]) result.push_back({j, first.tokens[j], second.tokens[j]});
  return result;
}

// "sequence 16"; "sequence 16, query 2" where there are `queries_each` of them; "query 16", counted over all
// sequences, where these have different numbers of queries (0).
inline std::string place_text(std::size_t position, std::int64_t queries_each) {
  const auto each = static_cast<std::size_t>(queries_each);
  if (each == 0) return fmt::format("query {}", position);
  if (each == 1) return fmt::format("sequence {}", position);
  return fmt::format("sequence {}, query {}", position / each, position % each);
}

// The same as members of an object.
inline Json place_json(std::size_t position, std::int64_t queries_each) {
  const auto each = static_cast<std::size_t>(queries_each);
  if (each == 0) return {{"query", position}};
  return {{"sequence", position / each}, {"query", position % each}};
}

// [{"sequence": 16, "query": 0, "selected": 9, "optimal": 0}, ...]
inline Json differences_json(const std::vector<SelectionDifference>& differences, std::int64_t queries_each,
                             const char* first, const char* second) {
  Json result = Json::array();
  for (const SelectionDifference& one : differences) {
    Json entry = place_json(one.position, queries_each);
    entry[first] = one.first;
    entry[second] = one.second;
    result.push_back(std::move(entry));
  }
  return result;
}

// A line for each of the first ten, then "and 12 more". `line` gets the difference.
template <class Line>
std::string difference_lines(const std::vector<SelectionDifference>& differences, Line line) {
  constexpr std::size_t most = 10;
  std::string text;
  for (std::size_t i = 0; i < differences.size() && i < most; ++i)
    text += fmt::format("  {}\n", line(differences[i]));
  if (differences.size() > most) text += fmt::format("  and {} more\n", differences.size() - most);
  return text;
}

}  // namespace attmirror
