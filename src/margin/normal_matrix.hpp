// The matrix of every Newton step here: B D B^T for the constraints in a list J, where D acts on matrices of W's shape.
//
// Entrywise norms: D multiplies entry (i, j) by D_ij, and with groups g, g' of k, l
//
//   (B D B^T)_kl = sum_i a_ki a_li h_i,   h_i = sum_j D_ij z_gj z_g'j        one h for each pair of groups
//
// so all pairs of constraints of two groups share a vector: G^2 d^2 / 2 + |J|^2 d / 2 multiplications instead of
// |J|^2 d^2 / 2, and no A_k is formed. D_ij = 1 (Frobenius) is simpler still: (a_k^T a_l) (z_g^T z_g').
//
// Norms of singular values: D works in the basis of the singular vectors, X -> P (alpha o X~ + beta o X~^T) Q^T with
// X~ = P^T X Q. The a's and z's are rotated first (a~ = P^T a, z~ = Q^T z), then alpha is as above and
//
//   beta's part = sum_ij beta_ij a~_ki z~_gj a~_lj z~_g'i = a~_k^T [diag(z~_g') beta diag(z~_g)] a~_l
#pragma once

#include "margin/scaled_constraints.hpp"
#include <attmirror/base/matrix.hpp>
#include <attmirror/base/thread_pool.hpp>

#include <cstddef>
#include <span>

namespace attmirror {

// Each writes the lower triangle of B_J D B_J^T into the first |J| rows and columns of `out`, which has at least that
// size and padded rows. Entries above the diagonal may be overwritten. J is ascending. A pool spreads large ones over
// its threads, with the same bits.
void normal_matrix(const ScaledConstraints& constraints, std::span<const std::ptrdiff_t> J, ConstMatrixView D,
                   MatrixView out, ThreadPool* pool = nullptr);
void normal_matrix_identity(const ScaledConstraints& constraints, std::span<const std::ptrdiff_t> J,
                            MatrixView out, ThreadPool* pool = nullptr);

// A D that works between two bases: D X = L (alpha o X~ + beta o X~^T) R^T with X~ = L^T X R. The columns of L and R
// need not be orthogonal. `left` is the a's times L, `right` the z's times R; alpha has W~'s shape, beta is square of
// its shorter side and symmetric.
struct SpectralWeights {
  PaddedMatrix left, right;
  Matrix alpha, beta;
};
void normal_matrix_spectral(const ScaledConstraints& constraints, const SpectralWeights& weights,
                            MatrixView out, ThreadPool* pool = nullptr);

// The same for D X = (P X Q + C X^T C) / 2 with symmetric P and Q: three products of all a's and z's and no work per
// pair of groups, (a_k^T P a_l z_g^T Q z_g' + a_k^T C z_g' a_l^T C z_g) / 2.
void normal_matrix_products(const ScaledConstraints& constraints, const Matrix& P, const Matrix& C,
                            const Matrix& Q, MatrixView out, ThreadPool* pool = nullptr);

}  // namespace attmirror
