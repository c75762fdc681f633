// Double-double numbers against integers of 128 bits and identities that 31 digits must keep.
#include "margin/double_double.hpp"

#include "margin/normal_matrix.hpp"
#include "margin/precise_constraints.hpp"
#include "margin/random_constraints.hpp"
#include "support/random_data.hpp"

#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

namespace attmirror {
namespace {

// x - y relative to y, in units of the last place of a DoubleDouble.
double places(DoubleDouble x, DoubleDouble y) {
  return static_cast<double>(fabs(x - y) / fabs(y) / std::numeric_limits<DoubleDouble>::epsilon());
}

TEST(DoubleDouble, ProductsOfIntegersAreExact) {
  const Matrix numbers = test::random_matrix(200, 2, 1);
  for (std::ptrdiff_t i = 0; i < numbers.rows(); ++i) {
    const auto x = static_cast<std::int64_t>(numbers(i, 0) * 0x1p50),
               y = static_cast<std::int64_t>(numbers(i, 1) * 0x1p50);
    __extension__ using Wide = __int128;
    const Wide exact = static_cast<Wide>(x) * y;
    const DoubleDouble product = DoubleDouble::product(static_cast<double>(x), static_cast<double>(y));
    EXPECT_EQ(static_cast<Wide>(product.high()) + static_cast<Wide>(product.low()), exact) << i;
    const DoubleDouble sum = product + DoubleDouble(1) - DoubleDouble::product(double(x), double(y));
    EXPECT_EQ(static_cast<double>(sum), 1) << i;
  }
}

TEST(DoubleDouble, KeepsItsDigits) {
  const Matrix numbers = test::random_matrix(300, 3, 2);
  for (std::ptrdiff_t i = 0; i < numbers.rows(); ++i) {
    const DoubleDouble x = DoubleDouble(numbers(i, 0)) + DoubleDouble(1e-17 * numbers(i, 1)),
                       y = numbers(i, 2);
    EXPECT_LE(places(x / y * y, x), 8) << i;
    EXPECT_LE(places(sqrt(x * x), fabs(x)), 8) << i;
    EXPECT_LE(places((x + y) * (x - y) + y * y, x * x), 8 * (1 + static_cast<double>(y * y / (x * x)))) << i;
  }
  EXPECT_TRUE(DoubleDouble(1) + DoubleDouble(1e-20) > DoubleDouble(1));
  EXPECT_FALSE(isfinite(DoubleDouble(1) / DoubleDouble(0)));
}

// Operators and normal matrices: those of doubles, up to the rounding of doubles.
TEST(PreciseConstraints, AgreeWithThoseInDoubles) {
  const MarginConstraints original(test::random_constraints(4, 3, 5, 6, 7));
  const ScaledConstraints scaled(original);
  const PreciseConstraints B(scaled);
  const std::ptrdiff_t m = scaled.count();
  const Matrix W = test::random_matrix(5, 6, 8);
  const Vector lambda = test::random_matrix(m, 1, 9).col(0);
  PaddedMatrix scratch = scaled.make_scratch(), U(5, 6);
  AlignedVector margins(static_cast<std::size_t>(m));
  scaled.forward(PaddedMatrix(W).view(), scratch, margins);
  EXPECT_LE((rounded(B.forward(W.cast<DoubleDouble>())) - Eigen::Map<Vector>(margins.data(), m)).norm(),
            1e-13);
  scaled.adjoint({lambda.data(), static_cast<std::size_t>(m)}, scratch, U.view());
  EXPECT_LE((rounded(B.adjoint(lambda.cast<DoubleDouble>())) - Matrix(U.view().eigen())).norm(), 1e-13);

  const auto lower = [&](const Matrix& M) { return Matrix(M.triangularView<Eigen::Lower>()); };
  const auto zeroed = [&](PreciseMatrix M) {
    for (std::ptrdiff_t k = 0; k < M.rows(); ++k)
      for (std::ptrdiff_t l = k + 1; l < M.cols(); ++l) M(k, l) = 0;
    return rounded(M);
  };
  PaddedMatrix out(m, m);
  const std::vector<std::ptrdiff_t> J{0, 2, 3, 7, 8, 11};
  const Matrix D = test::random_matrix(5, 6, 10).cwiseAbs();
  normal_matrix(scaled, J, PaddedMatrix(D).view(), out.view());
  EXPECT_LE(
      (zeroed(B.normal_matrix(J, PaddedMatrix(D).view())) - lower(out.view().eigen().topLeftCorner(6, 6)))
          .norm(),
      1e-13);

  const Matrix L = test::random_matrix(5, 5, 11), R = test::random_matrix(6, 6, 12);
  Matrix beta = test::random_matrix(5, 5, 13);
  beta = Matrix(beta + beta.transpose());
  const SpectralWeights weights{PaddedMatrix(Matrix(scaled.left().eigen() * L)),
                                PaddedMatrix(Matrix(scaled.right().eigen() * R)), D, beta};
  normal_matrix_spectral(scaled, weights, out.view());
  EXPECT_LE((zeroed(B.spectral_normal_matrix(L, R, D, beta)) - lower(out.view().eigen())).norm(),
            1e-12 * out.view().eigen().norm());

  Matrix P = L * L.transpose(), Q = R * R.transpose();
  const Matrix C = test::random_matrix(5, 6, 14);
  normal_matrix_products(scaled, P, C, Q, out.view());
  EXPECT_LE((zeroed(B.products_normal_matrix(P, C, Q)) - lower(out.view().eigen())).norm(),
            1e-12 * out.view().eigen().norm());
}

// A matrix of condition 1e20: nothing in doubles.
TEST(PreciseConstraints, FactorsWhatDoublesCannot) {
  const std::ptrdiff_t n = 6;
  PreciseMatrix B = test::random_matrix(n, n + 2, 15).cast<DoubleDouble>();
  for (std::ptrdiff_t j = 0; j < n + 2; ++j)
    B(n - 1, j) = B(0, j) + B(1, j) + DoubleDouble(1e-10) * B(n - 1, j);
  const PreciseMatrix M = B * B.transpose();
  const PreciseVector x = test::random_matrix(n, 1, 16).col(0).cast<DoubleDouble>();
  const PreciseFactor factor(M);
  ASSERT_EQ(factor.rank(), n);
  EXPECT_LE((rounded(PreciseVector(factor.solve(PreciseVector(M * x)) - x))).norm(), 1e-9);
  // And a row that depends on the others is left out.
  PreciseMatrix more(n + 1, n + 1);
  PreciseMatrix rows(n + 1, n + 2);
  rows.topRows(n) = B;
  rows.row(n) = B.row(0) + B.row(2);
  more = rows * rows.transpose();
  EXPECT_EQ(PreciseFactor(more).rank(), n);
}

}  // namespace
}  // namespace attmirror
