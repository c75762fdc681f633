// Constraint generation: many more constraints than can be active are given to a solver a few at a time.
//
// An optimum over some of the constraints that satisfies all the others too is the optimum over all; its multipliers,
// 0 for the others, are the proof. So: solve with a working set, look at all margins (one product with W, cheap
// beside a Newton step), add those that are violated, most violated first, and repeat. Constraints that stay inactive
// leave again. The restricted minimum never falls (what leaves had no influence) and rises whenever a violated
// constraint comes in, so no working set returns and the method ends. Where some of the constraints contradict each
// other, so do all.
#pragma once

#include "margin/solver.hpp"

#include <cstddef>
#include <functional>

namespace attmirror {

// Solves a problem that consists of some of the constraints, from a start of their size.
using RestrictedSolver = std::function<SolverAnswer(const ScaledConstraints&, const SolverStart&)>;

struct GeneratedAnswer {
  SolverAnswer answer;             // for all constraints; iterations are those of all rounds
  int rounds = 0;                  // restricted problems solved; 0: ascent by groups needed none
  std::ptrdiff_t largest_set = 0;  // constraints of the largest of them
};

// Does it pay to try? There are many more constraints than unknowns, or simply very many.
bool worth_generating(const ScaledConstraints& constraints);

// Entrywise norms with 1 < p <= 2: ascent by groups on all constraints (group_ascent.hpp), which often ends at the
// optimum; where it does not, its last point is the guess. Other norms: `start` is the guess, or a rough Frobenius
// solution. The first working set are the guess's nonzero multipliers and the constraints that its W violates or
// nearly violates.
GeneratedAnswer solve_by_generation(const ScaledConstraints& constraints, const Norm& norm,
                                    const SolverLimits& limits, const SolverStart& start,
                                    const RestrictedSolver& solve);

}  // namespace attmirror
