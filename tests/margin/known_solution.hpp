// Max-margin problems whose solution is known: first the solution, then data that it solves.
//
// W is the smallest matrix under the constraints <A_k, W> >= c_k if there are lambda_k >= 0, zero where the margin
// is above the bound, whose sum U = sum_k lambda_k A_k pairs with W as tightly as a matrix can: <U, W> = ||U||_*
// ||W||. So
//
//   1. choose such a pair. For 1 < p < infinity, U is the gradient of ||.||^p/p at W (signed powers of entries or
//      singular
//      values). For l_1 and nuclear, U has ties: entries (singular values) of exactly 1 where W is not 0, smaller ones
//      elsewhere; for l_infinity and spectral the roles are exchanged
//   2. write U as sum_g u_g z_g^T for queries z_g with u_g^T W z_g > 0. For an orthonormal basis u_g = U z_g does it if
//      all diagonal entries z_g^T U^T W z_g are equal: their sum <U, W> is positive. Rotations in planes make them
//      equal, one after the other. Two such bases, each for a share of U, give queries that are not orthogonal
//   3. split each u_g into rows: a_k = c_k u_g / (u_g^T y) + e_k with y = W z_g, e_k^T y = 0 and sum_k lambda_k e_k = 0
//   4. add rows and queries with larger margins, for which lambda = 0
#pragma once

#include <attmirror/margin/constraints.hpp>
#include <attmirror/mirror/norm.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace attmirror::test {

struct KnownOptions {
  std::ptrdiff_t rows = 6, cols = 5;  // of W; there are 2 cols groups with active constraints
  std::ptrdiff_t active = 2;          // constraints with lambda > 0 in each of them, >= 1
  std::ptrdiff_t inactive = 2;      // with lambda = 0 and a margin of 1.1 to 3 times the bound, in each group
  std::ptrdiff_t loose_groups = 1;  // groups of inactive constraints only
  // Further ones in each active group, with multipliers and bounds of any sign.
  std::ptrdiff_t equalities = 0;
  std::ptrdiff_t zero_bounds = 0;  // how many of the `active` constraints of a group have bound 0; < active
  // How many entries (singular values) are tied: those of W that are not 0 for l_1 (nuclear), those of W that are
  // largest for l_infinity (spectral). 0: a third of the entries, half of the singular values.
  std::ptrdiff_t ties = 0;
  std::uint64_t seed = 1;
};

struct KnownSolution {
  ConstraintArrays arrays;
  Matrix W;       // a solution; for l_1, l_infinity, nuclear and spectral there may be others
  Vector lambda;  // its multipliers, with sum c_k lambda_k = ||W|| ||U||_*
  double norm = 0;
};

KnownSolution known_solution(const Norm& norm, const KnownOptions& options = {});

// The norms of the papers and the hard ones: l_p for p = 1, 1.001, 1.05, 1.1, 1.75, 2, 3, pi, 10, 50, infinity;
// Schatten-p for p = 1, 1.5, 3, infinity.
const std::vector<Norm>& all_norms();

}  // namespace attmirror::test
