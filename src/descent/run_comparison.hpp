// Two runs on the same data held against each other. Internal.
//
//   selected     the token that each query of a run attends to most
//   scores       Y v^T x of the selected tokens, with the run's own v: what the selection is worth for the label
//   margin       the smallest difference of logits between a selected token and another of its sequence, over ||W||
//   correlation  the cosine between the weights of the two
#pragma once

#include "descent/selection_differences.hpp"
#include <attmirror/attention/attention.hpp>
#include <attmirror/data/selection.hpp>
#include <attmirror/mirror/norm.hpp>

#include <array>
#include <limits>
#include <optional>
#include <vector>

namespace attmirror {

struct RunToCompare {
  const Attention* model;  // not owned
  const Parameters& parameters;
  Norm norm;  // that of the run's geometry
};

struct ComparedRun {
  Selection selected;
  std::optional<Selection> optimal;  // none while v is 0
  std::vector<double> scores;        // one per query
  std::vector<double> margins;       // one for each of RunComparison::norms; NaN where the weights are 0

  double smallest_score() const;
  double mean_score() const;
};

struct RunComparison {
  std::vector<Norm> norms;  // of the margins: those of both runs, or the one that they share
  std::array<ComparedRun, 2> runs;
  std::vector<SelectionDifference> differences;
  double correlation = std::numeric_limits<double>::quiet_NaN();  // not a number where weights are 0
};

// Throws Error (bad input) where the data or the shapes of the weights differ.
RunComparison compare_runs(const RunToCompare& first, const RunToCompare& second);

}  // namespace attmirror
