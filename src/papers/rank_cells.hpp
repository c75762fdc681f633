// Ranks of the max-margin solutions of many random data sets, counted correctly and as P3's figure counts them.
// Internal to p3_ranks.cpp, which says what this is about.
#pragma once

#include "papers/workers.hpp"

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace attmirror::ranks {

struct ProblemShape {
  std::int64_t n, T;
  friend auto operator<=>(const ProblemShape&, const ProblemShape&) = default;
};

// What is measured of one problem.
struct Answer {
  bool feasible = false, found_by_ascent = false;  // the latter: and coordinate ascent arrives in time
  double frobenius = 1, nuclear = 1, multiplicity = 0;
  double published_frobenius = 1;             // 1 for an infeasible one
  std::array<double, 2> early_nuclear{1, 1};  // stopped at early_gap, at less_early_gap
  double last_kept = 1, first_dropped = 0;    // singular values of the nuclear solution, of the largest
};

struct Cell {
  std::vector<Answer> answers{};
  std::ptrdiff_t stopped = 0, disagreements = 0;
};

using Cells = std::map<std::pair<ProblemShape, std::int64_t>, Cell>;  // by shape and d

// Data sets 0 to seeds - 1 of the unit sphere, each for its optimal tokens.
Cell measure(const ExperimentContext& context, const ProblemShape& shape, std::int64_t d,
             std::uint64_t seeds);

// Over those of the first `count` data sets that are feasible.
Mean feasible_mean(const Cell& cell, double Answer::*what, std::size_t count);
Mean infeasible_share(const Cell& cell, std::size_t count);

// Over all data sets, as the original has it.
inline Mean mixed_mean(const Cell& cell, auto what) {
  std::vector<double> values;
  for (const Answer& answer : cell.answers) values.push_back(what(answer));
  return mean_of(values);
}

}  // namespace attmirror::ranks
