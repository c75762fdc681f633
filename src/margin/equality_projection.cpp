#include "margin/equality_projection.hpp"

#include "margin/cholesky.hpp"
#include "margin/normal_matrix.hpp"

namespace attmirror {

EqualityProjection::EqualityProjection(const ScaledConstraints& constraints) {
  for (std::ptrdiff_t k = 0; k < constraints.count(); ++k)
    if (constraints.is_equality(k)) equalities_.push_back(k);
  size_ = static_cast<std::ptrdiff_t>(equalities_.size());
  if (size_ == 0) return;
  factor_ = PaddedMatrix(size_, size_);
  normal_matrix_identity(constraints, equalities_, factor_.view());
  // Equalities may depend on each other: a little more on the diagonal, which the repetition below makes up for.
  for (std::ptrdiff_t i = 0; i < size_; ++i) factor_.view().eigen()(i, i) *= 1 + 1e-13;
  // Where even that fails W stays as it is, and the gap counts what it violates.
  if (cholesky(factor_.view(), 0) != size_) equalities_.clear();
}

Matrix EqualityProjection::operator()(Matrix W, MarginOperator& B) const {
  if (!is_needed()) return W;
  const auto c = B.constraints().bounds();
  for (int round = 0; round < 3; ++round) {
    const Vector margins = B.forward(W);
    Vector missing(size_);
    for (std::ptrdiff_t i = 0; i < size_; ++i) {
      const std::ptrdiff_t k = equalities_[static_cast<std::size_t>(i)];
      missing[i] = c[static_cast<std::size_t>(k)] - margins[k];
    }
    cholesky_solve(factor_.view(), size_, missing.data());
    Vector weights = Vector::Zero(margins.size());
    for (std::ptrdiff_t i = 0; i < size_; ++i) weights[equalities_[static_cast<std::size_t>(i)]] = missing[i];
    W += B.adjoint(weights);
  }
  return W;
}

}  // namespace attmirror
