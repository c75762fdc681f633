// A primal-dual interior point method for the nearest point of a polyhedron within a ball,
//
//   min ||V - U||   subject to   ||V|| <= 1,   B V >= b,         both norms l_1, or both l_infinity
//
// Written as  min q^T x,  G x >= h,  B V >= b,  with V the first N unknowns of x and rows G that touch an
// entry of V and unknowns of its own:
//
//   l_infinity   x = (V, t)        1 - V, 1 + V, t - (V - U), t + (V - U) >= 0                        min t
//   l_1          x = (V, g, e)     g - V, g + V, e - (V - U), e + (V - U), 1 - sum g >= 0             min sum e
//
// With slacks s and multipliers y of all rows and Theta = y / s, Newton's step for s y -> tau has the matrix
// G^T Theta_G G + B^T Theta_B B. The unknowns g and e of an entry are eliminated, which leaves diagonal terms
// on V that are sums of positive numbers, and a border of one row: t, or the row of the sum,
//
//   l_infinity   [ M  f ; f^T  sum (c + d) ]        M = diag(a + b + c + d) + B^T Theta_B B,   f = d - c
//   l_1          [ M  -f ; f^T  1/theta + sum 1/(a + b) ]   M = diag(4ab/(a + b) + 4cd/(c + d)) + B^T Theta_B B,
//                                                           f = (b - a)/(a + b)
//
// where a, b, c, d are the Theta of the four rows of an entry and theta that of the sum. M is factored as it
// is: formed in the space of the constraints instead (Woodbury), it would be smaller, but near the end the
// entries that are free have diagonals of 1e-10 beside others of 1e10, and their inverses cancel all digits.
// So the method is for up to some thousand entries.
#include "margin/nearest_solution.hpp"

#include "margin/norm_barrier.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include <Eigen/Cholesky>

namespace attmirror {

namespace {

// What the two norms differ in: the rows G, and how a solution with the factor of M is completed.
class EntryRows {
 public:
  explicit EntryRows(const Vector& U) : U_(U), n_(U.size()) {}
  virtual ~EntryRows() = default;

  virtual Vector costs() const = 0;
  virtual Vector start(const Vector& V) const = 0;
  virtual double first_multiplier() const = 0;
  virtual Vector rows(const Vector& x) const = 0;  // G x
  virtual Vector bounds() const = 0;               // h
  virtual Vector adjoint(const Vector& y) const = 0;
  // Takes Theta and adds G^T Theta G to M = B^T Theta B, which may be replaced by a matrix with the border. Returns M.
  virtual Matrix complete(const Vector& theta, const Matrix& M) = 0;
  // Called once M is factored, and for each right-hand side.
  virtual void prepare(const Eigen::LLT<Matrix>& factor) = 0;
  virtual Vector solve(const Eigen::LLT<Matrix>& factor, const Vector& r) const = 0;

 protected:
  Vector U_;
  std::ptrdiff_t n_;
};

class LargestEntry final : public EntryRows {
 public:
  using EntryRows::EntryRows;
  Vector costs() const override { return Vector::Unit(n_ + 1, n_); }
  Vector start(const Vector& V) const override {
    Vector x(n_ + 1);
    x << V, (V - U_).cwiseAbs().maxCoeff() + 0.1;
    return x;
  }
  double first_multiplier() const override { return 0.25 / static_cast<double>(n_); }
  Vector rows(const Vector& x) const override {
    const auto V = x.head(n_).array();
    const double t = x[n_];
    Vector result(4 * n_);
    result << -V, V, t - V, t + V;
    return result;
  }
  Vector bounds() const override {
    Vector result(4 * n_);
    result << Vector::Constant(2 * n_, -1), -U_, U_;
    return result;
  }
  Vector adjoint(const Vector& y) const override {
    Vector result(n_ + 1);
    result << y.segment(n_, n_) - y.head(n_) + y.segment(3 * n_, n_) - y.segment(2 * n_, n_),
        y.tail(2 * n_).sum();
    return result;
  }
  Matrix complete(const Vector& theta, const Matrix& M) override {
    const auto a = theta.head(n_), b = theta.segment(n_, n_), c = theta.segment(2 * n_, n_),
               d = theta.segment(3 * n_, n_);
    Matrix bordered(n_ + 1, n_ + 1);
    bordered.topLeftCorner(n_, n_) = M;
    bordered.diagonal().head(n_) += a + b + c + d;
    bordered.row(n_).head(n_) = (d - c).transpose();
    bordered.col(n_).head(n_) = d - c;
    bordered(n_, n_) = (c + d).sum();
    return bordered;
  }
  void prepare(const Eigen::LLT<Matrix>&) override {}
  Vector solve(const Eigen::LLT<Matrix>& factor, const Vector& r) const override { return factor.solve(r); }
};

class SumOfEntries final : public EntryRows {
 public:
  using EntryRows::EntryRows;
  Vector costs() const override {
    Vector result = Vector::Zero(3 * n_);
    result.tail(n_).setOnes();
    return result;
  }
  Vector start(const Vector& V) const override {
    const double off = 0.5 / static_cast<double>(n_);
    Vector x(3 * n_);
    x << V, V.cwiseAbs().array() + off, (V - U_).cwiseAbs().array() + off;
    return x;
  }
  double first_multiplier() const override { return 0.5; }
  Vector rows(const Vector& x) const override {
    const auto V = x.head(n_), g = x.segment(n_, n_), e = x.tail(n_);
    Vector result(4 * n_ + 1);
    result << g - V, g + V, e - V, e + V, -g.sum();
    return result;
  }
  Vector bounds() const override {
    Vector result(4 * n_ + 1);
    result << Vector::Zero(2 * n_), -U_, U_, -1;
    return result;
  }
  Vector adjoint(const Vector& y) const override {
    const auto a = y.head(n_), b = y.segment(n_, n_), c = y.segment(2 * n_, n_), d = y.segment(3 * n_, n_);
    Vector result(3 * n_);
    result << b - a + d - c, (a + b).array() - y[4 * n_], c + d;
    return result;
  }
  Matrix complete(const Vector& theta, const Matrix& M) override {
    const auto a = theta.head(n_).array(), b = theta.segment(n_, n_).array(),
               c = theta.segment(2 * n_, n_).array(), d = theta.segment(3 * n_, n_).array();
    ball_ = a + b;
    distance_ = c + d;
    ball_slope_ = (b - a) / ball_.array();
    distance_slope_ = (d - c) / distance_.array();
    corner_ = 1 / theta[4 * n_] + ball_.cwiseInverse().sum();
    Matrix result = M;
    result.diagonal() += (4 * a * b / ball_.array() + 4 * c * d / distance_.array()).matrix();
    return result;
  }
  void prepare(const Eigen::LLT<Matrix>& factor) override {
    of_border_ = factor.solve(ball_slope_);
    corner_ += ball_slope_.dot(of_border_);
  }
  Vector solve(const Eigen::LLT<Matrix>& factor, const Vector& r) const override {
    const Vector g = r.segment(n_, n_), e = r.tail(n_);
    const Vector inner =
        factor.solve(r.head(n_) - ball_slope_.cwiseProduct(g) - distance_slope_.cwiseProduct(e));
    const double border = (g.cwiseQuotient(ball_).sum() - ball_slope_.dot(inner)) / corner_;
    Vector x(3 * n_);
    x.head(n_) = inner + border * of_border_;
    x.segment(n_, n_) = (g.array() - border) / ball_.array() - ball_slope_.array() * x.head(n_).array();
    x.tail(n_) = e.array() / distance_.array() - distance_slope_.array() * x.head(n_).array();
    return x;
  }

 private:
  Vector ball_, distance_, ball_slope_, distance_slope_, of_border_;
  double corner_ = 0;
};

double longest_nonnegative(const Vector& x, const Vector& dx) {
  double result = 1e300;
  for (std::ptrdiff_t i = 0; i < x.size(); ++i)
    if (dx[i] < 0) result = std::min(result, -x[i] / dx[i]);
  return result;
}

class NearestPointSolver {
 public:
  NearestPointSolver(const ScaledConstraints& B, const Vector& bounds, const Norm& norm, const Matrix& U)
      : B_(B, nullptr), rows_(U.rows()), cols_(U.cols()), n_(U.size()), m_(B.count()), dense_(m_, n_) {
    for (std::ptrdiff_t k = 0; k < m_; ++k) {
      const Matrix A = B.left().eigen().row(k).transpose() * B.right().eigen().row(B.group_of(k));
      dense_.row(k) = Eigen::Map<const Vector>(A.data(), n_).transpose();
    }
    const Vector entries = Eigen::Map<const Vector>(U.data(), n_);
    if (norm.p() == 1)
      entries_ = std::make_unique<SumOfEntries>(entries);
    else
      entries_ = std::make_unique<LargestEntry>(entries);
    const Vector h = entries_->bounds();
    h_.resize(h.size() + m_);
    h_ << h, bounds;
    q_ = entries_->costs();
  }

  std::optional<NearestPoint> solve(const Matrix& start) {
    x_ = entries_->start(Eigen::Map<const Vector>(start.data(), n_));
    const double multiplier = entries_->first_multiplier();
    s_ = (multiply(x_) - h_).cwiseMax(0.1 / std::max(1.0, q_.sum()));
    y_ = Vector::Constant(s_.size(), multiplier);
    for (int iteration = 0; iteration < 200; ++iteration) {
      keep_if_best();
      if (best_gap_ <= 1e-8) break;
      if (!step()) break;
    }
    if (!(best_gap_ <= 1e-7)) return std::nullopt;
    return best_;
  }

 private:
  Vector multiply(const Vector& x) {
    const Vector entries = entries_->rows(x);
    Vector result(entries.size() + m_);
    result << entries, B_.forward(Eigen::Map<const Matrix>(x.data(), rows_, cols_));
    return result;
  }

  Vector adjoint(const Vector& y) {
    Vector result = entries_->adjoint(y.head(y.size() - m_));
    const Matrix V = B_.adjoint(y.tail(m_));
    result.head(n_) += Eigen::Map<const Vector>(V.data(), n_);
    return result;
  }

  // The gap, and by how much the linear equations are missed, all of which have entries of the order of 1.
  void keep_if_best() {
    const double value = q_.dot(x_), bound = h_.dot(y_);
    const double primal = (multiply(x_) - h_ - s_).cwiseAbs().maxCoeff();
    const double dual = (q_ - adjoint(y_)).cwiseAbs().maxCoeff();
    const double gap = std::max({std::fabs(value - bound), primal, dual});
    if (!(gap < best_gap_)) return;
    best_gap_ = gap;
    best_ = {Eigen::Map<const Matrix>(x_.data(), rows_, cols_), value, bound};
  }

  bool factor() {
    const Vector theta = y_.cwiseQuotient(s_);
    if (!theta.allFinite()) return false;
    const Matrix scaled = theta.tail(m_).cwiseSqrt().asDiagonal() * dense_;
    Matrix M = Matrix::Zero(n_, n_);
    M.selfadjointView<Eigen::Lower>().rankUpdate(scaled.transpose());
    M.triangularView<Eigen::StrictlyUpper>() = M.transpose();
    const Matrix whole = entries_->complete(theta.head(theta.size() - m_), M);
    if (!whole.allFinite()) return false;
    factor_.compute(whole);
    for (double regularization = 1e-15; factor_.info() != Eigen::Success && regularization < 1e-8;
         regularization *= 100) {
      Matrix regular = whole;
      regular.diagonal() *= 1 + regularization;
      factor_.compute(regular);
    }
    if (factor_.info() != Eigen::Success) return false;
    entries_->prepare(factor_);
    return true;
  }

  // Refined by conjugate gradients on the operators themselves, the factor being a preconditioner as good as rounding
  // lets it be.
  Vector solve_refined(const Vector& right) {
    Vector x = entries_->solve(factor_, right), residual = right - system_times(x), best = x;
    double least = residual.norm(), rho = 0;
    Vector direction = Vector::Zero(right.size());
    for (int round = 0; round < 20 && least > 1e-13 * right.norm(); ++round) {
      const Vector z = entries_->solve(factor_, residual);
      const double next_rho = residual.dot(z);
      if (!(next_rho > 0)) break;
      direction = z + (round == 0 ? 0 : next_rho / rho) * direction;
      rho = next_rho;
      const double curvature = direction.dot(system_times(direction));
      if (!(curvature > 0)) break;
      x += (rho / curvature) * direction;
      residual = right - system_times(x);
      if (!(residual.norm() < least)) continue;
      least = residual.norm();
      best = x;
    }
    return best;
  }
  Vector system_times(const Vector& x) { return adjoint(y_.cwiseQuotient(s_).cwiseProduct(multiply(x))); }

  void direct(double target, const Vector& neglected) {
    const Vector missing = multiply(x_) - h_ - s_;
    const Vector r = (target - s_.array() * y_.array()).matrix() - neglected;
    const Vector right = adjoint((r - y_.cwiseProduct(missing)).cwiseQuotient(s_)) - (q_ - adjoint(y_));
    dx_ = solve_refined(right);
    ds_ = multiply(dx_) + missing;
    dy_ = (r - y_.cwiseProduct(ds_)).cwiseQuotient(s_);
  }

  // False where no step can be made.
  bool step() {
    if (!factor()) return false;
    const double mu = s_.dot(y_) / static_cast<double>(s_.size());
    direct(0, Vector::Zero(s_.size()));
    const double primal = std::min(1.0, longest_nonnegative(s_, ds_)),
                 dual = std::min(1.0, longest_nonnegative(y_, dy_));
    const double left = (s_ + primal * ds_).dot(y_ + dual * dy_) / static_cast<double>(s_.size()) / mu;
    direct(std::pow(std::clamp(left, 0.0, 1.0), 3) * mu, ds_.cwiseProduct(dy_));
    const double along_s = std::min(1.0, 0.99 * longest_nonnegative(s_, ds_)),
                 along_y = std::min(1.0, 0.99 * longest_nonnegative(y_, dy_));
    if (!(std::max(along_s, along_y) > 1e-10) || !dx_.allFinite() || !dy_.allFinite()) return false;
    x_ += along_s * dx_;
    s_ += along_s * ds_;
    y_ += along_y * dy_;
    return s_.minCoeff() > 0 && y_.minCoeff() > 0;
  }

  MarginOperator B_;
  std::ptrdiff_t rows_, cols_, n_, m_;
  Matrix dense_;  // a row for each constraint: a_k z_g^T, entry by entry
  Eigen::LLT<Matrix> factor_;
  std::unique_ptr<EntryRows> entries_;
  Vector h_, q_, x_, s_, y_, dx_, ds_, dy_;
  double best_gap_ = std::numeric_limits<double>::infinity();
  NearestPoint best_;
};

}  // namespace

std::optional<NearestPoint> nearest_point(const ScaledConstraints& B, const Vector& bounds, const Norm& norm,
                                          const Matrix& U, const Matrix& start) {
  return NearestPointSolver(B, bounds, norm, U).solve(start);
}

}  // namespace attmirror
