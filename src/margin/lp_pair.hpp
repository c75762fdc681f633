// A W and a lambda on their way to the optimum of an l_p problem, how good they are, and the best of each so far.
//
// The two are judged apart: W by its norm, times what it takes to satisfy the constraints, lambda by the lower bound
// c^T lambda / ||B^T lambda||_q. The gap that counts is that between the best of both, as a certificate has it.
#pragma once

#include "margin/scaled_constraints.hpp"
#include <attmirror/base/matrix.hpp>
#include <attmirror/mirror/lp_map.hpp>

#include <limits>

namespace attmirror {

// Violations of constraints that no multiple of W would satisfy, relative to the largest entry of W, that
// rounding explains.
constexpr double hard_tolerance = 1e-13;

struct LpPair {
  explicit LpPair(const ScaledConstraints& constraints);

  void judge(const LpMap& map);  // everything below, from W, lambda, margins and U
  void forget_best();            // p is another one
  void return_to_best();         // W and lambda only

  const ScaledConstraints& constraints;
  double largest_bound = 0;
  bool hard = false;     // some constraint is an equality or has the bound 0
  bool scalable = true;  // no equality with a bound other than 0: a multiple of W is feasible too

  PaddedMatrix W, U, best_W;  // U = B^T lambda
  AlignedVector lambda, margins, best_lambda;
  double excess = 0;     // W must grow by 1 + excess to satisfy the constraints
  double violation = 0;  // of the constraints that no multiple of W satisfies, relative to W
  double best_norm = std::numeric_limits<double>::infinity(), best_dual = 0;
  double gap = std::numeric_limits<double>::infinity();          // between the best
  double current_gap = std::numeric_limits<double>::infinity();  // between W and lambda
};

}  // namespace attmirror
