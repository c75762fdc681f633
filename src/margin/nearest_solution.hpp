// The linear program behind the distance from a set of solutions (solution_set.hpp). Internal.
#pragma once

#include "margin/scaled_constraints.hpp"
#include <attmirror/mirror/norm.hpp>

#include <optional>

namespace attmirror {

struct NearestPoint {
  Matrix V;
  double value = 0, lower_bound = 0;  // ||V - U||, and what no other V can be below
};

// min ||V - U|| subject to ||V|| <= 1 and B V >= bounds, in l_1 or l_infinity. `start` is near a solution of
// the constraints. Nothing where rounding stops the method before the gap is 1e-7.
std::optional<NearestPoint> nearest_point(const ScaledConstraints& B, const Vector& bounds, const Norm& norm,
                                          const Matrix& U, const Matrix& start);

}  // namespace attmirror
