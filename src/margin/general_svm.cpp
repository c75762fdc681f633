#include <attmirror/base/error.hpp>
#include <attmirror/margin/general_svm.hpp>

#include <cmath>
#include <string_view>

#include <fmt/format.h>

namespace attmirror {

namespace {

void check(const Matrix& matrix, std::string_view name, const Matrix& W) {
  if (matrix.rows() != W.rows() || matrix.cols() != W.cols())
    throw bad_input(fmt::format("{} has shape ({}, {}): expected ({}, {}), that of W", name, matrix.rows(),
                                matrix.cols(), W.rows(), W.cols()));
  for (std::ptrdiff_t i = 0; i < matrix.rows(); ++i)
    for (std::ptrdiff_t j = 0; j < matrix.cols(); ++j)
      if (!std::isfinite(matrix(i, j)))
        throw bad_input(fmt::format("{}[{},{}] is {}: expected a finite number", name, i, j, matrix(i, j)));
}

}  // namespace

KeptTokens kept_tokens(const std::vector<Vector>& probabilities, double threshold) {
  if (!(threshold > 0 && threshold <= 1))
    throw bad_input(fmt::format("threshold is {}: expected a number above 0 and up to 1", threshold));
  KeptTokens kept;
  for (std::size_t j = 0; j < probabilities.size(); ++j) {
    std::vector<std::int64_t>& tokens = kept.tokens.emplace_back();
    for (std::ptrdiff_t t = 0; t < probabilities[j].size(); ++t) {
      const double value = probabilities[j][t];
      // A softmax may round to a little above 1.
      if (!(value >= 0 && value <= 1 + 1e-6))
        throw bad_input(
            fmt::format("probabilities[{}][{}] is {}: expected a number from 0 to 1", j, t, value));
      if (value >= threshold) tokens.push_back(t);
    }
    if (tokens.empty())
      throw bad_input(fmt::format("probabilities[{}] has no entry of at least {}", j, threshold));
  }
  return kept;
}

SvmEquivalent svm_equivalent(const Matrix& W_fin, const Matrix& W_dir, const Matrix& W) {
  check(W, "W", W);
  check(W_fin, "W_fin", W);
  check(W_dir, "W_dir", W);
  const double size = W.size() == 0 ? 0 : W_dir.cwiseAbs().maxCoeff();
  if (size == 0) return {0, W_fin};
  const Matrix direction = W_dir / size;  // whose squares neither over- nor underflow
  const double R = ((W - W_fin).array() * direction.array()).sum() / direction.squaredNorm() / size;
  return {R, W_fin + R * W_dir};
}

}  // namespace attmirror
