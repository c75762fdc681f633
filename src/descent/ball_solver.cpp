#include "descent/ball_solver.hpp"

#include "mirror/schatten_map.hpp"
#include <attmirror/mirror/lp_map.hpp>

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <utility>

#include <Eigen/Dense>

namespace attmirror {

namespace {

constexpr double longest_step = 1e6, shortest_step = 1e-8;  // of mirror steps
constexpr std::ptrdiff_t krylov_size = 60;    // supports of the papers' problems have about 20 tokens
constexpr std::ptrdiff_t spectrum_size = 24;  // extreme eigenvalues show up early
constexpr double difference_step = 1e-5;      // of a logit: truncation and rounding are then alike
constexpr double saddle_eigenvalue = -0.01;   // well beyond what differences of gradients may be wrong by

using Flat = Eigen::Map<const Matrix>;

}  // namespace

BallSolver::BallSolver(const Attention& model, const Norm& norm)
    : engine_(model, Jacobian::safe, pool_),
      weights_(model.blocks()),
      gradient_(engine_.make_gradient()),
      shapes_(model.trained_blocks()) {
  const bool factored = std::holds_alternative<KQ>(model.parameterization());
  p_ = factored ? 2 : norm.p();
  euclidean_ = p_ == 2;
  if (!euclidean_) {
    if (norm.is_entrywise())
      map_ = std::make_unique<LpMap>(p_);
    else
      map_ = std::make_unique<SchattenMap>(p_);
  }
  std::ptrdiff_t begin = 0;
  std::ptrdiff_t factors = -1;  // the ball of K and Q
  for (std::size_t b = 0; b < shapes_.size(); ++b) {
    const BlockShape& shape = shapes_[b];
    const bool factor = shape.name == Block::K || shape.name == Block::Q;
    if (!factor || factors < 0) {
      balls_.emplace_back();
      balls_.back().begin = begin;
      if (factor) factors = static_cast<std::ptrdiff_t>(balls_.size()) - 1;
    }
    Ball& ball = factor ? balls_[static_cast<std::size_t>(factors)] : balls_.back();
    ball.trained.push_back(static_cast<std::ptrdiff_t>(b));
    ball.model.push_back(weights_.find(shape.name));
    ball.size += shape.rows * shape.cols;
    ball.rows = shape.rows;
    ball.cols = shape.cols;
    begin += shape.rows * shape.cols;
  }
  for (const Ball& ball : balls_)
    buffers_.emplace_back(euclidean_ ? 0 : ball.rows, euclidean_ ? 0 : ball.cols);
}

bool BallSolver::moves_primal() const {
  return !euclidean_ && p_ > 2 && dynamic_cast<const LpMap*>(map_.get()) != nullptr;
}

bool BallSolver::exhausted() const {
  if (options_.on_step) options_.on_step();
  return evaluations_ >= options_.max_evaluations || options_.stop.requested();
}

double BallSolver::largest_radius() const {
  double radius = 1;
  for (const Ball& ball : balls_) radius = std::max(radius, ball.radius);
  return radius;
}

void BallSolver::set_primal(Point& x) {
  for (std::size_t b = 0; b < balls_.size(); ++b) {
    auto y = part(x.y, balls_[b]);
    auto w = part(x.w, balls_[b]);
    if (euclidean_) {
      const double length = y.stableNorm();
      if (length > 0) y /= length;
      w = y;
      continue;
    }
    const MatrixView buffer = buffers_[b].view();
    buffer.eigen() = Flat(y.data(), balls_[b].rows, balls_[b].cols);
    const double length = map_->steepest(buffer, buffer);
    if (length > 0) y /= length;
    Eigen::Map<Matrix>(w.data(), balls_[b].rows, balls_[b].cols) = buffer.eigen();
  }
}

void BallSolver::set_dual(Point& x) {
  for (std::size_t b = 0; b < balls_.size(); ++b) {
    auto y = part(x.y, balls_[b]);
    auto w = part(x.w, balls_[b]);
    if (euclidean_) {
      const double length = w.stableNorm();
      if (length > 0) w /= length;
      y = w;
      continue;
    }
    const MatrixView buffer = buffers_[b].view();
    buffer.eigen() = Flat(w.data(), balls_[b].rows, balls_[b].cols);
    const double length = map_->norm(buffer);
    if (length > 0) w /= length;
    buffer.eigen() = Flat(w.data(), balls_[b].rows, balls_[b].cols);
    map_->map(buffer, buffer);
    Eigen::Map<Matrix>(y.data(), balls_[b].rows, balls_[b].cols) = buffer.eigen();
  }
}

void BallSolver::evaluate(Point& x) {
  for (const Ball& ball : balls_) {
    std::ptrdiff_t at = ball.begin;
    for (std::size_t k = 0; k < ball.trained.size(); ++k) {
      const MatrixView block = weights_.view(ball.model[k]);
      block.eigen() = ball.radius * Flat(x.w.data() + at, block.rows, block.cols);
      at += block.rows * block.cols;
    }
  }
  const Evaluation value = engine_.evaluate(weights_, gradient_);
  ++evaluations_;
  x.loss = value.loss;
  x.max_softmax = value.max_softmax;
  x.gap = 0;
  for (std::size_t b = 0; b < balls_.size(); ++b) {
    const Ball& ball = balls_[b];
    double scale = -std::numeric_limits<double>::infinity();
    for (const std::ptrdiff_t t : ball.trained)
      scale = std::max(scale, gradient_.log_scale[static_cast<std::size_t>(t)]);
    std::ptrdiff_t at = ball.begin;
    for (const std::ptrdiff_t t : ball.trained) {
      const ConstMatrixView block = gradient_.blocks.view(t);
      const double own = gradient_.log_scale[static_cast<std::size_t>(t)];
      const double factor = own == scale ? 1 : std::exp(own - scale);
      Eigen::Map<Matrix>(x.G.data() + at, block.rows, block.cols) = -factor * block.eigen();
      at += block.rows * block.cols;
    }
    auto G = part(x.G, ball);
    const double largest = G.cwiseAbs().maxCoeff();
    if (!(largest > 0)) {  // nothing to gain to first order: every point is stationary
      if (largest == 0) G = part(x.y, ball);
      x.gap = std::max(x.gap, largest == 0 ? 0 : std::numeric_limits<double>::infinity());
      continue;
    }
    G /= largest;
    if (euclidean_) {
      G /= G.norm();
    } else {
      const MatrixView buffer = buffers_[b].view();
      buffer.eigen() = Flat(G.data(), ball.rows, ball.cols);
      G /= map_->dual_norm(buffer);
    }
    // 1 - <G, w>; for p = 2 without cancellation.
    const double gap = euclidean_ ? (G - part(x.w, ball)).squaredNorm() / 2 : 1 - G.dot(part(x.w, ball));
    x.gap = std::max(x.gap, std::isnan(gap) ? std::numeric_limits<double>::infinity() : gap);
  }
}

// One ball at a time: with two of them in motion the slope in one could turn through the motion of the other.
void BallSolver::mirror_steps(Point& x, std::int64_t count) {
  for (double& eta : eta_) eta = std::max(eta, shortest_step);
  for (std::int64_t k = 0; k < count && x.gap > options_.tol && !exhausted(); ++k) {
    const std::size_t b = static_cast<std::size_t>(k) % balls_.size();
    const Ball& ball = balls_[b];
    trial_.y = x.y;
    part(trial_.y, ball) += eta_[b] * part(x.G, ball);
    set_primal(trial_);
    evaluate(trial_);
    if (part(trial_.G, ball).dot(part(trial_.w, ball) - part(x.w, ball)) < 0) {
      eta_[b] /= 2;
      if (eta_[b] < shortest_step * shortest_step) return;
      continue;
    }
    std::swap(x, trial_);
    eta_[b] = std::min({1.4 * eta_[b], longest_step, options_.reach / ball.radius});
  }
}

void BallSolver::prepare_operator(const Point& x) {
  if (!moves_primal()) return;
  curvature_ = (p_ - 1) * x.w.cwiseAbs().array().pow(p_ - 2);
  // An entry near 0 has next to no curvature of its own; what the loss adds is not known here.
  inverse_ = curvature_;
  for (const Ball& ball : balls_) {
    const double floor = 1e-3 * part(curvature_, ball).maxCoeff();
    part(inverse_, ball) = part(curvature_, ball).cwiseMax(floor).cwiseInverse();
  }
}

// The derivative of y - G(W(y)) applied to t: in y where the unknown is y; in w, preconditioned by psi'', where it
// is w.
Vector BallSolver::apply_operator(const Point& x, const Vector& t) {
  const double radius = largest_radius();
  if (moves_primal()) {
    const Vector direction = inverse_.cwiseProduct(t);
    const double h = difference_step / radius / direction.norm();
    trial_.w = x.w + h * direction;
    set_dual(trial_);
    evaluate(trial_);
    return curvature_.cwiseProduct(direction) - (trial_.G - x.G) / h;
  }
  const double h = difference_step / radius / t.norm();
  trial_.y = x.y + h * t;
  set_primal(trial_);
  evaluate(trial_);
  return t - (trial_.G - x.G) / h;
}

// Modified Gram-Schmidt, once more over what is left: the basis stays orthogonal. Ends early where the least-squares
// residual of GMRES is below the tolerance, as Givens rotations tell on the way.
BallSolver::Krylov BallSolver::arnoldi(const Point& x, const Vector& first, std::ptrdiff_t size,
                                       double tolerance) {
  const std::ptrdiff_t limit = std::min(size, first.size());
  Krylov result{Matrix::Zero(limit + 1, first.size()), Matrix::Zero(limit + 1, limit), 0};
  result.basis.row(0) = first.transpose() / first.norm();
  Vector cosine(limit), sine(limit);
  double residual = 1;
  for (std::ptrdiff_t k = 0; k < limit && !exhausted(); ++k) {
    Vector next = apply_operator(x, result.basis.row(k).transpose());
    if (!next.allFinite()) break;
    const double before = next.norm();
    for (int pass = 0; pass < 2; ++pass)
      for (std::ptrdiff_t j = 0; j <= k; ++j) {
        const double along = result.basis.row(j).dot(next);
        result.hessenberg(j, k) += along;
        next -= along * result.basis.row(j).transpose();
      }
    const double length = next.norm();
    result.hessenberg(k + 1, k) = length;
    result.size = k + 1;
    Vector column = result.hessenberg.col(k);
    for (std::ptrdiff_t j = 0; j < k; ++j) {
      const double upper = column(j), lower = column(j + 1);
      column(j) = cosine(j) * upper + sine(j) * lower;
      column(j + 1) = cosine(j) * lower - sine(j) * upper;
    }
    const double pivot = std::hypot(column(k), column(k + 1));
    cosine(k) = pivot > 0 ? column(k) / pivot : 1;
    sine(k) = pivot > 0 ? column(k + 1) / pivot : 0;
    residual *= std::abs(sine(k));
    if (length <= 1e-12 * before || residual <= tolerance) break;
    result.basis.row(k + 1) = next.transpose() / length;
  }
  return result;
}

bool BallSolver::newton_step(Point& x) {
  const Vector error = x.G - x.y;
  const double size = error.norm();
  if (!(size > 0)) return false;
  prepare_operator(x);
  const Krylov space = arnoldi(x, error, krylov_size, 1e-3);
  if (space.size == 0) return false;
  const std::ptrdiff_t k = space.size;
  Vector right = Vector::Zero(k + 1);
  right(0) = size;
  const Vector coefficients =
      Eigen::MatrixXd(space.hessenberg.topLeftCorner(k + 1, k)).colPivHouseholderQr().solve(right);
  Vector step = space.basis.topRows(k).transpose() * coefficients;
  if (moves_primal()) step = inverse_.cwiseProduct(step);
  if (!step.allFinite()) return false;
  for (double share = 1; share > 0.05; share /= 2) {
    if (exhausted()) return false;
    if (moves_primal()) {
      trial_.w = x.w + share * step;
      set_dual(trial_);
    } else {
      trial_.y = x.y + share * step;
      set_primal(trial_);
    }
    if ((trial_.w - x.w).norm() * largest_radius() > 10 * options_.reach) continue;
    evaluate(trial_);
    // Closer to a fixed point, and not uphill.
    if ((trial_.G - trial_.y).norm() > (1 - 0.25 * share) * size) continue;
    const bool uphill = std::ranges::any_of(balls_, [&](const Ball& ball) {
      return part(trial_.G, ball).dot(part(trial_.w, ball) - part(x.w, ball)) < -1e-12;
    });
    if (uphill) continue;
    std::swap(x, trial_);
    return true;
  }
  return false;
}

void BallSolver::newton_steps(Point& x) {
  while (x.gap > options_.tol && !exhausted() && newton_step(x)) {
  }
}

// Whether there was a direction of descent at this stationary point, along which it has moved.
bool BallSolver::leave_saddle(Point& x) {
  if (x.y.size() < 2) return false;
  prepare_operator(x);
  Vector start(x.y.size());  // with a share in every direction
  for (std::ptrdiff_t j = 0; j < start.size(); ++j)
    start(j) = std::cos(1 + 1.6180339887498949 * static_cast<double>(j));
  const Krylov space = arnoldi(x, start, spectrum_size, 0);
  const std::ptrdiff_t k = space.size;
  if (k == 0) return false;
  const Eigen::EigenSolver<Eigen::MatrixXd> eigen(Eigen::MatrixXd(space.hessenberg.topLeftCorner(k, k)));
  if (eigen.info() != Eigen::Success) return false;
  std::ptrdiff_t least = 0;
  for (std::ptrdiff_t j = 1; j < k; ++j)
    if (eigen.eigenvalues()(j).real() < eigen.eigenvalues()(least).real()) least = j;
  if (!(eigen.eigenvalues()(least).real() < saddle_eigenvalue)) return false;
  const Vector inner = eigen.eigenvectors().col(least).real();
  Vector direction = space.basis.topRows(k).transpose() * inner;
  if (moves_primal()) direction = inverse_.cwiseProduct(direction);
  const double radius = largest_radius();
  direction *= std::min(0.1, 1 / radius) / direction.norm();  // logits change by about 1
  if (moves_primal()) {
    x.w += direction;
    set_dual(x);
  } else {
    x.y += direction;
    set_primal(x);
  }
  evaluate(x);
  std::ranges::fill(eta_, 1e-3);
  return true;
}

BallSolution BallSolver::solve(const Parameters& start, const BallOptions& options) {
  options_ = options;
  evaluations_ = 0;
  weights_.assign(start);
  const std::ptrdiff_t total = balls_.back().begin + balls_.back().size;
  Point x{Vector::Zero(total), Vector::Zero(total), Vector::Zero(total)};
  trial_ = x;
  for (Ball& ball : balls_) {
    const BlockShape& shape = shapes_[static_cast<std::size_t>(ball.trained.front())];
    ball.radius = shape.name == Block::v    ? options.decoder_radius
                  : ball.trained.size() > 1 ? std::sqrt(2 * options.radius)
                                            : options.radius;
    std::ptrdiff_t at = ball.begin;
    for (const std::ptrdiff_t position : ball.model) {
      const ConstMatrixView block = std::as_const(weights_).view(position);
      Eigen::Map<Matrix>(x.w.data() + at, block.rows, block.cols) = block.eigen();
      at += block.rows * block.cols;
    }
  }
  set_dual(x);
  evaluate(x);
  // A block of zeros has no direction yet: that of the steepest descent is as good as any. W has none while v is 0.
  for (std::size_t round = 0; round < balls_.size(); ++round) {
    bool undirected = false;
    for (const Ball& ball : balls_)
      if (part(x.w, ball).isZero(0)) {
        part(x.y, ball) = part(x.G, ball);
        undirected = true;
      }
    if (!undirected) break;
    set_primal(x);
    evaluate(x);
  }
  eta_.assign(balls_.size(), std::min(0.1, options_.reach / largest_radius()));
  std::int64_t steps = 20;
  int saddles = 0;
  bool settled = false;
  while (!settled && !exhausted() && std::isfinite(x.gap)) {
    mirror_steps(x, steps);
    newton_steps(x);
    steps = std::min<std::int64_t>(2 * steps, 5000);
    if (x.gap > options_.tol) continue;
    if (saddles < 5 && leave_saddle(x))
      ++saddles;
    else
      settled = true;
  }
  BallSolution solution;
  solution.loss = x.loss;
  solution.max_softmax = x.max_softmax;
  solution.gap = x.gap;
  solution.converged = settled && x.gap <= options_.tol;
  for (const Ball& ball : balls_) {
    std::ptrdiff_t at = ball.begin;
    for (const std::ptrdiff_t position : ball.model) {
      const MatrixView block = weights_.view(position);
      block.eigen() = ball.radius * Flat(x.w.data() + at, block.rows, block.cols);
      at += block.rows * block.cols;
    }
  }
  solution.parameters = weights_.parameters();
  solution.evaluations = evaluations_;
  return solution;
}

}  // namespace attmirror
