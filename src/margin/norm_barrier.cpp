#include "margin/norm_barrier.hpp"

#include "mirror/spectral.hpp"

#include <cmath>
#include <span>

#include <Eigen/QR>

namespace attmirror {

MarginOperator::MarginOperator(const ScaledConstraints& constraints, ThreadPool* pool, Sums sums)
    : constraints_(&constraints),
      pool_(pool),
      sums_(sums),
      scratch_(constraints.make_scratch()),
      buffer_(constraints.rows(), constraints.cols()) {}

Vector MarginOperator::forward(const Matrix& W) {
  if (sums_ == Sums::precise)
    return rounded(PreciseConstraints(*constraints_).forward(W.cast<DoubleDouble>()));
  Vector margins(constraints_->count());
  buffer_.view().eigen() = W;
  constraints_->forward(buffer_.view(), scratch_, {margins.data(), static_cast<std::size_t>(margins.size())},
                        pool_);
  return margins;
}

Matrix MarginOperator::adjoint(const Vector& lambda) {
  if (sums_ == Sums::precise)
    return rounded(PreciseConstraints(*constraints_).adjoint(lambda.cast<DoubleDouble>()));
  constraints_->adjoint({lambda.data(), static_cast<std::size_t>(lambda.size())}, scratch_, buffer_.view(),
                        pool_);
  return buffer_.view().eigen();
}

std::unique_ptr<NormBarrier> make_norm_barrier(const Norm& norm) {
  const bool smooth = norm.p() > 1 && std::isfinite(norm.p());
  switch (norm.kind()) {
    case Norm::Kind::entrywise:
      return smooth ? make_power_barrier(norm) : make_entry_barrier(norm);
    case Norm::Kind::schatten:
      break;
  }
  return smooth ? make_power_barrier(norm) : make_spectral_barrier(norm);
}

namespace {

// The rows of `vectors` are orthonormal, those of zero singular values are zero: completes them to a square matrix of
// columns. A Householder factorization of orthonormal columns finds them again up to their signs.
Matrix complete(const Matrix& vectors) {
  const Eigen::HouseholderQR<Eigen::MatrixXd> qr(vectors.transpose());
  Matrix basis = qr.householderQ() * Eigen::MatrixXd::Identity(vectors.cols(), vectors.cols());
  for (std::ptrdiff_t k = 0; k < vectors.rows(); ++k)
    if (qr.matrixQR()(k, k) < 0) basis.col(k) *= -1;
  return basis;
}

}  // namespace

FullSvd full_svd(const Matrix& a) {
  Svd svd(a.rows(), a.cols());
  const PaddedMatrix copy(a);
  svd.compute(copy.view());
  return {complete(svd.left().eigen()), complete(svd.right().eigen()),
          svd.values().eigen().row(0).transpose()};
}

}  // namespace attmirror
