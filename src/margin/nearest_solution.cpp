// A primal-dual interior point method for the nearest point of a polyhedron within a ball,
//
//   min ||V - U||   subject to   ||V|| <= 1,   B V >= b,         both norms l_1, or both l_infinity
//
// Written as  min q^T x,  G x >= h,  B V >= b,  with V the first N unknowns of x and rows G that touch an entry of V and
// unknowns of its own:
//
//   l_infinity   x = (V, t)        1 - V, 1 + V, t - (V - U), t + (V - U) >= 0                        min t
//   l_1          x = (V, g, e)     g - V, g + V, e - (V - U), e + (V - U), 1 - sum g >= 0             min sum e
//
// With slacks s and multipliers y of all rows and Theta = y / s, Newton's step for s y -> tau has the matrix
// G^T Theta_G G + B^T Theta_B B. Its first part, K, is diagonal once the own unknowns of each entry are eliminated,
// except for t and the row of the sum, which add a term of rank one:
//
//   K^-1 restricted to V  =  diag(D) + sigma f f^T
//
// and with the matrix B K^-1 B^T + Theta_B^-1, of the size of the constraints, the second part is put back (Woodbury).
// So no matrix of the size of V is formed.
#include "margin/nearest_solution.hpp"

#include "margin/cholesky.hpp"
#include "margin/norm_barrier.hpp"
#include "margin/normal_matrix.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <vector>

namespace attmirror {

namespace {

// What the two norms differ in: the rows G and the solution of K x = r.
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
  virtual bool factor(const Vector& theta) = 0;
  virtual Vector solve(const Vector& r) const = 0;

  const Vector& D() const { return D_; }
  const Vector& f() const { return f_; }
  double sigma() const { return sigma_; }

 protected:
  Vector U_;
  std::ptrdiff_t n_;
  Vector D_, f_;
  double sigma_ = 0;
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
    result << y.segment(n_, n_) - y.head(n_) + y.segment(3 * n_, n_) - y.segment(2 * n_, n_), y.tail(2 * n_).sum();
    return result;
  }
  bool factor(const Vector& theta) override {
    const auto c = theta.segment(2 * n_, n_).array(), d = theta.segment(3 * n_, n_).array();
    D_ = 1 / (theta.head(n_).array() + theta.segment(n_, n_).array() + c + d);
    slope_ = d - c;
    f_ = D_.array() * slope_.array();
    // sum (c + d) - slope^2 D, without the cancellation where c or d is alone
    const double left = ((4 * c * d + (c + d) * (1 / D_.array() - c - d)) * D_.array()).sum();
    sigma_ = 1 / left;
    return D_.allFinite() && left > 0 && std::isfinite(sigma_);
  }
  Vector solve(const Vector& r) const override {
    const double t = (r[n_] - f_.dot(r.head(n_))) * sigma_;
    Vector x(n_ + 1);
    x << (D_.array() * (r.head(n_) - slope_ * t).array()).matrix(), t;
    return x;
  }

 private:
  Vector slope_;
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
  bool factor(const Vector& theta) override {
    const auto a = theta.head(n_).array(), b = theta.segment(n_, n_).array(),
               c = theta.segment(2 * n_, n_).array(), d = theta.segment(3 * n_, n_).array();
    ball_ = a + b;
    distance_ = c + d;
    ball_slope_ = (b - a) / ball_.array();
    distance_slope_ = (d - c) / distance_.array();
    D_ = 1 / (4 * a * b / ball_.array() + 4 * c * d / distance_.array());
    f_ = -D_.array() * ball_slope_.array();
    // K^-1 of the row of the sum, without that row itself
    of_sum_ = solve_entries(Vector::Zero(n_), Vector::Ones(n_), Vector::Zero(n_));
    const double left = 1 / theta[4 * n_] + of_sum_.segment(n_, n_).sum();
    sigma_ = -1 / left;
    return D_.allFinite() && of_sum_.allFinite() && left > 0;
  }
  Vector solve(const Vector& r) const override {
    const Vector x = solve_entries(r.head(n_), r.segment(n_, n_), r.tail(n_));
    return x + of_sum_ * (sigma_ * x.segment(n_, n_).sum());
  }

 private:
  Vector solve_entries(const Vector& V, const Vector& g, const Vector& e) const {
    Vector x(3 * n_);
    x.head(n_) = D_.array() *
                 (V.array() - ball_slope_.array() * g.array() - distance_slope_.array() * e.array());
    x.segment(n_, n_) = g.array() / ball_.array() - ball_slope_.array() * x.head(n_).array();
    x.tail(n_) = e.array() / distance_.array() - distance_slope_.array() * x.head(n_).array();
    return x;
  }
  Vector ball_, distance_, ball_slope_, distance_slope_, of_sum_;
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
      : B_(B, nullptr),
        rows_(U.rows()),
        cols_(U.cols()),
        n_(U.size()),
        m_(B.count()),
        all_(static_cast<std::size_t>(m_)),
        normal_(m_, m_) {
    std::iota(all_.begin(), all_.end(), std::ptrdiff_t{0});
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
    s_ = (multiply(x_) - h_).cwiseMax(norm_of_slacks());
    y_ = Vector::Constant(s_.size(), multiplier);
    for (int iteration = 0; iteration < 200; ++iteration) {
      keep_if_best();
      if (best_gap_ <= 1e-9) break;
      if (!step()) break;
    }
    if (!(best_gap_ <= 1e-7)) return std::nullopt;
    return best_;
  }

 private:
  double norm_of_slacks() const { return 0.1 / std::max<double>(1, q_.sum()); }

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
    const double dual = (q_ - adjoint(y_)).cwiseAbs().maxCoeff() / std::max(1.0, y_.maxCoeff());
    const double gap = std::max({std::fabs(value - bound), primal, dual});
    if (!(gap < best_gap_)) return;
    best_gap_ = gap;
    best_ = {Eigen::Map<const Matrix>(x_.data(), rows_, cols_), value, bound};
  }

  bool factor() {
    const Vector theta = y_.cwiseQuotient(s_);
    if (!theta.allFinite() || !entries_->factor(theta.head(theta.size() - m_))) return false;
    const PaddedMatrix D{Matrix(Eigen::Map<const Matrix>(entries_->D().data(), rows_, cols_))};
    for (double regularization = 1e-16; regularization < 1e-7; regularization *= 100) {
      normal_matrix(B_.constraints(), all_, D.view(), normal_.view());
      const Vector v = B_.forward(Eigen::Map<const Matrix>(entries_->f().data(), rows_, cols_));
      for (std::ptrdiff_t k = 0; k < m_; ++k) {
        normal_.view().eigen().row(k).head(k + 1) += (entries_->sigma() * v[k]) * v.head(k + 1).transpose();
        double& diagonal = normal_.view().data[k * normal_.view().stride + k];
        diagonal = (diagonal + s_[s_.size() - m_ + k] / y_[y_.size() - m_ + k]) * (1 + regularization);
        if (!std::isfinite(diagonal)) return false;
      }
      if (cholesky(normal_.view(), 1e-16, nullptr) == m_) return true;
    }
    return false;
  }

  // (G^T Theta G + B^T Theta B) x = r
  Vector solve_system(const Vector& r) {
    Vector x = entries_->solve(r);
    Vector mu = B_.forward(Eigen::Map<const Matrix>(x.data(), rows_, cols_));
    cholesky_solve(normal_.view(), m_, mu.data());
    Vector back = Vector::Zero(r.size());
    const Matrix V = B_.adjoint(mu);
    back.head(n_) = Eigen::Map<const Vector>(V.data(), n_);
    return x - entries_->solve(back);
  }
  Vector system_times(const Vector& x) {
    return adjoint(y_.cwiseQuotient(s_).cwiseProduct(multiply(x)));
  }

  void direct(double target, const Vector& neglected) {
    const Vector missing = multiply(x_) - h_ - s_;
    const Vector r = (target - s_.array() * y_.array()).matrix() - neglected;
    const Vector right = adjoint((r - y_.cwiseProduct(missing)).cwiseQuotient(s_)) - (q_ - adjoint(y_));
    dx_ = solve_system(right);
    for (int round = 0; round < 2; ++round) dx_ += solve_system(right - system_times(dx_));
    ds_ = multiply(dx_) + missing;
    dy_ = (r - y_.cwiseProduct(ds_)).cwiseQuotient(s_);
  }

  // False where no step can be made.
  bool step() {
    if (!factor()) return false;
    const double mu = s_.dot(y_) / static_cast<double>(s_.size());
    direct(0, Vector::Zero(s_.size()));
    const double primal = std::min(1.0, longest_nonnegative(s_, ds_)), dual = std::min(1.0, longest_nonnegative(y_, dy_));
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
  std::vector<std::ptrdiff_t> all_;
  PaddedMatrix normal_;
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
