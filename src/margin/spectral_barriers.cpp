// The norms whose max-margin problem is a semidefinite program: nuclear and spectral (see norm_barrier.hpp).
//
// X and Z, of rows + cols, go to X Z = tau I in the scaling of Nesterov and Todd: with V Z V = X, V = G G^T, both
// look the same, G^-1 X G^-T = G^T Z G = diag(v), and the linearized condition is
//
//   dX + V dZ V = R,      R = G R^ G^T,   R^_ij = 2 (tau - v_i^2 - C_ij) / (v_i + v_j)     (tau and v on the diagonal)
//
// with C the symmetric product of the directions of the predictor. What is known of dX and dZ leaves
//
//   nuclear    dZ has blocks 0 and -dU/2:  dW = R_12 + (V_11 dU V_22 + V_12 dU^T V_12) / 2
//
//   spectral   dX has blocks dt I and dW; with K = V^-1, R' = K R K and h = (K K)_12
//              K_11 dW K_22 + K_12 dW^T K_12 = dU/2 + R'_12 - dt h
//
// The last is solved in the bases that make K_11 and K_22 identities and K_12 = diag(kappa): x_ij + kappa_i kappa_j
// x_ji are systems of two unknowns. So D, like a second derivative of a function of singular values, weighs an entry
// and its mirror image; tr Y + tr Y' = 1 pins down dt and adds f f^T / theta to it, f the motion of W when t grows.
#include "margin/norm_barrier.hpp"
#include "mirror/entries.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <Eigen/Cholesky>
#include <Eigen/Eigenvalues>
#include <Eigen/QR>

namespace attmirror {

namespace {

using Square = Eigen::MatrixXd;

Square symmetric(const Square& m) { return 0.5 * (m + m.transpose()); }

// [upper W; W^T lower]
Square blocks(const Square& upper, const Matrix& W, const Square& lower) {
  Square m(upper.rows() + lower.rows(), upper.rows() + lower.rows());
  m << upper, W, W.transpose(), lower;
  return m;
}

// How far diag(v) may go along the symmetric d and stay positive semidefinite.
double longest(const Vector& v, const Square& d) {
  const Vector root = v.cwiseSqrt().cwiseInverse();
  const Eigen::SelfAdjointEigenSolver<Square> eigen(root.asDiagonal() * d * root.asDiagonal(),
                                                    Eigen::EigenvaluesOnly);
  const double least = eigen.eigenvalues()[0];
  return least < 0 ? -1 / least : std::numeric_limits<double>::infinity();
}

class SemidefiniteBarrier : public NormBarrier {
 public:
  const Matrix& weights() const override { return W_; }
  double products() const override { return X_.cwiseProduct(Z_).sum(); }
  std::ptrdiff_t pairs() const override { return X_.rows(); }
  StepLength longest_step() const override { return {longest(v_, scaled_dX_), longest(v_, scaled_dZ_)}; }
  double products_after(StepLength step) const override {
    return v_.squaredNorm() + step.primal * v_.dot(scaled_dX_.diagonal()) +
           step.dual * v_.dot(scaled_dZ_.diagonal()) +
           step.primal * step.dual * scaled_dX_.cwiseProduct(scaled_dZ_).sum();
  }

 protected:
  // G from S = L_Z^T L_X = A diag(v) E^T: G = L_X E v^-1/2 and G^-1 = v^-3/2 E^T S^T L_Z^T. Near the central path all
  // v are of a size, so that S^T S has lost nothing.
  bool scale() {
    const Eigen::LLT<Square> primal(X_), dual(Z_);
    if (primal.info() != Eigen::Success || dual.info() != Eigen::Success) return false;
    const Square LX = primal.matrixL(), LZ = dual.matrixL();
    const Square S = LZ.transpose() * LX;
    const Eigen::SelfAdjointEigenSolver<Square> eigen(Square(S.transpose() * S));
    if (eigen.info() != Eigen::Success || !(eigen.eigenvalues()[0] > 0)) return false;
    v_ = eigen.eigenvalues().cwiseSqrt();
    const Vector root = v_.cwiseSqrt();
    G_ = LX * eigen.eigenvectors() * root.cwiseInverse().asDiagonal();
    const Square SE = S * eigen.eigenvectors();
    inverse_G_ = (root.array() * v_.array()).inverse().matrix().asDiagonal() * (LZ * SE).transpose();
    return G_.allFinite() && inverse_G_.allFinite();
  }
  void aim(double target, Order order) {
    scaled_R_ = Square::Zero(v_.size(), v_.size());
    if (order == Order::corrector) scaled_R_ = -symmetric(scaled_dX_ * scaled_dZ_);
    scaled_R_.diagonal().array() += target - v_.array().square();
    for (std::ptrdiff_t j = 0; j < v_.size(); ++j)
      for (std::ptrdiff_t i = 0; i < v_.size(); ++i) scaled_R_(i, j) *= 2 / (v_[i] + v_[j]);
  }
  Matrix upper_right(const Square& m) const { return m.topRightCorner(rows_, cols_); }

  std::ptrdiff_t rows_ = 0, cols_ = 0;
  Square X_, Z_, G_, inverse_G_;
  Square scaled_R_, scaled_dX_, scaled_dZ_;
  Vector v_;
  Matrix W_, dW_;
};

class NuclearBarrier final : public SemidefiniteBarrier {
 public:
  double begin(const Matrix& W, const Matrix& U) override {
    rows_ = W.rows(), cols_ = W.cols();
    W_ = W;
    const FullSvd svd = full_svd(W);
    const double shift = std::max(svd.values.mean(), std::numeric_limits<double>::min());
    const auto absolute = [&](const Matrix& basis) -> Square {
      Vector values = Vector::Constant(basis.rows(), shift);
      values.head(svd.values.size()) += svd.values;
      return basis * values.asDiagonal() * basis.transpose();
    };
    X_ = blocks(absolute(svd.P), W, absolute(svd.Q));
    const double factor = 0.5 / norm(U, Norm::spectral());
    set_dual(factor * U);
    return factor;
  }
  bool linearize() override {
    if (!scale()) return false;
    const Square V = G_ * G_.transpose();
    V11_ = V.topLeftCorner(rows_, rows_);
    V12_ = upper_right(V);
    V22_ = V.bottomRightCorner(cols_, cols_);
    return true;
  }
  void normal_matrix(MarginOperator& B, MatrixView out) const override {
    normal_matrix_products(B.constraints(), V11_, V12_, V22_, out, B.pool());
  }
  PreciseMatrix precise_normal_matrix(const PreciseConstraints& B) const override {
    return B.products_normal_matrix(V11_, V12_, V22_);
  }
  Matrix apply(const Matrix& dU) const override {
    return 0.5 * (V11_ * dU * V22_ + V12_ * dU.transpose() * V12_);
  }
  Matrix offset(double target, Order order) override {
    aim(target, order);
    return G_.topRows(rows_) * scaled_R_ * G_.bottomRows(cols_).transpose();
  }
  const Matrix& direct(const Matrix& dU) override {
    const Square half = -0.5 * G_.topRows(rows_).transpose() * dU * G_.bottomRows(cols_);
    scaled_dZ_ = half + half.transpose();
    scaled_dX_ = scaled_R_ - scaled_dZ_;
    dX_ = symmetric(G_ * scaled_dX_ * G_.transpose());
    return dW_ = upper_right(dX_);
  }
  void advance(StepLength step, const Matrix& U) override {
    X_ += step.primal * dX_;
    W_ = upper_right(X_);
    set_dual(U);
  }

 private:
  void set_dual(const Matrix& U) {
    Z_ = blocks(0.5 * Square::Identity(rows_, rows_), -0.5 * U, 0.5 * Square::Identity(cols_, cols_));
  }
  Matrix V11_, V12_, V22_;
  Square dX_;
};

class SpectralBarrier final : public SemidefiniteBarrier {
 public:
  double begin(const Matrix& W, const Matrix& U) override {
    rows_ = W.rows(), cols_ = W.cols();
    W_ = W;
    bound_ = 1.5 * norm(W, Norm::spectral());
    set_primal();
    // Half of the trace goes to the singular values of U, the other half is spread.
    const FullSvd svd = full_svd(U);
    const double factor = 0.5 / svd.values.sum(), spread = 0.5 / static_cast<double>(rows_ + cols_);
    const auto absolute = [&](const Matrix& basis) -> Square {
      Vector values = Vector::Constant(basis.rows(), spread);
      values.head(svd.values.size()) += 0.5 * factor * svd.values;
      return basis * values.asDiagonal() * basis.transpose();
    };
    U_ = factor * U;
    Z_ = blocks(absolute(svd.P), -0.5 * U_, absolute(svd.Q));
    return factor;
  }
  bool linearize() override {
    if (!scale()) return false;
    const std::ptrdiff_t both = std::min(rows_, cols_);
    // K = A^T A with A = G^-1 = [A_1 A_2], so the kappas are cosines of the angles between the columns of A_1 and
    // A_2. Near the end they are 1 up to rounding, and the sines have the digits.
    const Eigen::HouseholderQR<Square> upper(inverse_G_.leftCols(rows_)), lower(inverse_G_.rightCols(cols_));
    const Square both_Q = upper.householderQ() * Square::Identity(rows_ + cols_, rows_ + cols_);
    const Square Q2 = lower.householderQ() * Square::Identity(rows_ + cols_, cols_);
    const FullSvd sines = full_svd(both_Q.rightCols(cols_).transpose() * Q2);
    const Matrix bases = sines.Q.rowwise().reverse();
    const Vector sine = sines.values.reverse();
    const Square cosines = both_Q.leftCols(rows_).transpose() * Q2 * bases.leftCols(both);
    const Eigen::HouseholderQR<Square> turned(cosines);
    Square other = turned.householderQ() * Square::Identity(rows_, rows_);
    Vector cosine = turned.matrixQR().diagonal();
    for (std::ptrdiff_t j = 0; j < both; ++j)
      if (cosine[j] < 0) {
        other.col(j) *= -1;
        cosine[j] *= -1;
      }
    left_ = upper.matrixQR().topRows(rows_).triangularView<Eigen::Upper>().solve(other);
    right_ = lower.matrixQR().topRows(cols_).triangularView<Eigen::Upper>().solve(Square(bases));

    // D = half the inverse: x_ij + kappa_i kappa_j x_ji = y_ij, of determinant 1 - (kappa_i kappa_j)^2.
    alpha_ = Matrix::Constant(rows_, cols_, 0.5);
    beta_ = Matrix::Zero(both, both);
    for (std::ptrdiff_t i = 0; i < both; ++i)
      for (std::ptrdiff_t j = 0; j < both; ++j) {
        const double determinant = sine[i] * sine[i] + cosine[i] * cosine[i] * sine[j] * sine[j];
        if (!(determinant > 0)) return false;
        alpha_(i, j) = 0.5 / determinant;
        beta_(i, j) = -0.5 * cosine[i] * cosine[j] / determinant;
      }
    const Square K = inverse_G_.transpose() * inverse_G_;
    follow_ = -2 * apply_without_bound(upper_right(K * K));
    // K moved K has no upper right block, but K is large: what is left of it is taken back. theta = tr K^2 - 4 <h, D
    // h>, which cancels, is a sum of squares as well.
    for (int round = 0;; ++round) {
      const Square moved = blocks(Square::Identity(rows_, rows_), follow_, Square::Identity(cols_, cols_));
      const Square scaled = inverse_G_ * moved * inverse_G_.transpose();
      theta_ = scaled.squaredNorm();
      if (round == 2) break;
      follow_ -= 2 * apply_without_bound(upper_right(inverse_G_.transpose() * scaled * inverse_G_));
    }
    return theta_ > 0 && std::isfinite(theta_) && alpha_.allFinite();
  }
  void normal_matrix(MarginOperator& B, MatrixView out) const override {
    const SpectralWeights weights{PaddedMatrix(Matrix(B.constraints().left().eigen() * left_)),
                                  PaddedMatrix(Matrix(B.constraints().right().eigen() * right_)), alpha_,
                                  beta_};
    normal_matrix_spectral(B.constraints(), weights, out, B.pool());
    const Vector f = B.forward(follow_);
    for (std::ptrdiff_t k = 0; k < f.size(); ++k)
      out.eigen().row(k).head(k + 1) += (f[k] / theta_) * f.head(k + 1).transpose();
  }
  PreciseMatrix precise_normal_matrix(const PreciseConstraints& B) const override {
    return with_rank_one(B.spectral_normal_matrix(left_, right_, alpha_, beta_),
                         B.forward(follow_.cast<DoubleDouble>()), theta_);
  }
  Matrix apply(const Matrix& dU) const override {
    return apply_without_bound(dU) + follow_ * (follow_.cwiseProduct(dU).sum() / theta_);
  }
  Matrix offset(double target, Order order) override {
    aim(target, order);
    const Square R = inverse_G_.transpose() * scaled_R_ * inverse_G_;
    const Matrix R12 = upper_right(R) + upper_right(Z_) + 0.5 * U_;
    const double missing = 1 - Z_.trace();
    fixed_ = 2 * apply_without_bound(R12);
    fixed_bound_ = (R.trace() - missing + 2 * follow_.cwiseProduct(R12).sum()) / theta_;
    return fixed_ + fixed_bound_ * follow_;
  }
  const Matrix& direct(const Matrix& dU) override {
    dbound_ = fixed_bound_ + follow_.cwiseProduct(dU).sum() / theta_;
    dW_ = apply_without_bound(dU) + fixed_ + dbound_ * follow_;
    complete();
    return dW_;
  }
  void advance(StepLength step, const Matrix& U) override {
    W_ += step.primal * dW_;
    bound_ += step.primal * dbound_;
    set_primal();
    Z_ += step.dual * dZ_;
    U_ = U;
  }

 private:
  // dZ = K (R - dX) K from dW and dt.
  void complete() {
    const Square dX =
        blocks(dbound_ * Square::Identity(rows_, rows_), dW_, dbound_ * Square::Identity(cols_, cols_));
    scaled_dX_ = symmetric(inverse_G_ * dX * inverse_G_.transpose());
    scaled_dZ_ = scaled_R_ - scaled_dX_;
    dZ_ = symmetric(inverse_G_.transpose() * scaled_dZ_ * inverse_G_);
  }
  void set_primal() {
    X_ = blocks(bound_ * Square::Identity(rows_, rows_), W_, bound_ * Square::Identity(cols_, cols_));
  }
  Matrix apply_without_bound(const Matrix& dU) const {
    const std::ptrdiff_t both = beta_.rows();
    const Matrix rotated = left_.transpose() * dU * right_;
    Matrix weighed = alpha_.cwiseProduct(rotated);
    weighed.topLeftCorner(both, both) += beta_.cwiseProduct(rotated.topLeftCorner(both, both).transpose());
    return left_ * weighed * right_.transpose();
  }
  Matrix left_, right_, alpha_, beta_, follow_, fixed_, U_;
  Square dZ_;
  double bound_ = 0, dbound_ = 0, theta_ = 0, fixed_bound_ = 0;
};

}  // namespace

std::unique_ptr<NormBarrier> make_spectral_barrier(const Norm& norm) {
  if (norm.p() == 1) return std::make_unique<NuclearBarrier>();
  return std::make_unique<SpectralBarrier>();
}

}  // namespace attmirror
