// The last digits of feasibility, where W cannot be rescaled to its worst margin: problems with equalities.
//
// An interior point method meets its equations up to rounding times the condition of its last system, 1e-11 or so; a
// certificate asks for rounding alone. The nearest W, in the Frobenius norm, that meets the constraints J with
// equality is
//
//   W + B_J^T (B_J B_J^T)^-1 (c_J - B_J W)
//
// J are the equalities, and the inequalities that W violates or would then violate.
#pragma once

#include "margin/norm_barrier.hpp"
#include <attmirror/base/matrix.hpp>

namespace attmirror {

// W, or where its violations are small enough to be rounding, W without them.
Matrix polish_feasibility(Matrix W, MarginOperator& B);

}  // namespace attmirror
