#include "margin/cholesky.hpp"

#include <cmath>

namespace attmirror {

std::ptrdiff_t cholesky(MatrixView m, double least_pivot, ThreadPool*) {
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

void cholesky_solve(ConstMatrixView factor, std::ptrdiff_t size, double* x) {
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

}  // namespace attmirror
