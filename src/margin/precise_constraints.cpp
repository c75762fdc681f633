#include "margin/precise_constraints.hpp"

#include "base/numbers.hpp"

#include <numeric>

namespace attmirror {

namespace {

using PreciseRow = const DoubleDouble*;

DoubleDouble precise_dot(PreciseRow x, PreciseRow y, std::ptrdiff_t size) {
  DoubleDouble sum;
  for (std::ptrdiff_t i = 0; i < size; ++i) sum += x[i] * y[i];
  return sum;
}

// rows times m, and rows times m times the transpose of others.
PreciseMatrix times(const PreciseMatrix& rows, const Matrix& m) { return rows * m.cast<DoubleDouble>(); }

const double* row_of(ConstMatrixView m, std::ptrdiff_t k) { return m.data + k * m.stride; }

}  // namespace

Matrix rounded(const PreciseMatrix& values) {
  Matrix result(values.rows(), values.cols());
  for (std::ptrdiff_t i = 0; i < values.size(); ++i) result.data()[i] = values.data()[i].high();
  return result;
}

Vector rounded(const PreciseVector& values) {
  Vector result(values.size());
  for (std::ptrdiff_t i = 0; i < values.size(); ++i) result[i] = values[i].high();
  return result;
}

PreciseVector precise(std::span<const double> values) {
  return Eigen::Map<const Vector>(values.data(), std::ssize(values)).cast<DoubleDouble>();
}

PreciseMatrix precise(ConstMatrixView values) { return values.eigen().cast<DoubleDouble>(); }

std::vector<std::ptrdiff_t> PreciseConstraints::all() const {
  std::vector<std::ptrdiff_t> result(at(constraints_->count()));
  std::iota(result.begin(), result.end(), std::ptrdiff_t{0});
  return result;
}

PreciseVector PreciseConstraints::forward(const PreciseMatrix& W) const {
  const ConstMatrixView a = constraints_->left(), z = constraints_->right();
  PreciseVector margins(a.rows), product(a.cols);
  for (std::ptrdiff_t g = 0; g < z.rows; ++g) {
    for (std::ptrdiff_t i = 0; i < a.cols; ++i) {
      DoubleDouble sum;
      for (std::ptrdiff_t j = 0; j < z.cols; ++j) sum += W(i, j) * DoubleDouble(row_of(z, g)[j]);
      product[i] = sum;
    }
    for (std::ptrdiff_t k = constraints_->first(g); k < constraints_->first(g + 1); ++k) {
      DoubleDouble sum;
      for (std::ptrdiff_t i = 0; i < a.cols; ++i) sum += DoubleDouble(row_of(a, k)[i]) * product[i];
      margins[k] = sum;
    }
  }
  return margins;
}

PreciseMatrix PreciseConstraints::adjoint(const PreciseVector& lambda) const {
  const ConstMatrixView a = constraints_->left(), z = constraints_->right();
  PreciseMatrix result = PreciseMatrix::Zero(a.cols, z.cols);
  PreciseVector sum(a.cols);
  for (std::ptrdiff_t g = 0; g < z.rows; ++g) {
    sum.setZero();
    for (std::ptrdiff_t k = constraints_->first(g); k < constraints_->first(g + 1); ++k)
      if (lambda[k] != DoubleDouble(0))
        for (std::ptrdiff_t i = 0; i < a.cols; ++i) sum[i] += lambda[k] * DoubleDouble(row_of(a, k)[i]);
    for (std::ptrdiff_t i = 0; i < a.cols; ++i)
      for (std::ptrdiff_t j = 0; j < z.cols; ++j) result(i, j) += sum[i] * DoubleDouble(row_of(z, g)[j]);
  }
  return result;
}

PreciseMatrix PreciseConstraints::normal_matrix(std::span<const std::ptrdiff_t> J, ConstMatrixView D) const {
  const ConstMatrixView a = constraints_->left(), z = constraints_->right();
  const std::ptrdiff_t size = std::ssize(J);
  PreciseMatrix M(size, size);
  PreciseVector h(a.cols);
  // Runs of J that belong to one group share h.
  const auto run_end = [&](std::ptrdiff_t from) {
    const std::ptrdiff_t g = constraints_->group_of(J[at(from)]);
    while (from < size && constraints_->group_of(J[at(from)]) == g) ++from;
    return from;
  };
  for (std::ptrdiff_t first = 0; first < size; first = run_end(first)) {
    const double* z1 = row_of(z, constraints_->group_of(J[at(first)]));
    const std::ptrdiff_t last = run_end(first);
    for (std::ptrdiff_t other = 0; other < last; other = run_end(other)) {
      const double* z2 = row_of(z, constraints_->group_of(J[at(other)]));
      const std::ptrdiff_t end = run_end(other);
      for (std::ptrdiff_t i = 0; i < a.cols; ++i) {
        DoubleDouble sum;
        for (std::ptrdiff_t j = 0; j < z.cols; ++j)
          sum += DoubleDouble::product(z1[j], z2[j]) * DoubleDouble(row_of(D, i)[j]);
        h[i] = sum;
      }
      for (std::ptrdiff_t k = first; k < last; ++k)
        for (std::ptrdiff_t l = other; l < std::min(end, k + 1); ++l) {
          const double *a1 = row_of(a, J[at(k)]), *a2 = row_of(a, J[at(l)]);
          DoubleDouble sum;
          for (std::ptrdiff_t i = 0; i < a.cols; ++i) sum += DoubleDouble::product(a1[i], a2[i]) * h[i];
          M(k, l) = sum;
        }
    }
  }
  return M;
}

PreciseMatrix PreciseConstraints::spectral_normal_matrix(const Matrix& L, const Matrix& R,
                                                         const Matrix& alpha, const Matrix& beta) const {
  const PreciseMatrix a = times(precise(constraints_->left()), L),
                      z = times(precise(constraints_->right()), R);
  const std::ptrdiff_t count = a.rows(), both = beta.rows();
  PreciseMatrix M(count, count);
  PreciseVector h(a.cols()), turned(both);
  for (std::ptrdiff_t g = 0; g < z.rows(); ++g)
    for (std::ptrdiff_t other = 0; other <= g; ++other) {
      for (std::ptrdiff_t i = 0; i < a.cols(); ++i) {
        DoubleDouble sum;
        for (std::ptrdiff_t j = 0; j < z.cols(); ++j)
          sum += z(g, j) * z(other, j) * DoubleDouble(alpha(i, j));
        h[i] = sum;
      }
      for (std::ptrdiff_t l = constraints_->first(other); l < constraints_->first(other + 1); ++l) {
        for (std::ptrdiff_t i = 0; i < both; ++i) {
          DoubleDouble sum;
          for (std::ptrdiff_t j = 0; j < both; ++j) sum += DoubleDouble(beta(i, j)) * a(l, j) * z(g, j);
          turned[i] = sum * z(other, i);
        }
        for (std::ptrdiff_t k = std::max(l, constraints_->first(g)); k < constraints_->first(g + 1); ++k) {
          DoubleDouble sum = precise_dot(&a(k, 0), turned.data(), both);
          for (std::ptrdiff_t i = 0; i < a.cols(); ++i) sum += a(k, i) * a(l, i) * h[i];
          M(k, l) = sum;
        }
      }
    }
  return M;
}

PreciseMatrix PreciseConstraints::products_normal_matrix(const Matrix& P, const Matrix& C,
                                                         const Matrix& Q) const {
  const PreciseMatrix a = precise(constraints_->left()), z = precise(constraints_->right());
  const PreciseMatrix aP = times(a, P), zQz = times(z, Q) * z.transpose(), aCz = times(a, C) * z.transpose();
  PreciseMatrix M(a.rows(), a.rows());
  for (std::ptrdiff_t k = 0; k < a.rows(); ++k)
    for (std::ptrdiff_t l = 0; l <= k; ++l) {
      const std::ptrdiff_t g = constraints_->group_of(k), other = constraints_->group_of(l);
      M(k, l) = DoubleDouble(0.5) *
                (precise_dot(&aP(k, 0), &a(l, 0), a.cols()) * zQz(g, other) + aCz(k, other) * aCz(l, g));
    }
  return M;
}

PreciseMatrix with_rank_one(PreciseMatrix M, const PreciseVector& v, double theta) {
  for (std::ptrdiff_t k = 0; k < v.size(); ++k)
    for (std::ptrdiff_t l = 0; l <= k; ++l) M(k, l) += v[k] * v[l] / DoubleDouble(theta);
  return M;
}

PreciseFactor::PreciseFactor(const PreciseMatrix& M)
    : numbers_(at(M.rows() * M.rows())), rotations_(at(2 * M.rows())) {
  L_ = GrowingCholesky<DoubleDouble>(numbers_.data(), M.rows(), rotations_);
  const DoubleDouble least =
      std::numeric_limits<DoubleDouble>::epsilon() * DoubleDouble(50.0 + 2.0 * static_cast<double>(M.rows()));
  for (std::ptrdiff_t k = 0; k < M.rows(); ++k) {
    DoubleDouble* row = L_.next_row();
    for (std::size_t i = 0; i < kept_.size(); ++i) row[i] = M(k, kept_[i]);
    if (!(L_.append(M(k, k)) > least)) continue;
    L_.accept();
    kept_.push_back(k);
  }
}

PreciseVector PreciseFactor::solve(const PreciseVector& right) const {
  std::vector<DoubleDouble> part;
  for (const std::ptrdiff_t k : kept_) part.push_back(right[k]);
  L_.solve(part.data());
  PreciseVector result = PreciseVector::Zero(right.size());
  for (std::size_t i = 0; i < kept_.size(); ++i) result[kept_[i]] = part[i];
  return result;
}

}  // namespace attmirror
