// Steepest directions attain the dual norm within the unit ball, for every norm.
#include "mirror/steepest.hpp"

#include "mirror/matrices.hpp"
#include "support/files.hpp"
#include "support/special_numbers.hpp"

#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace attmirror {
namespace {

using test::dot;
using test::expect_bad_input;
using test::infinity;
using test::padding_is_zero;

std::vector<Norm> steepest_norms() {
  std::vector<Norm> result;
  for (const double p : {1.0, 1.0001, 1.1, 1.5, 1.75, 2.0, 3.0, 7.5, 50.0, infinity}) {
    result.push_back(Norm::l(p));
    result.push_back(Norm::schatten(p));
  }
  return result;
}

struct Found {
  PaddedMatrix g, d;
  double dual = 0;
};

Found find(const Norm& which, const Matrix& g, Orthogonalization how = Orthogonalization::exact) {
  Found result{PaddedMatrix(g), PaddedMatrix(Matrix(Matrix::Constant(g.rows(), g.cols(), 42.0)))};
  result.dual = SteepestDirection(which, g.rows(), g.cols(), how).find(result.g.view(), result.d.view());
  EXPECT_TRUE(padding_is_zero(result.d.view()));
  return result;
}

TEST(SteepestDirection, AttainsTheDualNormWithinTheUnitBall) {
  for (const Norm& which : steepest_norms())
    for (const Matrix& g : test::sample_matrices()) {
      const Found found = find(which, g);
      SCOPED_TRACE(testing::Message() << to_string(which) << ", " << g.rows() << " x " << g.cols());
      EXPECT_NEAR(found.dual, norm(g, which.dual()), 1e-14 * found.dual);
      EXPECT_NEAR(dot(found.g, found.d), found.dual, 1e-13 * found.dual);
      EXPECT_LE(norm(found.d.view(), which), 1 + 1e-13);
    }
}

TEST(SteepestDirection, NothingInTheBallDoesBetter) {
  EXPECT_TRUE(rc::check("<g, d> >= <g, e> for ||e|| = 1", [] {
    const auto rows = *rc::gen::inRange(1, 9), cols = *rc::gen::inRange(1, 9);
    const Matrix g = test::normal_matrix(rows, cols, *rc::gen::arbitrary<std::uint64_t>()),
                 e = test::normal_matrix(rows, cols, *rc::gen::arbitrary<std::uint64_t>());
    for (const Norm& which : steepest_norms()) {
      const Found found = find(which, g);
      RC_ASSERT(found.dual >= g.cwiseProduct(e).sum() / norm(e, which) * (1 - 1e-13));
    }
  }));
}

TEST(SteepestDirection, DoesNotDependOnTheScale) {
  const Matrix g = test::low_rank_matrix(6, 5, 3, 1);
  for (const Norm& which : steepest_norms()) {
    const Found plain = find(which, g);
    for (const int exponent : {-1000, -500, 500, 1000}) {
      const Found scaled = find(which, g * std::ldexp(1.0, exponent));
      EXPECT_NEAR(std::ldexp(scaled.dual, -exponent), plain.dual, 2e-15 * plain.dual);
      const double amplify = which.p() < 1.01 && which.p() > 1 ? 1e4 : 1;  // powers up to q - 1 = 10^4
      EXPECT_LE((scaled.d.view().eigen() - plain.d.view().eigen()).cwiseAbs().maxCoeff(), 1e-14 * amplify)
          << to_string(which) << " 2^" << exponent;
    }
    const double tiny = std::numeric_limits<double>::denorm_min();
    const Found smallest = find(which, Matrix::Constant(1, 1, -tiny));
    EXPECT_EQ(smallest.dual, tiny) << to_string(which);
    EXPECT_NEAR(smallest.d.view().data[0], -1, 1e-15) << to_string(which);
  }
}

TEST(SteepestDirection, KnownDirections) {
  const Matrix g = (Matrix(2, 3) << 1, -5, 0, 5, -0.0, 2).finished();
  Matrix expected(2, 3);
  expected << 0, -1, 0, 0, 0, 0;  // the first of the two 5s
  EXPECT_EQ(Matrix(find(Norm::l(1), g).d.view().eigen()), expected);
  expected << 1, -1, 0, 1, 0, 1;
  EXPECT_EQ(Matrix(find(Norm::l(infinity), g).d.view().eigen()), expected);
  EXPECT_EQ(find(Norm::l(1), g).dual, 5);
  EXPECT_EQ(find(Norm::l(infinity), g).dual, 13);
  EXPECT_LE((find(Norm::frobenius(), g).d.view().eigen() - g / g.norm()).norm(), 1e-15);
  const Matrix diagonal = Eigen::Vector3d(3, 0, -4).asDiagonal();
  EXPECT_LE(
      (find(Norm::spectral(), diagonal).d.view().eigen() - Matrix(Eigen::Vector3d(1, 0, -1).asDiagonal()))
          .norm(),
      1e-15);
  EXPECT_LE(
      (find(Norm::nuclear(), diagonal).d.view().eigen() - Matrix(Eigen::Vector3d(0, 0, -1).asDiagonal()))
          .norm(),
      1e-15);
  EXPECT_NEAR(find(Norm::spectral(), diagonal).dual, 7, 1e-14);
  EXPECT_NEAR(find(Norm::nuclear(), diagonal).dual, 4, 1e-14);
}

TEST(SteepestDirection, MayOverwriteTheGradient) {
  for (const auto how : {Orthogonalization::exact, Orthogonalization::newton_schulz})
    for (const Norm& which : steepest_norms())
      for (const double scale : {1.0, 1e200}) {
        const Matrix g = test::normal_matrix(4, 6, 9) * scale;
        const Found apart = find(which, g, how);
        PaddedMatrix same(g);
        const double dual = SteepestDirection(which, 4, 6, how).find(same.view(), same.view());
        EXPECT_EQ(dual, apart.dual);
        EXPECT_EQ(Matrix(same.view().eigen()), Matrix(apart.d.view().eigen())) << to_string(which);
      }
}

TEST(SteepestDirection, NewtonSchulzIsNearTheSpectralDirection) {
  for (const Matrix& g : test::sample_matrices()) {
    const Found exact = find(Norm::spectral(), g),
                near = find(Norm::spectral(), g, Orthogonalization::newton_schulz);
    EXPECT_NEAR(near.dual, dot(near.g, near.d), 1e-12 * near.dual);
    EXPECT_NEAR(near.dual / exact.dual, 1, 0.35) << g.rows() << " x " << g.cols();
    EXPECT_LE(norm(near.d.view(), Norm::spectral()), 1.21);
  }
}

TEST(SteepestDirection, ZeroAndNotFinite) {
  for (const auto how : {Orthogonalization::exact, Orthogonalization::newton_schulz})
    for (const Norm& which : steepest_norms()) {
      const Found zero = find(which, Matrix::Zero(3, 5), how);
      EXPECT_EQ(zero.dual, 0);
      EXPECT_TRUE(zero.d.view().eigen().isZero(0));
      for (const double bad : {std::nan(""), infinity, -infinity}) {
        Matrix g = Matrix::Ones(3, 5);
        g(1, 4) = bad;
        const Found found = find(which, g, how);
        EXPECT_TRUE(std::isnan(bad) ? std::isnan(found.dual) : found.dual == infinity);
        EXPECT_TRUE(found.d.view().eigen().array().isNaN().all());
      }
    }
  expect_bad_input({"(2, 3)", "(3, 2)"}, [] {
    PaddedMatrix g(2, 3);
    SteepestDirection(Norm::l(2), 3, 2).find(g.view(), g.view());
  });
}

TEST(Orthogonalization, WordsAreReadBack) {
  for (const auto how : {Orthogonalization::exact, Orthogonalization::newton_schulz})
    EXPECT_EQ(parse_orthogonalization(to_string(how)), how);
  expect_bad_input({"orthogonalization is \"qr\"", "newton-schulz"}, [] { parse_orthogonalization("qr"); });
}

}  // namespace
}  // namespace attmirror
