// The Schatten-p geometry: the identities of a mirror map, on matrices of every shape, rank and size.
#include "mirror/schatten_map.hpp"

#include "mirror/matrices.hpp"
#include "mirror/steepest.hpp"
#include "support/files.hpp"
#include <attmirror/mirror/norm.hpp>

#include <cmath>
#include <string>
#include <vector>

#include <Eigen/SVD>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace attmirror {
namespace {

using test::dot;
using test::expect_bad_input;
using test::normal_matrix;
using test::padding_is_zero;

class SchattenMapOf : public ::testing::TestWithParam<double> {
 protected:
  double p = GetParam();
  SchattenMap map{p};

  PaddedMatrix mapped(const Matrix& w) {
    PaddedMatrix y(w);
    map.map(y.view(), y.view());
    EXPECT_TRUE(padding_is_zero(y.view()));
    return y;
  }
  PaddedMatrix inverted(const Matrix& y) {
    PaddedMatrix w(y);
    map.inverse(w.view(), w.view());
    EXPECT_TRUE(padding_is_zero(w.view()));
    return w;
  }
  double bregman(const Matrix& a, const Matrix& b) {
    return map.bregman(PaddedMatrix(a).view(), PaddedMatrix(b).view());
  }
};

INSTANTIATE_TEST_SUITE_P(Geometries, SchattenMapOf, ::testing::Values(1.1, 1.5, 1.75, 2.0, 2.5, 3.0, 7.0),
                         [](const auto& geometry) {
                           return fmt::format("p{}", std::lround(geometry.param * 1000));
                         });

TEST_P(SchattenMapOf, RaisesSingularValues) {
  for (const Matrix& w : test::sample_matrices()) {
    const auto svd = test::reference_svd(w);
    Svd own(w.rows(), w.cols());
    own.compute(PaddedMatrix(w).view());
    const std::ptrdiff_t rank = own.rank();
    const Eigen::VectorXd powers = svd.sigma.head(rank).array().pow(p - 1);
    const Matrix expected = svd.U.leftCols(rank) * powers.asDiagonal() * svd.V.leftCols(rank).transpose();
    // Powers below 1 turn with the vectors of small values.
    const double gap = std::max(1.0, svd.sigma(0) / svd.sigma(rank - 1));
    EXPECT_LE((mapped(w).view().eigen() - expected).cwiseAbs().maxCoeff(), 1e-14 * gap * powers.maxCoeff());
    EXPECT_NEAR(map.potential(PaddedMatrix(w).view()), svd.sigma.array().pow(p).sum() / p,
                1e-13 * powers.sum() * svd.sigma(0));
  }
}

TEST_P(SchattenMapOf, MapAndInverseUndoEachOther) {
  EXPECT_TRUE(rc::check("inverse(map(w)) == w, map(inverse(y)) == y", [&] {
    const auto rows = *rc::gen::inRange(1, 9), cols = *rc::gen::inRange(1, 9);
    // Singular values within a factor of four: y and w are then equally well conditioned for all p.
    const Matrix any = normal_matrix(rows, cols, *rc::gen::arbitrary<std::uint64_t>());
    const auto svd = test::reference_svd(any);
    Eigen::VectorXd sigma = svd.sigma;
    for (double& s : sigma) s = 1 + 0.003 * *rc::gen::inRange(0, 1001);
    Matrix w = svd.U * sigma.asDiagonal() * svd.V.transpose();
    w *= std::pow(10.0, *rc::gen::inRange(-20, 21));
    const double size = norm(w, Norm::spectral());
    const double tolerance = 1e-12 * std::pow(4.0, std::abs(p - 2) + std::abs(1 / (p - 1) - 1)) * size;
    RC_ASSERT((inverted(mapped(w).view().eigen()).view().eigen() - w).cwiseAbs().maxCoeff() <= tolerance);
    RC_ASSERT((mapped(inverted(w).view().eigen()).view().eigen() - w).cwiseAbs().maxCoeff() <= tolerance);
  }));
}

TEST_P(SchattenMapOf, LowRankStaysLowRank) {
  const Matrix w = test::low_rank_matrix(10, 8, 3, 1);
  for (const PaddedMatrix& image : {mapped(w), inverted(w)}) {
    Svd svd(10, 8);
    svd.compute(image.view());
    EXPECT_EQ(svd.rank(), 3);
  }
}

TEST_P(SchattenMapOf, NormsAndSteepestDirectionAreThoseOfTheNorm) {
  for (const Matrix& g : test::sample_matrices()) {
    const PaddedMatrix view(g);
    PaddedMatrix d(g.rows(), g.cols());
    map.steepest(view.view(), d.view());
    EXPECT_TRUE(padding_is_zero(d.view()));
    const double dual = map.dual_norm(view.view());
    EXPECT_NEAR(map.norm(view.view()), norm(g, Norm::schatten(p)), 1e-13 * dual * g.size());
    EXPECT_NEAR(dual, norm(g, Norm::schatten(p).dual()), 1e-13 * dual);
    EXPECT_NEAR(dot(view, d), dual, 1e-13 * dual);
    EXPECT_LE(map.norm(d.view()), 1 + 1e-13);
  }
}

TEST_P(SchattenMapOf, BregmanMatchesItsDefinition) {
  using Wide = Eigen::Matrix<long double, Eigen::Dynamic, Eigen::Dynamic>;
  using Column = Eigen::Matrix<long double, Eigen::Dynamic, 1>;
  const auto decompose = [](const Matrix& w) {
    return Eigen::JacobiSVD<Wide>(w.cast<long double>(), Eigen::ComputeThinU | Eigen::ComputeThinV);
  };
  const long double power = p;
  for (const auto& [rows, cols] : std::vector<std::pair<int, int>>{{1, 1}, {3, 3}, {5, 3}, {2, 6}})
    for (const double distance : {10.0, 1.0, 0.1, 1e-3, 1e-5}) {
      const Matrix b = normal_matrix(rows, cols, 1), a = b + distance * normal_matrix(rows, cols, 2);
      const auto of_a = decompose(a), of_b = decompose(b);
      const Column slopes = of_b.singularValues().array().pow(power - 1);
      const Wide slope = of_b.matrixU() * slopes.asDiagonal() * of_b.matrixV().transpose();
      const long double psi_a = of_a.singularValues().array().pow(power).sum() / power,
                        psi_b = of_b.singularValues().array().pow(power).sum() / power;
      const Wide difference = a.cast<long double>() - b.cast<long double>();
      const auto expected = static_cast<double>(psi_a - psi_b - slope.cwiseProduct(difference).sum());
      // a and b are known to eps each, so their distance to eps / distance; the definition cancels.
      EXPECT_NEAR(bregman(a, b), expected,
                  expected * (1e-12 + 1e-14 / distance) + 1e-18 * p * static_cast<double>(psi_a + psi_b))
          << rows << " x " << cols << ", " << distance;
    }
}

TEST_P(SchattenMapOf, BregmanIsZeroAtEqualityOnly) {
  for (const Matrix& a : test::sample_matrices()) {
    EXPECT_EQ(bregman(a, a), 0);
    const Matrix away = a + 1e-9 * normal_matrix(a.rows(), a.cols(), 3);
    EXPECT_GT(bregman(a, away), 0);
    EXPECT_GT(bregman(away, a), 0);
    const double psi = map.potential(PaddedMatrix(a).view());
    EXPECT_NEAR(bregman(a, Matrix::Zero(a.rows(), a.cols())), psi, 1e-13 * psi);
    EXPECT_NEAR(bregman(Matrix::Zero(a.rows(), a.cols()), a), (p - 1) * psi, 1e-12 * psi);
  }
}

// D(a, c) = D(a, b) + D(b, c) + <grad psi(b) - grad psi(c), a - b>, also where the matrices lack different ranks.
TEST_P(SchattenMapOf, ThreePointIdentity) {
  for (const int rank : {2, 4}) {
    const Matrix a = test::low_rank_matrix(4, 6, rank, 1), b = test::low_rank_matrix(4, 6, 4, 2),
                 c = test::low_rank_matrix(4, 6, rank, 3);
    const double cross = (mapped(b).view().eigen() - mapped(c).view().eigen()).cwiseProduct(a - b).sum();
    const double left = bregman(a, c), right = bregman(a, b) + bregman(b, c) + cross;
    EXPECT_NEAR(left, right, 1e-12 * (left + std::abs(cross)));
  }
}

TEST_P(SchattenMapOf, StepIsMapSubtractInverse) {
  const Matrix g = normal_matrix(5, 7, 1), y0 = normal_matrix(5, 7, 2);
  PaddedMatrix y(y0), w(5, 7);
  map.step(PaddedMatrix(g).view(), 0.1, y.view(), w.view());
  EXPECT_LE((y.view().eigen() - (y0 - 0.1 * g)).cwiseAbs().maxCoeff(), 1e-15);
  EXPECT_EQ(Matrix(w.view().eigen()), Matrix(inverted(y.view().eigen()).view().eigen()));
  EXPECT_TRUE(padding_is_zero(y.view()));
}

TEST_P(SchattenMapOf, OneColumnIsTheEuclideanNorm) {
  // y = w |w|^{p-2}
  const Matrix w = normal_matrix(6, 1, 4);
  EXPECT_LE((mapped(w).view().eigen() - w * std::pow(w.norm(), p - 2)).norm(),
            1e-14 * std::pow(w.norm(), p - 1));
  EXPECT_NEAR(map.norm(PaddedMatrix(w).view()), w.norm(), 1e-14);
}

TEST_P(SchattenMapOf, ZeroHugeTinyAndNotFinite) {
  const Matrix zero = Matrix::Zero(3, 5);
  EXPECT_TRUE(mapped(zero).view().eigen().isZero(0));
  EXPECT_TRUE(inverted(zero).view().eigen().isZero(0));
  EXPECT_EQ(map.potential(PaddedMatrix(zero).view()), 0);
  const Matrix w = normal_matrix(3, 5, 1);
  const double plain = map.norm(PaddedMatrix(w).view());
  for (const int exponent : {-1000, 1000}) {
    const PaddedMatrix scaled(Matrix(w * std::ldexp(1.0, exponent)));
    EXPECT_NEAR(std::ldexp(map.norm(scaled.view()), -exponent), plain, 1e-13 * plain);
  }
  for (const double bad : {std::nan(""), HUGE_VAL}) {
    Matrix broken = w;
    broken(1, 1) = bad;
    EXPECT_TRUE(mapped(broken).view().eigen().array().isNaN().all());
    EXPECT_TRUE(inverted(broken).view().eigen().array().isNaN().all());
    EXPECT_FALSE(std::isfinite(map.norm(PaddedMatrix(broken).view())));
    EXPECT_FALSE(std::isfinite(map.dual_norm(PaddedMatrix(broken).view())));
    EXPECT_TRUE(std::isnan(bregman(broken, w)));
  }
}

TEST(SchattenMap, PTwoIsGradientDescent) {
  const SchattenMap spectral(2);
  const LpMap euclid(2);
  PaddedMatrix y(normal_matrix(8, 8, 1)), w(8, 8), plain = y;
  for (std::uint64_t step = 0; step < 100; ++step) {
    const PaddedMatrix g(normal_matrix(8, 8, 10 + step));
    spectral.step(g.view(), 0.1, y.view(), w.view());
    euclid.step(g.view(), 0.1, plain.view(), plain.view());
    EXPECT_EQ(Matrix(y.view().eigen()), Matrix(plain.view().eigen()));
    EXPECT_LE((w.view().eigen() - plain.view().eigen()).cwiseAbs().maxCoeff(),
              1e-14 * plain.view().eigen().norm());
  }
  EXPECT_EQ(SchattenMap(1.5).name(), "schatten1.5");
  EXPECT_EQ(SchattenMap(1.1).q(), 11);
}

TEST(SchattenMap, RefusesOtherP) {
  for (const double p : {1.0, 0.5, HUGE_VAL, std::nan("")})
    expect_bad_input({"p is", "greater than 1"}, [&] { SchattenMap map(p); });
}

}  // namespace
}  // namespace attmirror
