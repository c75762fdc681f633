#include "margin/known_solution.hpp"

#include "base/random.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>

#include <Eigen/QR>

namespace attmirror::test {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_(seed, RandomStream::init_W) {}
  double normal() { return random_.normal(next_++); }
  double between(double low, double high) { return low + (high - low) * random_.uniform(next_++); }
  double sign() { return random_.uniform(next_++) < 0.5 ? -1 : 1; }
  Matrix normals(std::ptrdiff_t rows, std::ptrdiff_t cols) {
    Matrix m(rows, cols);
    for (std::ptrdiff_t i = 0; i < m.size(); ++i) m.data()[i] = normal();
    return m;
  }
  Matrix orthogonal(std::ptrdiff_t size) {
    return Eigen::HouseholderQR<Matrix>(normals(size, size)).householderQ() * Matrix::Identity(size, size);
  }

 private:
  CounterRandom random_;
  std::uint64_t next_ = 0;
};

struct Pair {
  Matrix W, U;
};

// Numbers w, u >= 0 with sum u w = |w|_p |u|_q: the entries' sizes, or the singular values.
struct Sizes {
  Vector w, u;
};

Sizes tight_sizes(double p, std::ptrdiff_t count, std::ptrdiff_t ties, Draw& draw) {
  Sizes sizes{Vector(count), Vector(count)};
  for (std::ptrdiff_t i = 0; i < count; ++i) {
    const double large = draw.between(0.5, 2), small = draw.between(0, 0.9);
    if (p == 1) {
      sizes.w[i] = i < ties ? large : 0;
      sizes.u[i] = i < ties ? 1 : small;
    } else if (std::isinf(p)) {
      sizes.w[i] = i < ties ? 1 : small;
      sizes.u[i] = i < ties ? large : 0;
    } else if (p <= 2) {  // the one is drawn from which the other is a power below 1
      sizes.w[i] = large;
      sizes.u[i] = std::pow(large, p - 1);
    } else {
      sizes.u[i] = large;
      sizes.w[i] = std::pow(large, 1 / (p - 1));
    }
  }
  return sizes;
}

Pair tight_pair(const Norm& norm, const KnownOptions& options, Draw& draw) {
  const std::ptrdiff_t rows = options.rows, cols = options.cols, rank = std::min(rows, cols);
  if (!norm.is_entrywise()) {
    const std::ptrdiff_t ties = options.ties > 0 ? options.ties : (rank + 1) / 2;
    const Sizes sizes = tight_sizes(norm.p(), rank, ties, draw);
    const Matrix P = draw.orthogonal(rows).leftCols(rank), Q = draw.orthogonal(cols).leftCols(rank);
    return {P * sizes.w.asDiagonal() * Q.transpose(), P * sizes.u.asDiagonal() * Q.transpose()};
  }
  const std::ptrdiff_t ties = options.ties > 0 ? options.ties : (rows * cols + 2) / 3;
  const Sizes sizes = tight_sizes(norm.p(), rows * cols, ties, draw);
  std::vector<std::ptrdiff_t> place(static_cast<std::size_t>(rows * cols));
  for (std::size_t i = 0; i < place.size(); ++i) {
    place[i] = static_cast<std::ptrdiff_t>(i);
    const auto other = static_cast<std::size_t>(draw.between(0, static_cast<double>(i + 1)));
    std::swap(place[i], place[std::min(other, i)]);
  }
  Pair pair{Matrix(rows, cols), Matrix(rows, cols)};
  for (std::ptrdiff_t i = 0; i < rows * cols; ++i) {
    const double sign = draw.sign();
    pair.W.data()[place[static_cast<std::size_t>(i)]] = sign * sizes.w[i];
    pair.U.data()[place[static_cast<std::size_t>(i)]] = sign * sizes.u[i];
  }
  return pair;
}

// An orthonormal basis (columns) in which the diagonal of the symmetric S is constant. One rotation gives one column
// the mean of what is left: in the plane of a column above it and one below, the diagonal passes through the mean.
Matrix equalizing_basis(const Matrix& S, Draw& draw) {
  const std::ptrdiff_t size = S.rows();
  Matrix basis = draw.orthogonal(size);
  const double mean = S.trace() / static_cast<double>(size);
  const auto entry = [&](std::ptrdiff_t i, std::ptrdiff_t j) {
    return double(basis.col(i).transpose() * S * basis.col(j));
  };
  for (std::ptrdiff_t i = 0; i + 1 < size; ++i) {
    std::ptrdiff_t other = i + 1;  // with a diagonal on the other side of the mean, as far as possible
    for (std::ptrdiff_t j = i + 1; j < size; ++j)
      if ((entry(j, j) - mean) * (entry(i, i) - mean) < (entry(other, other) - mean) * (entry(i, i) - mean))
        other = j;
    // f(t) = cos^2 s_ii + 2 sin cos s_ij + sin^2 s_jj - mean changes sign between t = 0 and pi/2.
    const double ii = entry(i, i), ij = entry(i, other), jj = entry(other, other);
    const auto f = [&](double t) {
      return std::cos(t) * std::cos(t) * ii + 2 * std::sin(t) * std::cos(t) * ij +
             std::sin(t) * std::sin(t) * jj - mean;
    };
    double low = 0, high = std::acos(0.0);
    for (int step = 0; step < 60; ++step) {
      const double middle = (low + high) / 2;
      (f(middle) > 0) == (f(low) > 0) ? low = middle : high = middle;
    }
    const Vector x = basis.col(i), y = basis.col(other);
    basis.col(i) = std::cos(low) * x + std::sin(low) * y;
    basis.col(other) = std::cos(low) * y - std::sin(low) * x;
  }
  return basis;
}

class Builder {
 public:
  Builder(const KnownOptions& options, const Matrix& W, Draw& draw) : options_(options), W_(W), draw_(draw) {}

  // A group with query z whose active rows add up to u.
  void add_active(Vector u, const Vector& z) {
    const Vector y = W_ * z;
    std::vector<std::pair<Vector, double>> equalities;  // with their multipliers
    for (std::ptrdiff_t k = 0; k < options_.equalities; ++k) {
      const Vector a = draw_.normals(options_.rows, 1);
      const double gain = u.dot(y), bound = a.dot(y);
      // At most half of the gain goes into it, so that enough is left for the inequalities.
      const double lambda = draw_.sign() * 0.5 * gain / std::max(std::fabs(bound), gain / u.norm());
      equalities.emplace_back(a, lambda);
      u -= lambda * a;
    }
    const double gain = u.dot(y);
    if (!(gain > 0)) throw std::logic_error("known_solution: a query without gain");
    std::vector<double> lambda, bounds;
    double share = 0;
    for (std::ptrdiff_t k = 0; k < options_.active; ++k) {
      lambda.push_back(draw_.between(0.5, 2));
      bounds.push_back(k < options_.zero_bounds ? 0 : 1);
      share += lambda.back() * bounds.back();
    }
    for (double& value : lambda) value *= gain / share;
    Vector sum = Vector::Zero(options_.rows);
    for (std::size_t k = 0; k < lambda.size(); ++k) {
      Vector e = draw_.normals(options_.rows, 1);
      e -= e.dot(y) / y.squaredNorm() * y;
      if (k + 1 == lambda.size()) e = -sum / lambda[k];
      sum += lambda[k] * e;
      add(bounds[k] / gain * u + e, bounds[k], Relation::at_least, lambda[k]);
    }
    for (const auto& [a, multiplier] : equalities) add(a, a.dot(y), Relation::equal, multiplier);
    add_inactive(y);
    close(z);
  }
  void add_loose(const Vector& z) {
    add_inactive(W_ * z);
    close(z);
  }

  KnownSolution finish(const Norm& norm) {
    KnownSolution result;
    ConstraintArrays& arrays = result.arrays;
    arrays.left = Matrix(static_cast<std::ptrdiff_t>(left_.size()), options_.rows);
    for (std::size_t k = 0; k < left_.size(); ++k) arrays.left.row(static_cast<std::ptrdiff_t>(k)) = left_[k];
    arrays.right = Matrix(static_cast<std::ptrdiff_t>(right_.size()), options_.cols);
    for (std::size_t g = 0; g < right_.size(); ++g)
      arrays.right.row(static_cast<std::ptrdiff_t>(g)) = right_[g];
    arrays.group_sizes = group_sizes_;
    arrays.bounds = bounds_;
    arrays.relations = relations_;
    result.W = W_;
    result.lambda = Eigen::Map<const Vector>(lambda_.data(), static_cast<std::ptrdiff_t>(lambda_.size()));
    result.norm = attmirror::norm(W_, norm);
    return result;
  }

 private:
  void add_inactive(const Vector& y) {
    for (std::ptrdiff_t k = 0; k < options_.inactive; ++k) {
      const Vector a = draw_.normals(options_.rows, 1);
      add(a + (draw_.between(1.1, 3) - a.dot(y)) / y.squaredNorm() * y, 1, Relation::at_least, 0);
    }
  }
  void add(const Vector& a, double bound, Relation relation, double lambda) {
    left_.push_back(a);
    bounds_.push_back(bound);
    relations_.push_back(relation);
    lambda_.push_back(lambda);
  }
  void close(const Vector& z) {
    right_.push_back(z);
    group_sizes_.push_back(static_cast<std::int64_t>(left_.size()) - closed_);
    closed_ = static_cast<std::int64_t>(left_.size());
  }

  const KnownOptions& options_;
  const Matrix& W_;
  Draw& draw_;
  std::vector<Vector> left_, right_;
  std::vector<std::int64_t> group_sizes_;
  std::vector<double> bounds_, lambda_;
  std::vector<Relation> relations_;
  std::int64_t closed_ = 0;
};

}  // namespace

KnownSolution known_solution(const Norm& norm, const KnownOptions& options) {
  Draw draw(options.seed);
  const Pair pair = tight_pair(norm, options, draw);
  const Matrix both = pair.U.transpose() * pair.W, S = (both + both.transpose()) / 2;
  Builder builder(options, pair.W, draw);
  for (const double share : {0.3, 0.7}) {
    const Matrix basis = equalizing_basis(S, draw);
    for (std::ptrdiff_t g = 0; g < options.cols; ++g) {
      const double scale = draw.between(0.5, 2);  // of the query; the rows undo it
      builder.add_active(share / scale * (pair.U * basis.col(g)), scale * basis.col(g));
    }
  }
  for (std::ptrdiff_t g = 0; g < options.loose_groups; ++g) builder.add_loose(draw.normals(options.cols, 1));
  return builder.finish(norm);
}

const std::vector<Norm>& all_norms() {
  static const std::vector<Norm> norms = {
      Norm::l(1),          Norm::l(1.001),    Norm::l(1.05),     Norm::l(1.1),
      Norm::l(1.75),       Norm::l(2),        Norm::l(3),        Norm::l(std::acos(-1.0)),
      Norm::l(10),         Norm::l(50),       Norm::l(infinity), Norm::nuclear(),
      Norm::schatten(1.5), Norm::schatten(3), Norm::spectral()};
  return norms;
}

}  // namespace attmirror::test
