#include "margin/bordered_factor.hpp"

#include "base/numbers.hpp"
#include "margin/cholesky.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace attmirror {

namespace {

constexpr std::ptrdiff_t width = kernels::qp_strip;

// Of the border's system. Iterative refinement recovers the digits that a larger condition would lose, and singular
// matrices are the factorization's business.
constexpr double least_condition = 1e-9;

}  // namespace

const double* BorderedFactor::strip(std::size_t member) const {
  const auto m = static_cast<std::ptrdiff_t>(member);
  return strips_.data() + m / width * width * factor_.rows + m % width;
}

bool BorderedFactor::form(const QpProblem<double>& problem, ConstMatrixView factor,
                          std::span<const std::ptrdiff_t> factored,
                          std::span<const unsigned char> is_passive) {
  factor_ = factor;
  factored_ = factored;
  const std::ptrdiff_t rows = factor.rows;
  if (rows < smallest_factor) return false;
  border_.clear();
  std::ptrdiff_t next = 0;
  for (std::ptrdiff_t k = 0; k < problem.size(); ++k) {
    const bool known = next < rows && factored[at(next)] == k;
    if (known != (is_passive[at(k)] != 0)) {
      const double length = std::sqrt(problem.row(k)[k]);
      if (std::ssize(border_) == widest || !(length > 0)) return false;
      border_.push_back({k, known ? next : -1, known ? length : 1 / length});
    }
    if (known) ++next;
  }

  const std::ptrdiff_t size = std::ssize(border_), strips = (size + width - 1) / width;
  strips_.assign(at(strips * width * rows), 0.0);
  for (std::ptrdiff_t m = 0; m < size; ++m) {
    const Member& member = border_[at(m)];
    double* column = strips_.data() + m / width * width * rows + m % width;
    if (member.position >= 0)
      column[member.position * width] = member.scale;
    else
      for (std::ptrdiff_t i = 0; i < rows; ++i)
        column[i * width] = member.scale * problem.at(member.index, factored[at(i)]);
  }
  system_.setZero(strips * width, strips * width);
  for (std::ptrdiff_t s = 0; s < strips; ++s) {
    double* strip = strips_.data() + s * width * rows;
    qp_kernels().solve_strip(factor.data, factor.stride, rows, strip);
    for (std::ptrdiff_t t = 0; t <= s; ++t)
      qp_kernels().strip_products(strip, strips_.data() + t * width * rows, rows,
                                  system_.data() + s * width * system_.rows() + t * width, system_.rows());
  }
  // In columns, as written: the upper triangle.
  Eigen::MatrixXd products = system_.topLeftCorner(size, size).selfadjointView<Eigen::Upper>();
  system_ = -products;
  for (std::ptrdiff_t m = 0; m < size; ++m)
    for (std::ptrdiff_t l = 0; l < size; ++l) {
      const Member &a = border_[at(m)], &b = border_[at(l)];
      if (a.position < 0 && b.position < 0) system_(m, l) += a.scale * b.scale * problem.at(a.index, b.index);
    }
  if (size == 0) return true;
  decomposition_.compute(system_);
  return decomposition_.rcond() > least_condition;
}

void BorderedFactor::solve(std::span<const double> v, std::span<double> x) {
  const std::ptrdiff_t rows = factor_.rows, size = std::ssize(border_);
  right_.resize(at(rows));
  for (std::ptrdiff_t i = 0; i < rows; ++i) right_[at(i)] = v[at(factored_[at(i)])];
  cholesky_solve_lower(factor_, rows, right_.data());
  solution_.resize(size);
  for (std::ptrdiff_t m = 0; m < size; ++m) {
    const Member& member = border_[at(m)];
    const double* y = strip(at(m));
    double sum = member.position < 0 ? member.scale * v[at(member.index)] : 0;
    for (std::ptrdiff_t i = 0; i < rows; ++i) sum -= y[i * width] * right_[at(i)];
    solution_[m] = sum;
  }
  if (size > 0) solution_ = decomposition_.solve(solution_).eval();
  for (std::ptrdiff_t m = 0; m < size; ++m) {
    const double* y = strip(at(m));
    for (std::ptrdiff_t i = 0; i < rows; ++i) right_[at(i)] -= y[i * width] * solution_[m];
  }
  cholesky_solve_upper(factor_, rows, right_.data());
  std::fill(x.begin(), x.end(), 0.0);
  for (std::ptrdiff_t i = 0; i < rows; ++i) x[at(factored_[at(i)])] = right_[at(i)];
  for (std::ptrdiff_t m = 0; m < size; ++m) {
    const Member& member = border_[at(m)];
    x[at(member.index)] = member.position < 0 ? member.scale * solution_[m] : 0;
  }
}

}  // namespace attmirror
