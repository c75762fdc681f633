// Constraints as an operator, and their normal matrices, in double-double numbers (double_double.hpp).
//
// Where some combination of constraints all but cancels, W is large: ||W|| = 1e8 in units of the data means a B with a
// singular value of 1e-8 and a B D B^T with an eigenvalue of 1e-16, the rounding of a double. D may be rounded: what
// is wrong with it acts on B^T x, which is as small as it should be, if only B is applied exactly. So the D's of all
// norms stay doubles, and B, B^T and B D B^T are what gains digits here.
#pragma once

#include "margin/double_double.hpp"
#include "margin/growing_cholesky.hpp"
#include "margin/normal_matrix.hpp"
#include "margin/scaled_constraints.hpp"
#include <attmirror/base/matrix.hpp>

#include <cstddef>
#include <span>
#include <vector>

namespace attmirror {

using PreciseMatrix = Eigen::Matrix<DoubleDouble, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using PreciseVector = Eigen::Matrix<DoubleDouble, Eigen::Dynamic, 1>;

Matrix rounded(const PreciseMatrix& values);
Vector rounded(const PreciseVector& values);
PreciseVector precise(std::span<const double> values);
PreciseMatrix precise(ConstMatrixView values);

class PreciseConstraints {
 public:
  // The largest number of rows that a normal matrix may have: a factorization of 600 takes about a second.
  static constexpr std::ptrdiff_t most_rows = 600;

  // Holds a reference.
  explicit PreciseConstraints(const ScaledConstraints& constraints) : constraints_(&constraints) {}

  const ScaledConstraints& plain() const { return *constraints_; }
  PreciseVector forward(const PreciseMatrix& W) const;
  PreciseMatrix adjoint(const PreciseVector& lambda) const;

  // The lower triangle of B D B^T for the constraints in J, for a D as normal_matrix.hpp has them: entry by entry, ...
  PreciseMatrix normal_matrix(std::span<const std::ptrdiff_t> J, ConstMatrixView D) const;
  // ... between two bases, whose columns need not be orthogonal, all constraints, ...
  PreciseMatrix spectral_normal_matrix(const Matrix& L, const Matrix& R, const Matrix& alpha,
                                       const Matrix& beta) const;
  // ... and (P X Q + C X^T C) / 2, all constraints.
  PreciseMatrix products_normal_matrix(const Matrix& P, const Matrix& C, const Matrix& Q) const;

  std::vector<std::ptrdiff_t> all() const;

 private:
  const ScaledConstraints* constraints_;
};

// The lower triangle of M + v v^T / theta.
PreciseMatrix with_rank_one(PreciseMatrix M, const PreciseVector& v, double theta);

// M = L L^T of a positive semidefinite M, without the rows that depend on earlier ones.
class PreciseFactor {
 public:
  explicit PreciseFactor(const PreciseMatrix& M);
  PreciseFactor(PreciseFactor&&) = default;  // L_ points into numbers_, whose memory moves along
  PreciseFactor& operator=(PreciseFactor&&) = default;
  std::ptrdiff_t rank() const { return static_cast<std::ptrdiff_t>(kept_.size()); }
  // M^-1 right on the rows that were kept, 0 elsewhere.
  PreciseVector solve(const PreciseVector& right) const;

 private:
  std::vector<DoubleDouble> numbers_, rotations_;
  std::vector<std::ptrdiff_t> kept_;
  GrowingCholesky<DoubleDouble> L_;
};

}  // namespace attmirror
