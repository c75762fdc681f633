// Singular value decomposition and polar factor of matrices of one shape, with all memory allocated beforehand.
//
//   a = sum_k sigma_k u_k v_k^T,   sigma_1 >= sigma_2 >= ... >= 0,   k < min(rows, cols)
//
// The method is one-sided Jacobi on the triangular factor of a pivoted QR (Drmac and Veselic, "New fast and accurate
// Jacobi SVD algorithm", 2008). Rotations make vectors orthogonal to each other relative to their own lengths, so that
// small singular values keep digits that a bidiagonal method loses: a mirror map raises them to powers, and a small
// one may become a large one. The blocks of attention are small (a dozen to some hundred columns), where this is as
// fast as anything.
#pragma once

#include <attmirror/base/matrix.hpp>

#include <cstddef>
#include <span>
#include <vector>

namespace attmirror {

// What to do with singular values that cannot be told from rounding, those up to max(rows, cols) eps sigma_1. A matrix
// of rank r has, once its entries are rounded, values of about eps sigma_1 in place of its zeros, and never more than
// this many times as large; their vectors mean nothing.
enum class SmallValues {
  keep,  // a matrix with rows or columns of very different size may have small values with many digits
  // They become 0. Gradients have no higher rank than there are sequences, often far below their size: saves time.
  drop,
};

class Svd {
 public:
  // For matrices of this shape; the constructor allocates, nothing else does. One object serves one thread.
  Svd(std::ptrdiff_t rows, std::ptrdiff_t cols);

  std::ptrdiff_t rows() const { return rows_; }
  std::ptrdiff_t cols() const { return cols_; }

  // Decomposes `a`, whose entries may be of any size: it is scaled by a power of two first. Values below 1e-140
  // sigma_1 come out as 0. If an entry is not finite, all results are NaN. Throws Error (bad input) for another shape.
  void compute(ConstMatrixView a, SmallValues small = SmallValues::keep);

  // The same values without the vectors, a little faster; left() and right() are then not to be used.
  void compute_values(ConstMatrixView a);

  // min(rows, cols) numbers, largest first, as one row.
  ConstMatrixView values() const { return {values_.view().data, 1, rank_limit(), padded(rank_limit())}; }
  double value(std::ptrdiff_t k) const { return values_.view().data[k]; }

  // Row k is u_k (v_k). Those of zero values are zero.
  ConstMatrixView left() const { return rows_ >= cols_ ? long_.view() : short_.view(); }
  ConstMatrixView right() const { return rows_ >= cols_ ? short_.view() : long_.view(); }

  // How many values exceed max(rows, cols) eps sigma_1.
  std::ptrdiff_t rank() const;

  // out = sum_k weights[k] u_k v_k^T; `weights` may be fewer than there are values. NaN if one is not finite.
  void compose(std::span<const double> weights, MatrixView out);

  // out = sum of u_k v_k^T over k < rank(), the nearest matrix with singular values 0 and 1.
  void polar(MatrixView out);

  // Rounds of rotations that the last decomposition took.
  int sweeps() const { return sweeps_; }

 private:
  enum class Vectors { none, both };
  std::ptrdiff_t rank_limit() const { return rows_ < cols_ ? rows_ : cols_; }
  void decompose(ConstMatrixView a, SmallValues small, Vectors vectors);
  void load(ConstMatrixView a, int exponent);
  std::ptrdiff_t triangularize(double negligible);
  double rounding_level() const;  // max(rows, cols) eps
  void orthogonalize(std::ptrdiff_t count, Vectors vectors);
  void finish(std::ptrdiff_t count, int exponent, Vectors vectors);

  std::ptrdiff_t rows_, cols_;
  int sweeps_ = 0;
  PaddedMatrix
      reflectors_;         // short x long: the columns of the tall one of a and a^T, then Householder vectors
  PaddedMatrix triangle_;  // short x short: the rows of R, then sigma_k times the short singular vectors
  PaddedMatrix rotations_;  // short x short: the rotations' product
  PaddedMatrix long_, short_, values_, weighted_;
  AlignedVector taus_, norms_;
  std::vector<std::ptrdiff_t> pivots_, order_;
};

}  // namespace attmirror
