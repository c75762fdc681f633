// The Cholesky factor of a symmetric matrix that gains and loses rows one at a time, in O(size^2) each: the work of a
// careful active-set method, where a new factorization at each step would cost O(size^3).
//
//   append   a new last row w = L^-1 m, and its pivot mu = m_kk - |w|^2 = the squared distance of the new row's vector
//            from the span of the others (a matrix of scalar products); 0 where it depends on them
//   remove   the rows below lose a column: rotations of neighbouring columns make the rest triangular again
#pragma once

#include "margin/double_double.hpp"

#include <cstddef>
#include <span>

#include <Eigen/Core>

namespace attmirror {

template <class Real>
class GrowingCholesky {
 public:
  GrowingCholesky() = default;
  // In memory of the caller: rows of `stride` numbers, as many as the largest size, and twice that many for rotations.
  GrowingCholesky(Real* factor, std::ptrdiff_t stride, std::span<Real> rotations)
      : factor_(factor),
        stride_(stride),
        cosines_(rotations.data()),
        sines_(rotations.data() + rotations.size() / 2) {}

  std::ptrdiff_t size() const { return size_; }

  // Where the caller writes the scalar products with the size() rows that are there, before append(). There must be
  // room for one more.
  Real* next_row() { return row(size_); }

  // Turns next_row() into w and returns mu / diagonal. The row counts only after accept(); until then next_row() is w.
  Real append(Real diagonal) {
    Real* w = row(size_);
    Real rest = diagonal;
    for (std::ptrdiff_t i = 0; i < size_; ++i) {
      w[i] = (w[i] - dot(row(i), w, i)) / row(i)[i];
      rest -= w[i] * w[i];
    }
    w[size_] = rest > 0 ? real::sqrt(rest) : 0;
    return diagonal > 0 ? rest / diagonal : 0;
  }
  void accept() { ++size_; }
  // mu of the row that append() looked at last, 0 where rounding made it negative.
  Real pivot() const { return row(size_)[size_] * row(size_)[size_]; }

  void remove(std::ptrdiff_t r) {
    // Row j + 1 becomes row j, and the rotation of columns (j, j + 1) that makes its entry j + 1 zero acts on all
    // rows below; by rows, so that memory is walked in order.
    for (std::ptrdiff_t j = r; j + 1 < size_; ++j) {
      const Real* from = row(j + 1);
      Real* to = row(j);
      for (std::ptrdiff_t i = 0; i < r; ++i) to[i] = from[i];
      Real carried = from[r];
      for (std::ptrdiff_t i = r; i < j; ++i) {
        const Real c = cosines_[i], s = sines_[i], next = from[i + 1];
        to[i] = c * carried + s * next;
        carried = c * next - s * carried;
      }
      const Real last = from[j + 1], length = real::hypot(carried, last);
      cosines_[j] = carried / length;
      sines_[j] = last / length;
      to[j] = length;
    }
    --size_;
  }

  // x <- L^-T x and x <- L^-T L^-1 x, on the size() rows that count.
  void solve_transposed(Real* x) const {
    for (std::ptrdiff_t k = size_ - 1; k >= 0; --k) {
      const Real* l = row(k);
      x[k] /= l[k];
      for (std::ptrdiff_t i = 0; i < k; ++i) x[i] -= l[i] * x[k];
    }
  }
  void solve(Real* x) const {
    for (std::ptrdiff_t k = 0; k < size_; ++k) x[k] = (x[k] - dot(row(k), x, k)) / row(k)[k];
    solve_transposed(x);
  }

 private:
  static Real dot(const Real* a, const Real* b, std::ptrdiff_t size) {
    using Numbers = Eigen::Map<const Eigen::Matrix<Real, Eigen::Dynamic, 1>>;
    return Numbers(a, size).dot(Numbers(b, size));
  }
  Real* row(std::ptrdiff_t k) const { return factor_ + k * stride_; }

  Real* factor_ = nullptr;
  std::ptrdiff_t stride_ = 0;
  Real *cosines_ = nullptr, *sines_ = nullptr;
  std::ptrdiff_t size_ = 0;
};

}  // namespace attmirror
