// The fast algebra of room margin against the plain one, on every instruction set and number of threads.
#include "margin/cholesky.hpp"
#include "margin/normal_matrix.hpp"
#include "margin/plain_algebra.hpp"
#include "margin/random_constraints.hpp"
#include "support/same_bits.hpp"
#include <attmirror/base/isa.hpp>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

namespace attmirror {
namespace {

using test::random_constraints;
using test::random_matrix;

// Each test runs once for each set that the processor has.
class MarginKernels : public testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (!is_supported(GetParam())) GTEST_SKIP() << to_string(GetParam()) << " is not there";
    before_ = active_isa();
    set_isa(GetParam());
  }
  void TearDown() override { set_isa(before_); }

 private:
  Isa before_ = active_isa();
};
INSTANTIATE_TEST_SUITE_P(EverySet, MarginKernels, testing::Values(Isa::sse2, Isa::avx2, Isa::avx512),
                         [](const auto& each) { return std::string(to_string(each.param)); });

Matrix definite(std::ptrdiff_t size, std::uint64_t seed) {
  const Matrix half = random_matrix(size, 30, seed);
  Matrix result = half * half.transpose();
  result.diagonal().array() += 1;
  return result;
}

testing::AssertionResult same_lower_triangle(ConstMatrixView a, ConstMatrixView b) {
  const Matrix lower_a = a.eigen().triangularView<Eigen::Lower>(),
               lower_b = b.eigen().triangularView<Eigen::Lower>();
  return test::same_bits(lower_a, lower_b);
}

bool padding_is_zero(ConstMatrixView m) {
  for (std::ptrdiff_t i = 0; i < m.rows; ++i)
    for (std::ptrdiff_t j = m.cols; j < m.stride; ++j)
      if (m.data[i * m.stride + j] != 0) return false;
  return true;
}

TEST_P(MarginKernels, CholeskyIsThePlainOne) {
  ThreadPool two(2), three(3);
  // Around the widths of strips (16), panels (128) and the size from which there are panels (256).
  for (const std::ptrdiff_t size : {1, 2, 3, 15, 16, 17, 33, 42, 100, 255, 256, 257, 300, 385, 500}) {
    const Matrix full = definite(size, 1);
    PaddedMatrix plain{full}, fast{full}, shared{full}, shared_by_three{full};
    fast.view().eigen().triangularView<Eigen::StrictlyUpper>().setConstant(
        std::numeric_limits<double>::quiet_NaN());
    ASSERT_EQ(test::plain_cholesky(plain.view(), 1e-14), size);
    ASSERT_EQ(cholesky(fast.view(), 1e-14), size);
    ASSERT_EQ(cholesky(shared.view(), 1e-14, &two), size);
    ASSERT_EQ(cholesky(shared_by_three.view(), 1e-14, &three), size);
    EXPECT_TRUE(same_lower_triangle(fast.view(), shared.view())) << size;
    EXPECT_TRUE(same_lower_triangle(fast.view(), shared_by_three.view())) << size;
    EXPECT_TRUE(padding_is_zero(shared.view())) << size;
    const Matrix expected = plain.view().eigen().triangularView<Eigen::Lower>();
    const Matrix found = fast.view().eigen().triangularView<Eigen::Lower>();
    EXPECT_LT((found - expected).cwiseAbs().maxCoeff(), 1e-11 * expected.cwiseAbs().maxCoeff()) << size;

    const Vector b = random_matrix(size, 1, 2);
    Vector x = b, y = b;
    test::plain_cholesky_solve(plain.view(), size, x.data());
    cholesky_solve(fast.view(), size, y.data());
    EXPECT_LT((x - y).norm(), 1e-10 * x.norm()) << size;
    EXPECT_LT((full * y - b).norm(), 1e-10 * b.norm()) << size;
    // A leading block alone.
    if (const std::ptrdiff_t some = size * 2 / 3; some > 0) {
      Vector z = b;
      cholesky_solve(fast.view(), some, z.data());
      EXPECT_LT((full.topLeftCorner(some, some) * z.head(some) - b.head(some)).norm(), 1e-10 * b.norm());
      EXPECT_EQ(z.tail(size - some), b.tail(size - some));
    }
  }
}

TEST_P(MarginKernels, CholeskyStopsWhereThePlainOneDoes) {
  ThreadPool two(2);
  for (const std::ptrdiff_t size : {20, 300, 420})
    for (const std::ptrdiff_t wrong : {0, 1, 15, 16, 19, 127, 128, 200, 299, 419}) {
      if (wrong >= size) continue;
      Matrix full = definite(size, 3);
      // Dependent on two rows before it; for the first ones, without a diagonal.
      if (wrong > 1) {
        full.row(wrong) = full.row(0) + full.row(wrong - 1);
        full.col(wrong) = full.col(0) + full.col(wrong - 1);
      } else {
        full(wrong, wrong) = -1;
      }
      PaddedMatrix plain{full}, fast{full}, shared{full};
      ASSERT_EQ(test::plain_cholesky(plain.view(), 1e-10), wrong);
      EXPECT_EQ(cholesky(fast.view(), 1e-10), wrong) << size;
      EXPECT_EQ(cholesky(shared.view(), 1e-10, &two), wrong) << size;
      // The factor of the leading block, and the next row's part of it.
      for (std::ptrdiff_t i = 0; i <= wrong; ++i)
        for (std::ptrdiff_t j = 0; j <= i && j < wrong; ++j)
          ASSERT_NEAR(fast.view().eigen()(i, j), plain.view().eigen()(i, j), 1e-9) << i << ' ' << j;
    }
}

TEST_P(MarginKernels, CholeskyStopsAtWhatIsNotANumber) {
  for (const double bad :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    Matrix full = definite(280, 4);
    full(270, 150) = bad;
    PaddedMatrix m{full};
    EXPECT_EQ(cholesky(m.view(), 1e-14), 270);
    full = definite(280, 4);
    full(30, 30) = bad;
    m = PaddedMatrix{full};
    EXPECT_EQ(cholesky(m.view(), 1e-14), 30);
  }
}

TEST_P(MarginKernels, NormalMatricesAreThePlainOnes) {
  ThreadPool two(2), three(3);
  struct Case {
    std::ptrdiff_t groups, each, rows, cols, step;  // every step-th constraint is in the list
  };
  for (const Case& c :
       {Case{1, 1, 1, 1, 1}, Case{6, 7, 10, 10, 1}, Case{6, 7, 10, 10, 3}, Case{40, 3, 9, 5, 2},
        Case{70, 1, 5, 3, 1}, Case{5, 60, 13, 1, 1}, Case{60, 4, 64, 64, 1}}) {
    const ScaledConstraints scaled{
        MarginConstraints(random_constraints(c.groups, c.each, c.rows, c.cols, 5))};
    std::vector<std::ptrdiff_t> J;
    for (std::ptrdiff_t k = c.step - 1; k < scaled.count(); k += c.step) J.push_back(k);
    const auto size = static_cast<std::ptrdiff_t>(J.size());
    const Matrix D = random_matrix(c.rows, c.cols, 6).cwiseAbs(), ones = Matrix::Ones(c.rows, c.cols);
    PaddedMatrix M(size, size), shared(size, size), identity(size, size), shared_identity(size, size);
    normal_matrix(scaled, J, PaddedMatrix(D).view(), M.view());
    normal_matrix(scaled, J, PaddedMatrix(D).view(), shared.view(), &two);
    normal_matrix_identity(scaled, J, identity.view());
    normal_matrix_identity(scaled, J, shared_identity.view(), &three);
    EXPECT_TRUE(same_lower_triangle(M.view(), shared.view()));
    EXPECT_TRUE(same_lower_triangle(identity.view(), shared_identity.view()));
    EXPECT_TRUE(padding_is_zero(M.view()));
    EXPECT_TRUE(padding_is_zero(identity.view()));
    for (std::ptrdiff_t r = 0; r < size; r += 1 + size / 50)
      for (std::ptrdiff_t s = 0; s <= r; ++s) {
        const std::ptrdiff_t k = J[static_cast<std::size_t>(r)], l = J[static_cast<std::size_t>(s)];
        const double scale = static_cast<double>(c.rows * c.cols);
        ASSERT_NEAR(M.view().eigen()(r, s), test::plain_normal_entry(scaled, D, k, l), 1e-14 * scale);
        ASSERT_NEAR(identity.view().eigen()(r, s), test::plain_normal_entry(scaled, ones, k, l),
                    1e-14 * scale);
      }
  }
}

TEST_P(MarginKernels, OperatorsAreThePlainOnes) {
  ThreadPool two(2), three(3);
  struct Case {
    std::ptrdiff_t groups, each, rows, cols;
  };
  for (const Case& c :
       {Case{1, 1, 1, 1}, Case{6, 7, 10, 10}, Case{37, 3, 9, 5}, Case{5, 60, 13, 1}, Case{300, 11, 70, 35}}) {
    const ScaledConstraints scaled{
        MarginConstraints(random_constraints(c.groups, c.each, c.rows, c.cols, 7))};
    const Matrix W = random_matrix(c.rows, c.cols, 8);
    const auto count = static_cast<std::size_t>(scaled.count());
    AlignedVector lambda(count), one(count), more(count);
    for (std::size_t k = 0; k < count; ++k) lambda[k] = k % 3 == 0 ? 0 : std::sin(static_cast<double>(k));
    PaddedMatrix scratch = scaled.make_scratch();
    scaled.forward(PaddedMatrix(W).view(), scratch, one);
    EXPECT_TRUE(padding_is_zero(scratch.view()));
    scaled.forward(PaddedMatrix(W).view(), scratch, more, &two);
    EXPECT_EQ(one, more);
    const Vector margins = test::plain_forward(scaled, W);
    EXPECT_LT((Eigen::Map<const Vector>(one.data(), scaled.count()) - margins).cwiseAbs().maxCoeff(),
              1e-14 * static_cast<double>(c.rows * c.cols));

    PaddedMatrix U(c.rows, c.cols), V(c.rows, c.cols);
    scaled.adjoint(lambda, scratch, U.view());
    scaled.adjoint(lambda, scratch, V.view(), &three);
    EXPECT_EQ(U.view().eigen(), V.view().eigen());
    EXPECT_TRUE(padding_is_zero(U.view()));
    const Matrix expected = test::plain_adjoint(scaled, lambda);
    EXPECT_LT((U.view().eigen() - expected).cwiseAbs().maxCoeff(), 1e-14 * static_cast<double>(count));
  }
}

}  // namespace
}  // namespace attmirror
