// How far weights are from the set of all max-margin solutions, where there can be more than one. Internal.
//
// The norms l_p and Schatten-p with 1 < p < infinity are strictly convex, so their problem has one solution.
// Those with p = 1 or infinity are not: l_1 and l_infinity lead to linear programs, whose solutions are a
// face of a polyhedron; the spectral norm leaves W free wherever a singular value is below the largest; the
// nuclear norm has one solution for most data, but several where, for instance, differences of tokens and
// queries are orthogonal. A distance from the one that a solver happened to return then says little. The
// distance from the whole set does:
//
//   S     = { V : ||V|| <= 1,  a_k^T V z_g >= (1 - 1e-6) gamma c_k for all k },   gamma = 1 / min ||W||
//   dist  = min over V in S of || W / ||W|| - V ||                                  in the norm of the problem
//
// S holds the directions whose margin is the largest up to one part in a million, which is more than solvers
// and certificates leave open. dist lies between 0 and 2, and is 0 if and only if W is a solution in this
// sense. For l_1 and l_infinity it is a linear program, solved to a gap of 1e-7 (nearest_solution.cpp).
#pragma once

#include "margin/scaled_constraints.hpp"
#include <attmirror/margin/constraints.hpp>
#include <attmirror/mirror/norm.hpp>

#include <optional>

namespace attmirror {

// How many solutions a max-margin problem in this norm can have.
enum class Solutions {
  one,
  // For most data one; never excluded.
  seldom_several,
  several,
};
Solutions solutions_of(const Norm& norm);

struct NearestSolution {
  double distance = 0;     // from a member of the set
  double lower_bound = 0;  // no member is nearer than this
  Matrix V;                // that member: a direction, of norm 1 at most
};

// The set of solutions of one problem in l_1 or l_infinity.
class SolutionSet {
 public:
  // `solution` is one of them, of any positive scale. Throws Error (bad input) for another norm, for equalities, where
  // `solution` violates a constraint, and for more than 4000 constraints or 2500 entries of W.
  SolutionSet(const MarginConstraints& constraints, const Norm& norm, const Matrix& solution);

  // Nothing where W is 0 or not finite, or the linear program was not solved to its gap.
  std::optional<NearestSolution> nearest(const Matrix& W) const;

 private:
  ScaledConstraints constraints_;
  Norm norm_;
  Vector bounds_;  // (1 - 1e-6) gamma c_k, in the scale of constraints_
  Matrix solution_;
};

}  // namespace attmirror
