// When attention keeps several tokens: the pair of problems that describe where training goes.
//
// With a nonlinear head the best attention may mix tokens O of a query. Then W grows along W_dir, which
// separates O from the rest and does not distinguish within O (GeneralDirectionSvm), around a finite W_fin,
// which sets the ratios within O (GeneralFiniteSvm): W ~ W_fin + R W_dir with growing R (P3).
#pragma once

#include <attmirror/base/matrix.hpp>
#include <attmirror/margin/problems.hpp>

#include <vector>

namespace attmirror {

// Below this, an attention probability counts as going to zero. P3 uses it for W trained for 2000 steps.
constexpr double kept_threshold = 1e-3;

// For each query the tokens with a probability of at least `threshold`. Throws Error (bad input) naming a probability
// that is not in [0, 1], or a query that keeps none.
KeptTokens kept_tokens(const std::vector<Vector>& probabilities, double threshold = kept_threshold);

// The matrix W_fin + R W_dir that is nearest to given weights.
struct SvmEquivalent {
  double R = 0;
  Matrix W;  // W_fin + R W_dir
};

// The point of the line W_fin + R W_dir that is closest to W in the Frobenius norm. For W_dir = 0 (every token
// is kept) that is W_fin, with R = 0. Throws Error (bad input) if shapes differ or an entry is not finite.
SvmEquivalent svm_equivalent(const Matrix& W_fin, const Matrix& W_dir, const Matrix& W);

}  // namespace attmirror
