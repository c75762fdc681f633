// The algebra of room margin as the formulas are written, for comparison with the kernels.
#pragma once

#include "margin/scaled_constraints.hpp"
#include <attmirror/base/matrix.hpp>

#include <cmath>
#include <cstddef>
#include <span>

namespace attmirror::test {

inline std::ptrdiff_t plain_cholesky(MatrixView m, double least_pivot) {
  for (std::ptrdiff_t k = 0; k < m.rows; ++k) {
    double* row = m.data + k * m.stride;
    const double diagonal = row[k];
    for (std::ptrdiff_t l = 0; l < k; ++l) {
      const double* other = m.data + l * m.stride;
      double sum = row[l];
      for (std::ptrdiff_t i = 0; i < l; ++i) sum -= row[i] * other[i];
      row[l] = sum / other[l];
    }
    double pivot = diagonal;
    for (std::ptrdiff_t i = 0; i < k; ++i) pivot -= row[i] * row[i];
    if (!(pivot > least_pivot * diagonal)) return k;
    row[k] = std::sqrt(pivot);
  }
  return m.rows;
}

inline void plain_cholesky_solve(ConstMatrixView factor, std::ptrdiff_t size, double* x) {
  for (std::ptrdiff_t k = 0; k < size; ++k) {
    const double* row = factor.data + k * factor.stride;
    for (std::ptrdiff_t i = 0; i < k; ++i) x[k] -= row[i] * x[i];
    x[k] /= row[k];
  }
  for (std::ptrdiff_t k = size - 1; k >= 0; --k) {
    const double* row = factor.data + k * factor.stride;
    x[k] /= row[k];
    for (std::ptrdiff_t i = 0; i < k; ++i) x[i] -= row[i] * x[k];
  }
}

// Entry (k, l) of B D B^T: A_k and A_l as dense matrices.
inline double plain_normal_entry(const ScaledConstraints& c, const Matrix& D, std::ptrdiff_t k,
                                 std::ptrdiff_t l) {
  const auto a = c.left().eigen(), z = c.right().eigen();
  return ((a.row(k).transpose() * z.row(c.group_of(k))).array() * D.array() *
          (a.row(l).transpose() * z.row(c.group_of(l))).array())
      .sum();
}

inline Vector plain_forward(const ScaledConstraints& c, const Matrix& W) {
  const auto a = c.left().eigen(), z = c.right().eigen();
  Vector margins(c.count());
  for (std::ptrdiff_t k = 0; k < c.count(); ++k)
    margins[k] = a.row(k).dot(W * z.row(c.group_of(k)).transpose());
  return margins;
}

inline Matrix plain_adjoint(const ScaledConstraints& c, std::span<const double> lambda) {
  const auto a = c.left().eigen(), z = c.right().eigen();
  Matrix result = Matrix::Zero(c.rows(), c.cols());
  for (std::ptrdiff_t k = 0; k < c.count(); ++k)
    result += lambda[static_cast<std::size_t>(k)] * a.row(k).transpose() * z.row(c.group_of(k));
  return result;
}

}  // namespace attmirror::test
