// The constraints as the solvers see them: of unit size, without the trivial ones, and as an operator.
//
//   forward   (B W)_k = a_k^T W z_g                        margins
//   adjoint   B^T lambda = sum_k lambda_k a_k z_g^T        a matrix of W's shape
//
// Each a_k and z_g is divided by a power of two so that its largest entry lies in [1/2, 1), and all bounds by one
// more so that the largest lies there too; that is exact, and data of 1e150 or 1e-150 make no square over- or
// underflow. With A_k = 2^{e_k} A'_k and c_k = 2^{e_k + e} c'_k the solutions are W = 2^e W' and lambda_k = 2^{-e_k}
// lambda'_k. Rows with a_k z_g^T = 0 are not here: with c_k = 0 they say nothing, otherwise they alone make the
// problem infeasible.
#pragma once

#include <attmirror/base/matrix.hpp>
#include <attmirror/base/thread_pool.hpp>
#include <attmirror/margin/constraints.hpp>

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace attmirror {

class ScaledConstraints {
 public:
  explicit ScaledConstraints(const MarginConstraints& constraints);

  // Those with these indices (ascending), of the same scale. Groups without a constraint are left out.
  ScaledConstraints subset(std::span<const std::ptrdiff_t> kept) const;

  // The same for W = P W' Q^T in terms of W': a_k becomes P^T a_k, z_g becomes Q^T z_g. What unscales is then not to
  // be used.
  ScaledConstraints in_bases(const Matrix& P, const Matrix& Q) const;

  // A constraint of the original problem that no W can satisfy: 0 >= c > 0, or 0 = c != 0.
  std::optional<std::ptrdiff_t> contradiction() const { return contradiction_; }

  std::ptrdiff_t count() const { return left_.view().rows; }
  std::ptrdiff_t rows() const { return left_.view().cols; }
  std::ptrdiff_t cols() const { return right_.view().cols; }
  std::ptrdiff_t groups() const { return right_.view().rows; }
  std::ptrdiff_t first(std::ptrdiff_t g) const { return offsets_[static_cast<std::size_t>(g)]; }
  std::ptrdiff_t group_of(std::ptrdiff_t k) const { return group_of_[static_cast<std::size_t>(k)]; }
  ConstMatrixView left() const { return left_.view(); }
  ConstMatrixView right() const { return right_.view(); }
  std::span<const double> bounds() const { return bounds_; }
  bool is_equality(std::ptrdiff_t k) const { return equality_[static_cast<std::size_t>(k)] != 0; }
  std::ptrdiff_t equalities() const { return equalities_; }

  // Writes B W into `margins` (count() numbers), and B^T lambda into `out`. `scratch` is groups() x rows() and may be
  // kept between calls. A pool spreads large ones over its threads, with the same bits.
  void forward(ConstMatrixView W, PaddedMatrix& scratch, std::span<double> margins,
               ThreadPool* pool = nullptr) const;
  void adjoint(std::span<const double> lambda, PaddedMatrix& scratch, MatrixView out,
               ThreadPool* pool = nullptr) const;
  PaddedMatrix make_scratch() const { return PaddedMatrix(groups(), rows()); }

  // Between this scale and that of the original problem. `original_count` multipliers come back, 0 for rows left out.
  Matrix unscale_weights(ConstMatrixView W) const;
  Vector unscale_multipliers(std::span<const double> lambda) const;
  Matrix scale_weights(const Matrix& W) const;
  Vector scale_multipliers(const Vector& lambda) const;
  std::ptrdiff_t original_index(std::ptrdiff_t k) const { return original_[static_cast<std::size_t>(k)]; }

 private:
  ScaledConstraints() = default;

  PaddedMatrix left_, right_;
  std::vector<std::ptrdiff_t> offsets_{0}, group_of_, original_;
  std::vector<double> bounds_;
  std::vector<unsigned char> equality_;
  std::vector<int> exponents_;  // e_k
  int bound_exponent_ = 0;      // e
  std::ptrdiff_t equalities_ = 0, original_count_ = 0;
  std::optional<std::ptrdiff_t> contradiction_;
};

}  // namespace attmirror
