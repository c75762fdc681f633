#include "margin/group_ascent.hpp"

#include "base/numbers.hpp"
#include "margin/chosen_kernels.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

namespace attmirror {

namespace {

// Quadratic models without progress after which the support is taken to be too ill-conditioned for this method.
constexpr int most_fruitless = 7;
// Passes over the groups for each model; from nothing, and otherwise.
constexpr int first_sweeps = 40, sweeps_each = 12;
constexpr int most_products = 500;  // of conjugate gradients

double dot(std::span<const double> a, std::span<const double> b) {
  double sum = 0;
  for (std::size_t k = 0; k < a.size(); ++k) sum += a[k] * b[k];
  return sum;
}

struct Quality {
  double gap = infinity;  // relative, over all constraints
  double dual = 0;        // lower bound on the norm of every feasible W
  // Of the optimality conditions: largest |c_k - margin_k| where lambda_k may still move.
  double violation = 0;
};

class GroupAscent {
 public:
  GroupAscent(const ScaledConstraints& constraints, const Norm& norm, const SolverLimits& limits)
      : all_(constraints),
        norm_(norm),
        q_(norm.p() / (norm.p() - 1)),
        limits_(limits),
        lambda_(static_cast<std::size_t>(constraints.count()), 0.0),
        margins_(lambda_.size()),
        diagonal_(lambda_.size()),
        steps_(lambda_.size()),
        free_(lambda_.size(), 0),
        U_(constraints.rows(), constraints.cols()),
        W_(U_),
        D_(U_),
        V_(U_),
        moved_(U_),
        transposed_(constraints.cols(), constraints.rows()),
        weights_(transposed_),
        curvatures_(constraints.groups(), constraints.rows()),
        scratch_(constraints.make_scratch()),
        work_(static_cast<std::size_t>(2 * padded(constraints.rows()))) {
    for (std::ptrdiff_t g = 0; g <= all_.groups(); ++g) everyone_begin_.push_back(all_.first(g));
    for (std::ptrdiff_t k = 0; k < all_.count(); ++k) {
      everyone_.push_back(k);
      free_[static_cast<std::size_t>(k)] = all_.is_equality(k) ? 1 : 0;
    }
  }

  SolverAnswer solve(const SolverStart& start) {
    if (start.has_multipliers()) lambda_ = start.lambda;
    SolverAnswer answer;
    Quality best;
    AlignedVector best_lambda = lambda_;
    PaddedMatrix best_W = W_;
    // Progress is a gap that is halved, or a dual that still rises by a percent.
    Quality milestone;
    int fruitless = 0;
    for (answer.iterations = 0;; ++answer.iterations) {
      rescale();
      linearize();
      const Quality now = measure();
      if (now.gap < best.gap || answer.iterations == 0) {
        best = now;
        best_lambda = lambda_;
        best_W = W_;
      }
      ++fruitless;
      if (now.gap < 0.5 * milestone.gap || now.dual > 1.01 * milestone.dual) {
        milestone = now;
        fruitless = 0;
      }
      if (now.dual > limits_.max_norm) {
        answer.outcome = Outcome::infeasible;
        best_lambda = lambda_;
        best_W = W_;
        break;
      }
      answer.outcome = Outcome::solved;
      if (best.gap <= limits_.tolerance / 100) break;
      if (fruitless >= 3 && best.gap <= limits_.tolerance / 10) break;
      answer.outcome = Outcome::stalled;
      if (fruitless >= most_fruitless) break;
      answer.outcome = Outcome::out_of_iterations;
      if (answer.iterations >= limits_.iterations_left) break;
      answer.outcome = Outcome::out_of_time;
      if (limits_.out_of_time()) break;
      improve(now);
    }
    answer.W = std::move(best_W);
    answer.lambda = std::move(best_lambda);
    return answer;
  }

 private:
  // The best multiple of lambda: c^T lambda = sum |U|^q at the optimum.
  void rescale() {
    all_.adjoint(lambda_, scratch_, U_.view(), limits_.pool);
    const double linear = dot(all_.bounds(), lambda_), power = power_sum(U_);
    if (!(linear > 0 && power > 0)) return;
    const double factor = std::pow(linear / power, 1 / (q_ - 1));
    if (!std::isfinite(factor) || factor == 0) return;
    for (double& l : lambda_) l *= factor;
    for (double& u : entries(U_)) u *= factor;
  }

  // W and D at U.
  void linearize() {
    const auto u = entries(U_);
    auto w = entries(W_), d = entries(D_);
    double largest = 0;
    for (std::size_t i = 0; i < u.size(); ++i) {
      const double size = std::fabs(u[i]);
      const double power = q_ == 2 ? 1 : std::pow(size, q_ - 2);
      w[i] = power * u[i];
      d[i] = (q_ - 1) * power;
      largest = std::max(largest, d[i]);
    }
    // Where U vanishes the dual is flat; a little curvature keeps the model's steps finite. At the start all of U does.
    const double least = largest > 0 ? 1e-6 * largest : 1;
    for (double& x : d) x = std::max(x, least);
  }

  Quality measure() {
    all_.forward(W_.view(), scratch_, margins_, limits_.pool);
    Quality result;
    double worst = infinity, off = 0;
    for (std::size_t k = 0; k < lambda_.size(); ++k) {
      const double c = all_.bounds()[k], slack = margins_[k] - c;
      if (free_[k])
        off = std::max(off, std::fabs(slack));
      else if (c > 0)
        worst = std::min(worst, margins_[k] / c);
      else
        off = std::max(off, -slack);
      result.violation = std::max(result.violation, free_[k] || lambda_[k] > 0 ? std::fabs(slack) : -slack);
    }
    const double size = norm(W_.view(), norm_), dual_size = norm(U_.view(), norm_.dual());
    if (size == 0) {
      if (result.violation == 0) result.gap = 0;
      return result;
    }
    result.dual = dual_size > 0 ? dot(all_.bounds(), lambda_) / dual_size : 0;
    // W may be scaled until its worst margin is 1. Equalities and bounds of 0 are not mended by that: what they are off
    // counts in full.
    if (worst > 0) result.gap = std::max(1 - result.dual / size * std::min(worst, 1.0), off / size);
    return result;
  }

  double dual_value(const PaddedMatrix& U, double linear) const { return linear - power_sum(U) / q_; }

  // Ascends the quadratic model at lambda, then goes as far towards its maximum as the dual itself ascends.
  void improve(const Quality& before) {
    const AlignedVector old = lambda_;
    const PaddedMatrix old_U = U_;
    const double old_linear = dot(all_.bounds(), old);
    const double old_value = dual_value(U_, old_linear);
    // While the support is not known its linear system is of no use: after a refusal there are only sweeps for once.
    const bool wait = refused_;
    sweeps(old_linear == 0 ? first_sweeps : wait ? 2 * sweeps_each : sweeps_each);
    refused_ = !wait && !conjugate_gradients(old, std::clamp(1e-2 * before.violation, 1e-13, 0.1));
    all_.adjoint(lambda_, scratch_, U_.view(), limits_.pool);
    const double linear = dot(all_.bounds(), lambda_);
    const AlignedVector target = lambda_;
    const PaddedMatrix target_U = U_;
    for (double t = 1; t > 1e-6; t /= 2) {
      if (dual_value(U_, old_linear + t * (linear - old_linear)) >= old_value - 1e-14 * std::fabs(old_value))
        return;
      const double s = t / 2;
      for (std::size_t k = 0; k < lambda_.size(); ++k) lambda_[k] = old[k] + s * (target[k] - old[k]);
      for (std::size_t i = 0; i < entries(U_).size(); ++i)
        entries(U_)[i] = entries(old_U)[i] + s * (entries(target_U)[i] - entries(old_U)[i]);
    }
    lambda_ = old;
  }

  // Passes over the groups on the quadratic model: some over all constraints, most over those with lambda > 0.
  void sweeps(int count) {
    const bool weighted = q_ != 2;
    for (std::ptrdiff_t i = 0; i < all_.rows(); ++i)
      for (std::ptrdiff_t j = 0; j < all_.cols(); ++j) {
        transposed_.view().eigen()(j, i) = W_.view().eigen()(i, j);
        weights_.view().eigen()(j, i) = D_.view().eigen()(i, j);
      }
    kernels::AscentTask task{
        .left = all_.left().data,
        .left_stride = all_.left().stride,
        .right = all_.right().data,
        .right_stride = all_.right().stride,
        .cols = all_.cols(),
        .list = everyone_.data(),
        .begin = everyone_begin_.data(),
        .steps = steps_.data(),
        .bounds = all_.bounds().data(),
        .free = free_.data(),
        .curvatures = curvatures_.view().data,
        .weights = weighted ? weights_.view().data : nullptr,
        .lambda = lambda_.data(),
        .transposed = transposed_.view().data,
        .work = work_.data(),
        .inner_sweeps = 3,
    };
    ascent_kernels().curvatures(task, 0, all_.groups(), curvatures_.view().data, diagonal_.data());
    for (int pass = 0; pass < count; ++pass) {
      // Constraints are looked for often at first, when lambda is still far off.
      const bool over_all = pass < 2 || pass % 6 == 0;
      if (over_all) {
        task.list = everyone_.data();
        task.begin = everyone_begin_.data();
        for (std::size_t k = 0; k < steps_.size(); ++k) steps_[k] = 1 / diagonal_[k];
      }
      ascent_kernels().sweep(task, all_.groups());
      if (over_all) {
        list_movable();
        task.list = movable_.data();
        task.begin = movable_begin_.data();
        for (std::size_t i = 0; i < movable_.size(); ++i)
          steps_[i] = 1 / diagonal_[static_cast<std::size_t>(movable_[i])];
      }
    }
  }

  void list_movable() {
    movable_.clear();
    movable_begin_.clear();
    for (std::ptrdiff_t g = 0; g < all_.groups(); ++g) {
      movable_begin_.push_back(static_cast<std::ptrdiff_t>(movable_.size()));
      for (std::ptrdiff_t k = all_.first(g); k < all_.first(g + 1); ++k)
        if (free_[static_cast<std::size_t>(k)] || lambda_[static_cast<std::size_t>(k)] != 0)
          movable_.push_back(k);
    }
    movable_begin_.push_back(static_cast<std::ptrdiff_t>(movable_.size()));
  }

  // The maximum of the model over the multipliers that are not 0, cut off at 0; preconditioned by the diagonal.
  // Returns whether the model rose; otherwise lambda is as before.
  bool conjugate_gradients(const AlignedVector& origin, double tolerance) {
    list_movable();
    if (movable_.empty()) return true;
    const ScaledConstraints some = all_.subset(movable_);
    const std::size_t size = movable_.size();
    PaddedMatrix scratch = some.make_scratch();
    AlignedVector residual(size), step(size, 0.0), direction(size), image(size), scaled(size);
    const auto index = [&](std::size_t i) { return static_cast<std::size_t>(movable_[i]); };
    const double value_before = model_value(origin);
    some.forward(V_.view(), scratch, residual, limits_.pool);
    for (std::size_t i = 0; i < size; ++i) {
      residual[i] = some.bounds()[i] - residual[i];
      direction[i] = scaled[i] = residual[i] / diagonal_[index(i)];
    }
    double product = dot(residual, scaled);
    const double enough = tolerance * tolerance * product;
    for (int it = 0; it < most_products && product > enough && product > 1e-30; ++it) {
      some.adjoint(direction, scratch, moved_.view(), limits_.pool);
      for (std::size_t i = 0; i < entries(moved_).size(); ++i) entries(moved_)[i] *= entries(D_)[i];
      some.forward(moved_.view(), scratch, image, limits_.pool);
      const double curvature = dot(direction, image);
      if (!(curvature > 0)) break;
      const double length = product / curvature;
      for (std::size_t i = 0; i < size; ++i) {
        step[i] += length * direction[i];
        residual[i] -= length * image[i];
        scaled[i] = residual[i] / diagonal_[index(i)];
      }
      const double next = dot(residual, scaled), ratio = next / product;
      product = next;
      for (std::size_t i = 0; i < size; ++i) direction[i] = scaled[i] + ratio * direction[i];
    }
    const AlignedVector before = lambda_;
    for (double t = 1; t > 1e-3; t /= 4) {
      for (std::size_t i = 0; i < size; ++i) {
        const std::size_t k = index(i);
        lambda_[k] = before[k] + t * step[i];
        if (!free_[k] && lambda_[k] < 0) lambda_[k] = 0;
      }
      if (model_value(origin) >= value_before) return true;
    }
    lambda_ = before;
    return false;
  }

  // The model's value at lambda_, relative to its origin; V = W + D o B^T (lambda - origin).
  double model_value(const AlignedVector& origin) {
    AlignedVector difference(lambda_.size());
    for (std::size_t k = 0; k < lambda_.size(); ++k) difference[k] = lambda_[k] - origin[k];
    all_.adjoint(difference, scratch_, moved_.view(), limits_.pool);
    double value = dot(all_.bounds(), difference);
    for (std::size_t i = 0; i < entries(V_).size(); ++i) {
      const double change = entries(moved_)[i], bent = entries(D_)[i] * change;
      value -= entries(W_)[i] * change + 0.5 * bent * change;
      entries(V_)[i] = entries(W_)[i] + bent;
    }
    return value;
  }

  double power_sum(const PaddedMatrix& U) const {
    double sum = 0;
    for (const double u : entries(U)) sum += q_ == 2 ? u * u : std::pow(std::fabs(u), q_);
    return sum;
  }

  static std::span<double> entries(PaddedMatrix& m) {
    return {m.view().data, static_cast<std::size_t>(m.view().flat_size())};
  }
  static std::span<const double> entries(const PaddedMatrix& m) {
    return {m.view().data, static_cast<std::size_t>(m.view().flat_size())};
  }

  const ScaledConstraints& all_;
  Norm norm_;
  double q_;
  const SolverLimits& limits_;
  AlignedVector lambda_, margins_, diagonal_, steps_;
  std::vector<unsigned char> free_;
  PaddedMatrix U_, W_, D_, V_, moved_, transposed_, weights_, curvatures_, scratch_;
  AlignedVector work_;
  bool refused_ = false;  // the last step of conjugate gradients
  std::vector<std::ptrdiff_t> everyone_, everyone_begin_, movable_, movable_begin_;
};

}  // namespace

SolverAnswer solve_group_ascent(const ScaledConstraints& constraints, const Norm& norm,
                                const SolverLimits& limits, const SolverStart& start) {
  return GroupAscent(constraints, norm, limits).solve(start);
}

}  // namespace attmirror
