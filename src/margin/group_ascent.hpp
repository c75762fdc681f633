// Very many constraints on a few thousand unknowns: the dual of min ||W||_p, 1 < p <= 2, without any matrix of the
// size of the constraints.
//
//   max_lambda  c^T lambda - 1/q sum_ij |U_ij|^q,   U = B^T lambda,  1/p + 1/q = 1,   lambda >= 0 or free
//   W = sign(U) |U|^(q-1) solves the primal problem when lambda solves this one
//
// Dense Newton systems have the size of the support, thousands: a second for each factorization. But the constraints
// come in groups that share a query z, and two cheap things follow.
//
// Ascent: for one group, W z is 2 d^2 operations; with it each of its constraints takes 2 d operations to see and 2 d
// to move; then W changes by a matrix of rank one. So one exact coordinate-by-coordinate pass over all groups costs
// about as much as one gradient, and converges far faster: it finds most of the support in tens of passes.
//
// Conjugate gradients: with the support known the rest is a linear system B_F D B_F^T, D = (q-1) |U|^(q-2), and its
// product with a vector again costs 4 d^2 operations a group. The support of separable random data is well
// conditioned, so about a hundred products reach rounding.
//
// For p = 2 the dual is quadratic and both work on it directly. For p < 2 they work on its quadratic model at the
// current lambda (proximal Newton), and a line search keeps the dual ascending.
#pragma once

#include "margin/solver.hpp"

namespace attmirror {

// Entrywise norms with 1 < p <= 2; equalities too. Meant for p not too near 1, where the dual is too flat for a
// quadratic model (below about 1.2). `solved` when the relative gap over all constraints is a hundredth of the
// tolerance (or a tenth, where rounding allows no more); `infeasible` when the dual bound passes max_norm;
// `stalled` when progress ends before: the answer is then a good start for other solvers. `iterations` counts the
// quadratic models.
SolverAnswer solve_group_ascent(const ScaledConstraints& constraints, const Norm& norm,
                                const SolverLimits& limits, const SolverStart& start);

}  // namespace attmirror
