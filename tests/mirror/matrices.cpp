#include "mirror/matrices.hpp"

#include "base/random.hpp"

#include <algorithm>
#include <utility>

#include <Eigen/SVD>

namespace attmirror::test {

Matrix normal_matrix(std::ptrdiff_t rows, std::ptrdiff_t cols, std::uint64_t seed) {
  const CounterRandom random(seed, RandomStream::init_W);
  Matrix result(rows, cols);
  for (std::ptrdiff_t j = 0; j < result.size(); ++j)
    result.data()[j] = random.normal(static_cast<std::uint64_t>(j));
  return result;
}

Matrix low_rank_matrix(std::ptrdiff_t rows, std::ptrdiff_t cols, std::ptrdiff_t rank, std::uint64_t seed) {
  return normal_matrix(rows, rank, seed) * normal_matrix(rank, cols, seed + 1000);
}

std::vector<Matrix> sample_matrices() {
  std::vector<Matrix> result;
  for (const auto& [rows, cols] : std::vector<std::pair<int, int>>{
           {1, 1}, {1, 7}, {7, 1}, {2, 2}, {3, 5}, {5, 3}, {4, 4}, {10, 10}, {8, 21}, {21, 8}, {33, 33}})
    result.push_back(normal_matrix(rows, cols, static_cast<std::uint64_t>(100 * rows + cols)));
  result.push_back(low_rank_matrix(10, 10, 6, 1));
  result.push_back(low_rank_matrix(10, 10, 1, 2));
  result.push_back(low_rank_matrix(12, 5, 3, 3));
  result.push_back(low_rank_matrix(5, 12, 2, 4));
  result.push_back(low_rank_matrix(40, 40, 6, 5));
  result.push_back(Matrix::Identity(6, 6));
  result.push_back(Matrix::Ones(4, 9));
  Matrix single = Matrix::Zero(5, 6);
  single(3, 2) = -2;
  result.push_back(single);
  return result;
}

PaddedMatrix row(const std::vector<double>& values) {
  PaddedMatrix result(1, static_cast<std::ptrdiff_t>(values.size()));
  std::ranges::copy(values, result.view().data);
  return result;
}

double dot(const PaddedMatrix& a, const PaddedMatrix& b) {
  return a.view().eigen().cwiseProduct(b.view().eigen()).sum();
}

bool padding_is_zero(ConstMatrixView w) {
  for (std::ptrdiff_t i = 0; i < w.rows; ++i)
    for (std::ptrdiff_t j = w.cols; j < w.stride; ++j)
      if (w.data[i * w.stride + j] != 0) return false;
  return true;
}

ReferenceSvd reference_svd(const Matrix& a) {
  const Eigen::JacobiSVD<Eigen::MatrixXd> svd(a, Eigen::ComputeThinU | Eigen::ComputeThinV);
  return {svd.matrixU(), svd.matrixV(), svd.singularValues()};
}

}  // namespace attmirror::test
