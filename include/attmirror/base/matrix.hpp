// Matrices and vectors of doubles, and padded matrices for kernels.
//
// A padded matrix has `rows` rows of `cols` numbers, each row followed by zeros up to `stride`, a multiple of four
// doubles. Kernels run over the padding instead of treating remainders; zeros there change no sum and no norm.
#pragma once

#include <attmirror/base/aligned.hpp>

#include <cstddef>

#include <Eigen/Core>

// Eigen's matrices cross the library boundary; a program that aligns them differently could not free them.
// The CMake target attmirror::attmirror provides the definition.
static_assert(EIGEN_MAX_ALIGN_BYTES == 64, "compile with -DEIGEN_MAX_ALIGN_BYTES=64, as the library was");

namespace attmirror {

// A matrix of doubles, stored row by row.
using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
// A vector of doubles.
using Vector = Eigen::VectorXd;

// Views of a padded matrix. `data` may be treated as one flat array of rows * stride numbers.
struct ConstMatrixView {
  const double* data = nullptr;
  std::ptrdiff_t rows = 0, cols = 0, stride = 0;
  std::ptrdiff_t flat_size() const { return rows * stride; }
  auto eigen() const {
    return Eigen::Map<const Matrix, 0, Eigen::OuterStride<>>(data, rows, cols, Eigen::OuterStride<>(stride));
  }
};

// A matrix that lies elsewhere, with a stride between its rows. Writable.
struct MatrixView {
  double* data = nullptr;
  std::ptrdiff_t rows = 0, cols = 0, stride = 0;
  std::ptrdiff_t flat_size() const { return rows * stride; }
  operator ConstMatrixView() const { return {data, rows, cols, stride}; }
  auto eigen() const {
    return Eigen::Map<Matrix, 0, Eigen::OuterStride<>>(data, rows, cols, Eigen::OuterStride<>(stride));
  }
};

// A padded matrix that owns its memory, initially zeros.
class PaddedMatrix {
 public:
  PaddedMatrix() = default;
  PaddedMatrix(std::ptrdiff_t rows, std::ptrdiff_t cols)
      : rows_(rows), cols_(cols), values_(static_cast<std::size_t>(rows * padded(cols)), 0.0) {}
  explicit PaddedMatrix(const Matrix& values) : PaddedMatrix(values.rows(), values.cols()) {
    view().eigen() = values;
  }
  MatrixView view() { return {values_.data(), rows_, cols_, padded(cols_)}; }
  ConstMatrixView view() const { return {values_.data(), rows_, cols_, padded(cols_)}; }

 private:
  std::ptrdiff_t rows_ = 0, cols_ = 0;
  AlignedVector values_;
};

}  // namespace attmirror
