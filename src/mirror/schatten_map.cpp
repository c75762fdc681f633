#include "mirror/schatten_map.hpp"

#include "mirror/entries.hpp"
#include "mirror/lp_bregman.hpp"

#include <algorithm>
#include <cmath>
#include <span>

#include <fmt/format.h>

namespace attmirror {

namespace {

std::span<const double> as_span(ConstMatrixView row) {
  return {row.data, static_cast<std::size_t>(row.cols)};
}

// |rows_i - (their part in the span of `basis`)|^2, `products` being their products with the basis. Taken from the
// difference, not as 1 - |products|^2: near 0 that would be wrong by eps, this is by eps^2.
Vector outside(ConstMatrixView rows, ConstMatrixView basis, const Matrix& products) {
  return (rows.eigen() - products * basis.eigen()).rowwise().squaredNorm();
}

}  // namespace

SchattenMap::SchattenMap(double p) : powers_(p) {}

SchattenMap::Workspace::Workspace(std::ptrdiff_t rows, std::ptrdiff_t cols)
    : svd(rows, cols), weights(1, std::min(rows, cols)) {}

SchattenMap::Workspace& SchattenMap::decompose(ConstMatrixView a) const {
  auto found = std::find_if(workspaces_.begin(), workspaces_.end(), [&](const auto& workspace) {
    return workspace->svd.rows() == a.rows && workspace->svd.cols() == a.cols;
  });
  if (found == workspaces_.end())
    found = workspaces_.insert(found, std::make_unique<Workspace>(a.rows, a.cols));
  (*found)->svd.compute(a, SmallValues::drop);
  return **found;
}

std::string SchattenMap::name() const { return fmt::format("schatten{}", p()); }

double SchattenMap::potential(ConstMatrixView w) const {
  return powers_.potential(decompose(w).svd.values());
}

void SchattenMap::map(ConstMatrixView w, MatrixView y) const {
  Workspace& of = decompose(w);
  powers_.map(of.svd.values(), of.weights.view());
  of.svd.compose(as_span(of.weights.view()), y);
}

void SchattenMap::inverse(ConstMatrixView y, MatrixView w) const {
  Workspace& of = decompose(y);
  powers_.inverse(of.svd.values(), of.weights.view());
  of.svd.compose(as_span(of.weights.view()), w);
}

double SchattenMap::norm(ConstMatrixView w) const {
  const double largest = max_abs(w);
  return std::isfinite(largest) ? powers_.norm(decompose(w).svd.values()) : largest;
}

double SchattenMap::dual_norm(ConstMatrixView g) const {
  const double largest = max_abs(g);
  return std::isfinite(largest) ? powers_.dual_norm(decompose(g).svd.values()) : largest;
}

double SchattenMap::steepest(ConstMatrixView g, MatrixView d) const {
  Workspace& of = decompose(g);
  const double dual_norm = powers_.steepest(of.svd.values(), of.weights.view());
  of.svd.compose(as_span(of.weights.view()), d);
  return dual_norm;
}

// Let a = sum_i a_i u_i v_i^T, b = sum_j b_j s_j t_j^T with complete bases, x_ij = <u_i, s_j>, y_ij = <v_i, t_j>. All
// rows and columns of x^2 and y^2 sum to 1, so that
//
//   D(a, b) = sum_ij (x_ij^2 + y_ij^2)/2 D(a_i, b_j) + (x_ij - y_ij)^2/2 a_i b_j^{p-1}
//
// No term is negative: nothing cancels. Vectors that belong to zero singular values are not needed one by one; what a
// vector has outside the span of the others meets a zero.
double SchattenMap::bregman(ConstMatrixView a, ConstMatrixView b) const {
  if (a.eigen() == b.eigen()) return 0;
  Svd of_a(a.rows, a.cols), of_b(b.rows, b.cols);
  of_a.compute(a, SmallValues::drop);
  of_b.compute(b, SmallValues::drop);
  const Matrix x = of_a.left().eigen() * of_b.left().eigen().transpose(),
               y = of_a.right().eigen() * of_b.right().eigen().transpose();
  const Vector outside_b = outside(of_a.left(), of_b.left(), x) + outside(of_a.right(), of_b.right(), y),
               outside_a = outside(of_b.left(), of_a.left(), x.transpose()) +
                           outside(of_b.right(), of_a.right(), y.transpose());
  double sum = 0;
  for (std::ptrdiff_t i = 0; i < x.rows(); ++i) {
    const double value = of_a.value(i);
    sum += 0.5 * outside_b(i) * lp_bregman(value, 0, p()) +
           0.5 * outside_a(i) * lp_bregman(0, of_b.value(i), p());
    for (std::ptrdiff_t j = 0; j < x.cols(); ++j) {
      const double both = x(i, j) * x(i, j) + y(i, j) * y(i, j), apart = x(i, j) - y(i, j);
      if (both == 0) continue;
      sum += 0.5 * both * lp_bregman(value, of_b.value(j), p()) +
             0.5 * apart * apart * value * std::pow(of_b.value(j), p() - 1);
    }
  }
  return sum;
}

void SchattenMap::step(ConstMatrixView g, double scale, MatrixView y, MatrixView w) const {
  euclid_.step(g, scale, y, w);  // y <- y - scale g
  inverse(y, w);
}

}  // namespace attmirror
