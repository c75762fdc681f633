// How close two sets of weights are in direction.
//
// Training makes the weights diverge; their direction is what converges. Both measures are independent of scale.
#pragma once

#include <attmirror/base/matrix.hpp>

namespace attmirror {

// The directional Bregman divergence of P1: D_psi(solution / ||solution||_p, iterate / ||iterate||_p) with
// psi = (1/p) ||.||_p^p. It lies in [0, 2], is 0 only for equal directions, and is 1 - cos for p = 2. p is
// that of the training, not of the max-margin problem. Throws Error (bad input) when shapes differ, a matrix
// is zero or has an entry that is not finite, or p is not > 1.
double directional_bregman(const Matrix& solution, const Matrix& iterate, double p);

// <a, b> / (|a| |b|), the cosine of the angle between them. Throws like directional_bregman.
double correlation(const Matrix& a, const Matrix& b);

// ||w||_p of a plain matrix, 1 <= p <= infinity. Throws Error (bad input) for another p.
double lp_norm(const Matrix& w, double p);

}  // namespace attmirror
