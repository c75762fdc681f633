// Products against sums that are written out, to the last bit: each entry is summed from the first term to the last.
#include "base/matrix_product.hpp"

#include <attmirror/base/isa.hpp>

#include <cmath>
#include <random>

#include <gtest/gtest.h>

namespace attmirror {
namespace {

PaddedMatrix random_matrix(std::ptrdiff_t rows, std::ptrdiff_t cols, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  return PaddedMatrix(Matrix::NullaryExpr(rows, cols, [&] { return normal(random); }));
}

Matrix written_out(const Matrix& A, const Matrix& B) {
  const bool fused = active_isa() != Isa::sse2;
  Matrix C = Matrix::Zero(A.rows(), B.cols());
  for (std::ptrdiff_t i = 0; i < A.rows(); ++i)
    for (std::ptrdiff_t j = 0; j < B.cols(); ++j)
      for (std::ptrdiff_t k = 0; k < A.cols(); ++k)
        C(i, j) = fused ? std::fma(A(i, k), B(k, j), C(i, j)) : A(i, k) * B(k, j) + C(i, j);
  return C;
}

struct Size {
  std::ptrdiff_t rows, cols, inner;
};

TEST(MatrixProduct, IsTheSumFromTheFirstTermToTheLast) {
  for (const Size& size : {Size{1, 1, 1}, Size{1, 40, 3}, Size{7, 5, 3}, Size{8, 16, 512}, Size{17, 33, 1100},
                           Size{100, 130, 70}, Size{203, 67, 513}, Size{3, 4, 0}})
    for (const int threads : {1, 3}) {
      ThreadPool pool(threads);
      MatrixProduct product(pool);
      const PaddedMatrix A = random_matrix(size.rows, size.inner, 1),
                         B = random_matrix(size.inner, size.cols, 2);
      const PaddedMatrix transposed(Matrix(A.view().eigen().transpose()));
      const Matrix expected = written_out(A.view().eigen(), B.view().eigen());
      // What C held before does not matter; its padding stays zero.
      PaddedMatrix C(size.rows, size.cols), D = C;
      C.view().eigen().setConstant(std::nan(""));
      product.multiply(A.view(), one_panel(B.view()), one_panel(C.view()));
      product.multiply_transposed(transposed.view(), one_panel(B.view()), one_panel(D.view()));
      EXPECT_EQ(Matrix(C.view().eigen()), expected) << size.rows << " " << size.cols << " " << size.inner;
      EXPECT_EQ(Matrix(D.view().eigen()), expected);
      for (std::ptrdiff_t r = 0; r < size.rows; ++r)
        for (std::ptrdiff_t c = size.cols; c < C.view().stride; ++c)
          EXPECT_EQ(C.view().data[r * C.view().stride + c], 0);
    }
}

TEST(MatrixProduct, ReadsAndWritesPanels) {
  ThreadPool pool(2);
  MatrixProduct product(pool);
  for (const std::ptrdiff_t cols : {5, 64, 65, 200}) {
    const PaddedMatrix A = random_matrix(90, 110, 3), B = random_matrix(110, cols, 4);
    PanelMatrix b(110, cols), c(90, cols);
    copy(B.view(), b.view(), pool);
    product.multiply(A.view(), std::as_const(b).view(), c.view());
    PaddedMatrix C(90, cols);
    copy(std::as_const(c).view(), C.view(), pool);
    EXPECT_EQ(Matrix(C.view().eigen()), written_out(A.view().eigen(), B.view().eigen())) << cols;
    EXPECT_EQ(c.view().at(89, cols - 1), C.view().eigen()(89, cols - 1));
    // Beyond the last column rows have zeros up to whole vectors.
    const Panels<double> panels = c.view();
    for (std::ptrdiff_t v = cols; v < panels.count() * panels.width; ++v) EXPECT_EQ(panels.at(7, v), 0);
  }
}

TEST(MatrixProduct, KeepsWhatIsNoNumberInItsRowAndColumn) {
  ThreadPool pool(1);
  MatrixProduct product(pool);
  PaddedMatrix A = random_matrix(20, 30, 5), B = random_matrix(30, 40, 6), C(20, 40);
  A.view().eigen()(3, 4) = std::nan("");
  product.multiply(A.view(), one_panel(ConstMatrixView(B.view())), one_panel(C.view()));
  for (std::ptrdiff_t r = 0; r < 20; ++r)
    for (std::ptrdiff_t c = 0; c < 40; ++c) EXPECT_EQ(std::isnan(C.view().eigen()(r, c)), r == 3);
}

}  // namespace
}  // namespace attmirror
