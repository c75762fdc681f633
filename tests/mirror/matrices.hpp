// Matrices of any shape, rank and size for the tests of the geometries. The sources are compiled once: Eigen's
// decompositions are slow to compile.
#pragma once

#include <attmirror/base/matrix.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace attmirror::test {

Matrix normal_matrix(std::ptrdiff_t rows, std::ptrdiff_t cols, std::uint64_t seed);
Matrix low_rank_matrix(std::ptrdiff_t rows, std::ptrdiff_t cols, std::ptrdiff_t rank, std::uint64_t seed);

// Square, tall, wide, single rows and columns, padded and not; full rank, low rank, one entry, ties.
std::vector<Matrix> sample_matrices();

PaddedMatrix row(const std::vector<double>& values);
double dot(const PaddedMatrix& a, const PaddedMatrix& b);
bool padding_is_zero(ConstMatrixView w);

// A decomposition by Eigen to compare with: the vectors are columns.
struct ReferenceSvd {
  Eigen::MatrixXd U, V;
  Eigen::VectorXd sigma;
};
ReferenceSvd reference_svd(const Matrix& a);

}  // namespace attmirror::test
