// The smooth norms, l_p and Schatten-p with 1 < p < infinity (see norm_barrier.hpp). They need no barrier: with W =
// omega w the optimality condition is a curve for each entry or singular value,
//
//   u = w^{p-1}, the same as w = u^{q-1},   1/p + 1/q = 1
//
// Newton's method in w fails where the curve is steep (p near 1: w = u^100 changes by a factor of e for one percent
// of u), in u where it is flat (large p: most of u is 0 up to rounding while w is not). The position on a monotone
// curve is given as well by t = w + u (Minty): t moves like w where w moves, and like u where u moves. Tangent steps
// in t,
//
//   dw = D g,   dt = dw + g,   g = dU + (U - u),   D = dw/du
//
// find their way around the bend from either side. T is a matrix: its singular vectors are those of both w(T) and u(T),
// and D in their basis is made of divided differences,
//
//   (w_i - w_j)/(u_i - u_j) for the symmetric part of a pair of mirror images, (w_i + w_j)/(u_i + u_j) for the other.
//
// The larger power is softened, y = x^e + delta x with delta going to zero with the gap, which bounds D from above for
// p > 2 and from below for p < 2. The curve knows no scale: omega is chosen so that |w|^p = |u|^q is 1 on average.
#include "margin/norm_barrier.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

namespace attmirror {

namespace {

// y = x^e + delta x for x >= 0, e >= 1, as a curve of t = x + y.
struct Curve {
  double e = 1, delta = 0;

  double y(double x) const { return std::pow(x, e) + delta * x; }
  double ratio(double x) const { return (e == 1 ? 1 : std::pow(x, e - 1)) + delta; }  // y / x
  double slope(double x) const { return (e == 1 ? 1 : e * std::pow(x, e - 1)) + delta; }
  double t(double x) const { return x + y(x); }

  // Convex and increasing: Newton's method from the right falls monotonically.
  double x_at(double t) const {
    if (!(t > 0)) return 0;
    double x = std::min(t / (1 + delta), std::pow(t, 1 / e));
    for (int step = 0; step < 100; ++step) {
      const double next = x - (this->t(x) - t) / (1 + slope(x));
      if (!(next < x)) break;
      x = std::max(next, 0.0);
    }
    return x;
  }
  double divided_difference(double a, double b) const {
    if (std::fabs(a - b) <= 1e-6 / e * std::max(a, b)) return slope(0.5 * (a + b));
    return (y(a) - y(b)) / (a - b);
  }
  double divided_sum(double a, double b) const { return a + b > 0 ? (y(a) + y(b)) / (a + b) : ratio(0); }
};

class PowerBarrier final : public NormBarrier {
 public:
  explicit PowerBarrier(const Norm& norm)
      : entrywise_(norm.is_entrywise()), p_(norm.p()), weights_are_x_(norm.p() >= 2) {
    curve_.e = weights_are_x_ ? p_ - 1 : norm.dual().p() - 1;
    curve_.delta = 1e-3;
  }

  // The point of the curve that belongs to both, W and U of the same size.
  double begin(const Matrix& W, const Matrix& U) override {
    const Norm norm_of_W = entrywise_ ? Norm::l(p_) : Norm::schatten(p_), dual = norm_of_W.dual();
    const auto count = static_cast<double>(entrywise_ ? W.size() : std::min(W.rows(), W.cols()));
    unit_ = std::pow(count, 1 / p_);
    const double factor = std::pow(count, 1 / dual.p()) / norm(U, dual);
    U_ = factor * U;
    omega_ = norm(W, norm_of_W) / unit_;
    T_ = W / omega_ + U_;
    place();
    return factor;
  }
  const Matrix& weights() const override { return W_; }
  double products() const override { return 0; }
  std::ptrdiff_t pairs() const override { return 0; }

  bool linearize() override {
    const auto invert = [&](double slope) { return weights_are_x_ ? 1 / slope : slope; };
    if (entrywise_) {
      const Matrix& x = weights_are_x_ ? w_ : u_;
      alpha_ = x.unaryExpr([&](double value) { return omega_ * invert(curve_.slope(std::fabs(value))); });
      return alpha_.allFinite();
    }
    const std::ptrdiff_t both = x_.size();
    alpha_.resize(T_.rows(), T_.cols());
    beta_.resize(both, both);
    for (std::ptrdiff_t i = 0; i < alpha_.rows(); ++i)
      for (std::ptrdiff_t j = 0; j < alpha_.cols(); ++j) {
        if (i >= both || j >= both) {
          alpha_(i, j) = omega_ * invert(curve_.ratio(x_[std::min(i, j)]));
          continue;
        }
        const double with = invert(curve_.divided_difference(x_[i], x_[j]));
        const double against = invert(curve_.divided_sum(x_[i], x_[j]));
        alpha_(i, j) = omega_ * 0.5 * (with + against);
        beta_(i, j) = omega_ * 0.5 * (with - against);
      }
    return alpha_.allFinite() && beta_.allFinite();
  }
  void normal_matrix(MarginOperator& B, MatrixView out) const override {
    if (entrywise_) {
      std::vector<std::ptrdiff_t> all(static_cast<std::size_t>(B.constraints().count()));
      std::iota(all.begin(), all.end(), std::ptrdiff_t{0});
      const PaddedMatrix weights(alpha_);
      attmirror::normal_matrix(B.constraints(), all, weights.view(), out, B.pool());
      return;
    }
    const SpectralWeights weights{PaddedMatrix(Matrix(B.constraints().left().eigen() * svd_.P)),
                                  PaddedMatrix(Matrix(B.constraints().right().eigen() * svd_.Q)), alpha_,
                                  beta_};
    normal_matrix_spectral(B.constraints(), weights, out, B.pool());
  }
  PreciseMatrix precise_normal_matrix(const PreciseConstraints& B) const override {
    if (entrywise_) return B.normal_matrix(B.all(), PaddedMatrix(alpha_).view());
    return B.spectral_normal_matrix(svd_.P, svd_.Q, alpha_, beta_);
  }
  Matrix apply(const Matrix& dU) const override {
    if (entrywise_) return alpha_.cwiseProduct(dU);
    const std::ptrdiff_t both = beta_.rows();
    const Matrix rotated = svd_.P.transpose() * dU * svd_.Q;
    Matrix weighed = alpha_.cwiseProduct(rotated);
    weighed.topLeftCorner(both, both) += beta_.cwiseProduct(rotated.topLeftCorner(both, both).transpose());
    return svd_.P * weighed * svd_.Q.transpose();
  }

  Matrix offset(double, Order) override { return apply(U_ - u_); }
  const Matrix& direct(const Matrix& dU) override {
    const Matrix g = dU + (U_ - u_);
    dW_ = apply(g);
    dT_ = dW_ / omega_ + g;
    return dW_;
  }
  StepLength longest_step() const override {
    return {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity()};
  }
  double products_after(StepLength) const override { return 0; }
  void advance(StepLength step, const Matrix& U) override {
    previous_T_ = T_;
    previous_U_ = U_;
    T_ += step.primal * dT_;
    U_ = U;
    place();
  }

  bool is_curve() const override { return true; }
  double residual() const override {
    return (U_ - u_).norm() / std::max({U_.norm(), u_.norm(), std::numeric_limits<double>::min()});
  }
  void back() override {
    T_ = previous_T_;
    U_ = previous_U_;
    place();
  }
  double rescale(double gap) override {
    const double size = norm(entrywise_ ? w_ : Matrix(weights_of(x_)), Norm::l(p_)) / unit_;
    if (!(size > 0) || !std::isfinite(size)) return 1;
    const double factor = std::pow(size, 1 - p_);
    if (!(factor > 0) || !std::isfinite(factor)) return 1;
    const double shrink = weights_are_x_ ? 1 / size : factor;
    curve_.delta = std::clamp(1e-2 * gap, 1e-14, curve_.delta);
    const auto position = [&](double x) { return std::copysign(curve_.t(std::fabs(x) * shrink), x); };
    if (entrywise_)
      T_ = (weights_are_x_ ? w_ : u_).unaryExpr(position);
    else
      T_ = compose(svd_, x_.unaryExpr(position));
    omega_ *= size;
    U_ *= factor;
    place();
    return factor;
  }

 private:
  static Matrix compose(const FullSvd& svd, const Vector& values) {
    const std::ptrdiff_t both = values.size();
    return svd.P.leftCols(both) * values.asDiagonal() * svd.Q.leftCols(both).transpose();
  }
  Vector weights_of(const Vector& x) const {
    return weights_are_x_ ? x : Vector(x.unaryExpr([&](double value) { return curve_.y(value); }));
  }
  // w, u and W from T.
  void place() {
    const auto x_of = [&](double t) { return std::copysign(curve_.x_at(std::fabs(t)), t); };
    const auto y_of = [&](double x) { return std::copysign(curve_.y(std::fabs(x)), x); };
    Matrix& x = weights_are_x_ ? w_ : u_;
    Matrix& y = weights_are_x_ ? u_ : w_;
    if (entrywise_) {
      x = T_.unaryExpr(x_of);
      y = x.unaryExpr(y_of);
    } else {
      svd_ = full_svd(T_);
      x_ = svd_.values.unaryExpr(x_of);
      x = compose(svd_, x_);
      y = compose(svd_, x_.unaryExpr(y_of));
    }
    W_ = omega_ * w_;
  }

  bool entrywise_;
  double p_;
  bool weights_are_x_;  // p >= 2: u is the larger power, of x = w; otherwise w is, of x = u
  Curve curve_;
  double omega_ = 1, unit_ = 1;  // the scale of W; ||w||_p
  Matrix T_, previous_T_, dT_, U_, previous_U_;
  Matrix w_, u_, W_, dW_;
  FullSvd svd_;          // of T, for Schatten norms
  Vector x_;             // on the curve at its singular values
  Matrix alpha_, beta_;  // D
};

}  // namespace

std::unique_ptr<NormBarrier> make_power_barrier(const Norm& norm) {
  return std::make_unique<PowerBarrier>(norm);
}

}  // namespace attmirror
