// Did the training go where theory says? Compares weights with a max-margin solution, in three numbers that
// do not depend on the size of either:
//
//   directional_bregman   D(W_svm / |W_svm|_p, W / |W|_p), 0 only for equal directions
//   correlation           the cosine between the two
//   margin_ratio          (margin of W on the solution's tokens / |W|) / (the same of W_svm), in a norm; at most 1
//                         where the solution is that of this norm
#pragma once

#include <attmirror/attention/tokens.hpp>
#include <attmirror/mirror/norm.hpp>

#include <limits>

namespace attmirror {

// What to compare in: the p of the divergence, and the norm by which margins are divided.
struct Measure {
  double p = 2;
  Norm norm = Norm::frobenius();
};

// NaN if the weights are 0 or not finite.
struct Comparison {
  double directional_bregman = std::numeric_limits<double>::quiet_NaN();
  double correlation = directional_bregman, margin_ratio = directional_bregman;
};

// `solution` and `weights` are both as returned by attention_weights(); `tokens` are the solution's.
Comparison compare(const Attention& model, const Matrix& solution, const Matrix& weights,
                   const Selection& tokens, const Measure& measure);

}  // namespace attmirror
