// Max-margin problems that fall apart into one for each token. Internal.
//
// With one-hot embeddings (l_i - l_j)^T W z_g is W_ig - W_jg: a group touches its own column of W only, and within it
// tokens that no chain of comparisons connects never meet. An entrywise norm adds up p-th powers (takes the largest
// at p = infinity), so the smallest W is made of the smallest parts. With orthonormal rows E the same holds in the
// Frobenius norm for the scores S, W = E^T S E (W = S E for unit vectors on the left), since that keeps the norm.
// Schatten norms and other p couple all groups.
//
// Many parts need no solver: where every better token is compared with every worse one (one sentence; the successors
// of a token against the rest of the vocabulary) symmetry leaves one unknown,
//
//   better = u, worse = u - 1,   u / (1 - u) = (n_worse / n_better)^{1/(p-1)},   all multipliers equal
//
// which for p = 2 and a single better token is P4's W_ov* = sum_x (e_{n(x)} - 1/|V|) x^T. Everything, closed form or
// solved, is certified: as a whole by margin's verifier where its dense constraints are of moderate size, and otherwise
// part by part (difference_certificate.hpp).
#pragma once

#include "next_token/difference_problem.hpp"
#include <attmirror/margin/max_margin.hpp>

namespace attmirror {

// Rows are orthonormal up to this.
constexpr double orthonormality_tolerance = 1e-12;

bool decouples(const DifferenceProblem& problem, const Norm& norm);

// Of a problem that decouples. Uses options.threads; the result does not depend on it. Above 512 rows and columns
// singular_values stays empty.
MarginSolution solve_decoupled(const DifferenceProblem& problem, const Norm& norm,
                               const MarginOptions& options);

}  // namespace attmirror
