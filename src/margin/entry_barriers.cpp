// The norms whose max-margin problem is a linear program: l_1 and l_infinity (see norm_barrier.hpp).
//
// l_1. With z+- = 1 -+ u, linearizing w+ z+ = tau, w- z- = tau gives
//
//   dw = D du + r+/z+ - r-/z-,   D = w+/z+ + w-/z-,   r = tau - w z
//
// l_inf. With z+- = t -+ w, a = y+/z+ and b = y-/z- the same gives
//
//   (a + b) dw = du - (r+/z+ - r-/z-) + (a - b) dt
//
// and the sum of all y pins down dt: theta dt = sum (r+/z+ + r-/z-) + <a - b, dw at dt = 0> - (1 - sum y) with theta
// = sum 4ab/(a + b). So D is diagonal, 1/(a + b), plus f f^T / theta with f = (a - b)/(a + b): the motion of W when
// t grows.
#include "margin/norm_barrier.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

namespace attmirror {

namespace {

using Entries = Eigen::Array<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

// How far x may go along dx and stay nonnegative.
double longest(const Entries& x, const Entries& dx) {
  double result = std::numeric_limits<double>::infinity();
  for (std::ptrdiff_t i = 0; i < x.size(); ++i)
    if (dx.data()[i] < 0) result = std::min(result, -x.data()[i] / dx.data()[i]);
  return result;
}

void diagonal_normal_matrix(MarginOperator& B, const Entries& D, MatrixView out) {
  std::vector<std::ptrdiff_t> all(static_cast<std::size_t>(B.constraints().count()));
  std::iota(all.begin(), all.end(), std::ptrdiff_t{0});
  const PaddedMatrix weights{Matrix(D)};
  normal_matrix(B.constraints(), all, weights.view(), out, B.pool());
}

PreciseMatrix precise_diagonal_normal_matrix(const PreciseConstraints& B, const Entries& D) {
  return B.normal_matrix(B.all(), PaddedMatrix(Matrix(D)).view());
}

// Two families of pairs x, z of nonnegative numbers, one pair of each for an entry of W.
struct Pairs {
  Entries x, z, dx, dz, r;

  double product() const { return (x * z).sum(); }
  double product_after(double along_x, double along_z) const {
    return ((x + along_x * dx) * (z + along_z * dz)).sum();
  }
  void aim(double target, NormBarrier::Order order) {
    r = target - x * z;
    if (order == NormBarrier::Order::corrector) r -= dx * dz;
  }
};

class SumBarrier final : public NormBarrier {
 public:
  double begin(const Matrix& W, const Matrix& U) override {
    const double size = std::max(W.cwiseAbs().mean(), std::numeric_limits<double>::min());
    plus_.x = W.array().max(0) + size;
    minus_.x = (-W.array()).max(0) + size;
    const double factor = 0.5 / U.cwiseAbs().maxCoeff();
    set_dual(factor * U);
    W_ = W;
    return factor;
  }
  const Matrix& weights() const override { return W_; }
  double products() const override { return plus_.product() + minus_.product(); }
  std::ptrdiff_t pairs() const override { return 2 * W_.size(); }

  bool linearize() override {
    D_ = plus_.x / plus_.z + minus_.x / minus_.z;
    return D_.isFinite().all();
  }
  void normal_matrix(MarginOperator& B, MatrixView out) const override { diagonal_normal_matrix(B, D_, out); }
  PreciseMatrix precise_normal_matrix(const PreciseConstraints& B) const override {
    return precise_diagonal_normal_matrix(B, D_);
  }
  Matrix apply(const Matrix& dU) const override { return D_ * dU.array(); }

  Matrix offset(double target, Order order) override {
    plus_.aim(target, order);
    minus_.aim(target, order);
    return plus_.r / plus_.z - minus_.r / minus_.z;
  }
  const Matrix& direct(const Matrix& dU) override {
    plus_.dz = -dU.array();
    minus_.dz = dU.array();
    plus_.dx = (plus_.r - plus_.x * plus_.dz) / plus_.z;
    minus_.dx = (minus_.r - minus_.x * minus_.dz) / minus_.z;
    return dW_ = plus_.dx - minus_.dx;
  }
  StepLength longest_step() const override {
    return {std::min(longest(plus_.x, plus_.dx), longest(minus_.x, minus_.dx)),
            std::min(longest(plus_.z, plus_.dz), longest(minus_.z, minus_.dz))};
  }
  double products_after(StepLength step) const override {
    return plus_.product_after(step.primal, step.dual) + minus_.product_after(step.primal, step.dual);
  }
  void advance(StepLength step, const Matrix& U) override {
    plus_.x += step.primal * plus_.dx;
    minus_.x += step.primal * minus_.dx;
    W_ = plus_.x - minus_.x;
    set_dual(U);
  }

 private:
  void set_dual(const Matrix& U) {
    plus_.z = 1 - U.array();
    minus_.z = 1 + U.array();
  }
  Pairs plus_, minus_;  // (w+, 1 - u), (w-, 1 + u)
  Entries D_;
  Matrix W_, dW_;
};

class LargestBarrier final : public NormBarrier {
 public:
  double begin(const Matrix& W, const Matrix& U) override {
    W_ = W;
    bound_ = 1.5 * W.cwiseAbs().maxCoeff();
    // Half of the sum goes to the entries of U, the other half is spread.
    const double factor = 0.5 / U.cwiseAbs().sum(), spread = 0.25 / static_cast<double>(U.size());
    U_ = factor * U;
    plus_.x = U_.array().max(0) + spread;
    minus_.x = (-U_.array()).max(0) + spread;
    set_primal();
    return factor;
  }
  const Matrix& weights() const override { return W_; }
  double products() const override { return plus_.product() + minus_.product(); }
  std::ptrdiff_t pairs() const override { return 2 * W_.size(); }

  bool linearize() override {
    const Entries a = plus_.x / plus_.z, b = minus_.x / minus_.z;
    D_ = 1 / (a + b);
    slope_ = a - b;
    follow_ = D_ * slope_;
    theta_ = (4 * a * b * D_).sum();
    return D_.isFinite().all() && theta_ > 0;
  }
  void normal_matrix(MarginOperator& B, MatrixView out) const override {
    diagonal_normal_matrix(B, D_, out);
    const Vector v = B.forward(follow_.matrix());
    for (std::ptrdiff_t k = 0; k < v.size(); ++k)
      out.eigen().row(k).head(k + 1) += (v[k] / theta_) * v.head(k + 1).transpose();
  }
  PreciseMatrix precise_normal_matrix(const PreciseConstraints& B) const override {
    return with_rank_one(precise_diagonal_normal_matrix(B, D_),
                         B.forward(follow_.matrix().cast<DoubleDouble>()), theta_);
  }
  Matrix apply(const Matrix& dU) const override {
    return D_ * dU.array() + follow_ * ((follow_ * dU.array()).sum() / theta_);
  }

  Matrix offset(double target, Order order) override {
    plus_.aim(target, order);
    minus_.aim(target, order);
    plus_.r /= plus_.z;
    minus_.r /= minus_.z;
    const double missing = 1 - (plus_.x + minus_.x).sum();
    fixed_ = D_ * (U_.array() - (plus_.x - minus_.x) - (plus_.r - minus_.r));
    fixed_bound_ = ((plus_.r + minus_.r).sum() - missing + (slope_ * fixed_).sum()) / theta_;
    return fixed_ + fixed_bound_ * follow_;
  }
  const Matrix& direct(const Matrix& dU) override {
    dbound_ = fixed_bound_ + (follow_ * dU.array()).sum() / theta_;
    dW_ = (D_ * dU.array() + fixed_ + dbound_ * follow_).matrix();
    plus_.dz = dbound_ - dW_.array();
    minus_.dz = dbound_ + dW_.array();
    plus_.dx = plus_.r - plus_.x / plus_.z * plus_.dz;
    minus_.dx = minus_.r - minus_.x / minus_.z * minus_.dz;
    return dW_;
  }
  StepLength longest_step() const override {
    return {std::min(longest(plus_.z, plus_.dz), longest(minus_.z, minus_.dz)),
            std::min(longest(plus_.x, plus_.dx), longest(minus_.x, minus_.dx))};
  }
  double products_after(StepLength step) const override {
    return plus_.product_after(step.dual, step.primal) + minus_.product_after(step.dual, step.primal);
  }
  void advance(StepLength step, const Matrix& U) override {
    plus_.x += step.dual * plus_.dx;
    minus_.x += step.dual * minus_.dx;
    W_ += step.primal * dW_;
    bound_ += step.primal * dbound_;
    U_ = U;
    set_primal();
  }

 private:
  void set_primal() {
    plus_.z = bound_ - W_.array();
    minus_.z = bound_ + W_.array();
  }
  Pairs plus_, minus_;  // (y+, t - w), (y-, t + w)
  Entries D_, slope_, follow_, fixed_;
  double bound_ = 0, dbound_ = 0, theta_ = 0, fixed_bound_ = 0;
  Matrix W_, dW_, U_;
};

}  // namespace

std::unique_ptr<NormBarrier> make_entry_barrier(const Norm& norm) {
  if (norm.p() == 1) return std::make_unique<SumBarrier>();
  return std::make_unique<LargestBarrier>();
}

}  // namespace attmirror
