// Which token each query has selected: alpha in the papers, one index per sequence, from 0; with several
// queries per sequence, one index for each of them in the order of Dataset::queries().
//
// Training ends with one (the arg max of the softmax), and the max-margin problem begins with one.
#pragma once

#include <attmirror/data/dataset.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace attmirror {

// One token for each query: the index of the token in its sequence.
struct Selection {
  std::vector<std::int64_t> tokens;  // one per query: a token of its sequence that the mask allows

  // Throws Error (bad input) unless there is one index per query of `data`, each in range and allowed.
  void validate(const Dataset& data) const;

  friend bool operator==(const Selection&, const Selection&) = default;
};

// "(3, 0, 7)"
std::string to_string(const Selection& selection);

}  // namespace attmirror
