// Which token of each sequence attention has picked: alpha in the papers, one index per sequence, from 0.
//
// Training ends with one (the arg max of the softmax), and the max-margin problem begins with one.
#pragma once

#include <attmirror/data/dataset.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace attmirror {

struct Selection {
  std::vector<std::int64_t> tokens;  // n, token of sequence i, 0 <= tokens[i] < length(i)

  // Throws Error (bad input) unless there is one index per sequence of `data` and each is in range.
  void validate(const Dataset& data) const;

  friend bool operator==(const Selection&, const Selection&) = default;
};

// "(3, 0, 7)"
std::string to_string(const Selection& selection);

}  // namespace attmirror
