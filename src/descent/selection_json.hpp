// Selected tokens as JSON, as results and answers of the command hold them. Internal.
#pragma once

#include "base/json.hpp"
#include <attmirror/data/selection.hpp>

#include <cstdint>
#include <vector>

namespace attmirror {

// One index per sequence; a list of K for each where there are K queries; one list over all queries where sequences
// have different numbers of them (queries_each = 0).
inline Json selection_json(const Selection& selection, std::int64_t queries_each) {
  const auto each = static_cast<std::size_t>(queries_each);
  if (each <= 1 || selection.tokens.size() % each != 0) return selection.tokens;
  Json result = Json::array();
  for (auto from = selection.tokens.begin(); from != selection.tokens.end(); from += queries_each)
    result.push_back(std::vector(from, from + queries_each));
  return result;
}

}  // namespace attmirror
