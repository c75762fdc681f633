// What a max-margin file (svm.npz, margin/svm_file.hpp) says by itself, without the data that it was solved
// for. Internal.
#pragma once

#include <attmirror/data/array.hpp>
#include <attmirror/margin/constraints.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace attmirror {

struct SupportToken {
  ConstraintOrigin origin;
  double multiplier = 0;
};

// A solution, or one half of a Gen-SVM.
struct SolutionHalf {
  std::string status, method;
  double norm = 0, dual = 0, gap = 0;  // not numbers where the problem is infeasible
  std::int64_t iterations = 0, constraints = 0;
  std::vector<SupportToken> support;    // the largest multiplier first
  std::vector<double> singular_values;  // largest first; empty where the file has none
};

struct SolutionSummary {
  std::string problem, kind;  // "attention", "1.75"
  SolutionHalf solution;
  std::optional<SolutionHalf> finite;  // the second half of a Gen-SVM, whose first half is the direction
  std::optional<double> R;             // of W_fin + R W_dir
  std::uint64_t data_fingerprint = 0;
};

// Whether these are the arrays of a file that `attmirror margin` writes.
bool is_solution(const NamedArrays& arrays);

// Throws Error (bad input) that begins with `name` and tells which array is missing or has another shape.
SolutionSummary summarize_solution(const NamedArrays& arrays, std::string_view name);

}  // namespace attmirror
