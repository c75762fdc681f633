// P2's condition for joint training of v and attention: the label margin of the attended tokens is largest where
// attention is entirely on the selected ones. Internal.
//
// With r_j = sum_t s_jt x_t for probabilities s_j, the label margin of the mixtures is, by duality,
//
//   G(s) = max_{|v| <= 1} min_j Y_j v^T r_j = min_{lambda in the simplex} |sum_j lambda_j Y_j r_j|
//
// and G = Gamma = 1 / |v_mm| where s is one at the selected tokens. Demanded is, for some nu > 0 and all s,
//
//   G(s) <= Gamma - nu max_{j in S} (1 - s_j,alpha)       S: the support vectors, those with lambda*_j > 0
//
// Two sides of this can be decided. With the optimal lambda* the function F(s) = |sum_j lambda*_j Y_j r_j| bounds G
// from above and is convex in s, so F at mixtures is at most the mean of F at selections beta, weighted by prod_j
// s_j,beta_j:
//
//   holds   if F(beta) < Gamma for every selection beta that differs from alpha in S; nu is the least difference
//   fails   if Y_j v_mm^T x_t >= Y_j v_mm^T x_alpha for some j in S: mixing t in does not lower G, to first order
//   fails   if another selection beta has itself a label margin of at least Gamma
//
// and otherwise it stays open. There are T^|S| selections; beyond `most_selections` the first side is not tried.
#pragma once

#include <attmirror/data/selection.hpp>
#include <attmirror/margin/max_margin.hpp>
#include <attmirror/margin/theory.hpp>

namespace attmirror {

inline constexpr double most_selections = 2e5;

// `decoder` is the certified solution of DecoderSvm{tokens} in the Euclidean norm.
AssumptionCheck check_label_margin(const Dataset& data, const Selection& tokens,
                                   const MarginSolution& decoder, const MarginOptions& options);

}  // namespace attmirror
