// The loop of the interior point method, for one norm and one start. solve_interior_point() chooses them.
#pragma once

#include "margin/scaled_constraints.hpp"
#include "margin/solver.hpp"
#include <attmirror/base/matrix.hpp>
#include <attmirror/mirror/norm.hpp>

namespace attmirror {

// W and lambda are a start of any quality, neither all zero; lambda has one entry per constraint. Not all bounds are 0.
// Returns the point with the smallest gap that was met.
SolverAnswer predictor_corrector(const ScaledConstraints& constraints, const Norm& norm,
                                 const SolverLimits& limits, const Matrix& W, const Vector& lambda);

}  // namespace attmirror
