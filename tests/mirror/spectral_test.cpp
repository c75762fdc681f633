// Singular values and polar factors of matrices of every shape, rank and size.
#include "mirror/spectral.hpp"

#include "mirror/matrices.hpp"
#include "mirror/newton_schulz.hpp"
#include "support/files.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace attmirror {
namespace {

using test::expect_bad_input;
using test::padding_is_zero;

struct Decomposed {
  Svd svd;
  explicit Decomposed(const Matrix& a) : svd(a.rows(), a.cols()) { svd.compute(PaddedMatrix(a).view()); }
  Matrix product() {
    PaddedMatrix out(svd.rows(), svd.cols());
    svd.compose({svd.values().data, static_cast<std::size_t>(svd.values().cols)}, out.view());
    EXPECT_TRUE(padding_is_zero(out.view()));
    return out.view().eigen();
  }
  Matrix polar() {
    PaddedMatrix out(svd.rows(), svd.cols());
    svd.polar(out.view());
    EXPECT_TRUE(padding_is_zero(out.view()));
    return out.view().eigen();
  }
};

void expect_decomposition(const Matrix& a) {
  Decomposed d(a);
  const ConstMatrixView sigma = d.svd.values();
  const double largest = sigma.data[0];
  EXPECT_LE((d.product() - a).cwiseAbs().maxCoeff(), 1e-14 * largest);
  EXPECT_LE(d.svd.sweeps(), 12);
  const auto count = static_cast<std::ptrdiff_t>(
      std::count_if(sigma.data, sigma.data + sigma.cols, [](double s) { return s > 0; }));
  const Matrix u = d.svd.left().eigen().topRows(count), v = d.svd.right().eigen().topRows(count);
  EXPECT_LE((u * u.transpose() - Matrix::Identity(count, count)).cwiseAbs().maxCoeff(), 4e-14);
  EXPECT_LE((v * v.transpose() - Matrix::Identity(count, count)).cwiseAbs().maxCoeff(), 4e-14);
  for (std::ptrdiff_t k = 1; k < sigma.cols; ++k) EXPECT_GE(sigma.data[k - 1], sigma.data[k]);
  Svd values(a.rows(), a.cols());
  values.compute_values(PaddedMatrix(a).view());
  for (std::ptrdiff_t k = 0; k < sigma.cols; ++k) EXPECT_EQ(values.value(k), sigma.data[k]);
}

TEST(Svd, DecomposesEveryShapeAndRank) {
  for (const Matrix& a : test::sample_matrices()) {
    SCOPED_TRACE(testing::Message() << a.rows() << " x " << a.cols());
    expect_decomposition(a);
    Decomposed d(a);
    const Eigen::VectorXd expected = test::reference_svd(a).sigma;
    for (std::ptrdiff_t k = 0; k < expected.size(); ++k)
      EXPECT_NEAR(d.svd.value(k), expected(k), 2e-15 * std::max(a.rows(), a.cols()) * expected(0));
  }
}

TEST(Svd, AnyMatrix) {
  EXPECT_TRUE(rc::check("a = sum sigma u v^T", [] {
    const auto rows = *rc::gen::inRange(1, 20), cols = *rc::gen::inRange(1, 20);
    Matrix a = test::normal_matrix(rows, cols, *rc::gen::arbitrary<std::uint64_t>());
    for (std::ptrdiff_t i = 0; i < rows; ++i) a.row(i) *= *rc::gen::element(0.0, 1.0, 1.0, 1e-9, 1e9);
    if (a.isZero(0)) return;
    expect_decomposition(a);
  }));
}

TEST(Svd, SmallSingularValuesKeepTheirDigits) {
  // A product of an orthogonal matrix and a diagonal one whose values span 60 decades.
  const Matrix q = Decomposed(test::normal_matrix(9, 9, 5)).polar();
  for (const bool transposed : {false, true}) {
    Matrix a = q;
    for (std::ptrdiff_t k = 0; k < 9; ++k) a.col(k) *= std::pow(10.0, -7.5 * static_cast<double>(k));
    if (transposed) a.transposeInPlace();
    Decomposed d(a);
    for (std::ptrdiff_t k = 0; k < 9; ++k)
      EXPECT_NEAR(d.svd.value(k) / std::pow(10.0, -7.5 * static_cast<double>(k)), 1, 1e-13) << k;
  }
}

TEST(Svd, HugeAndTinyMatrices) {
  for (const Matrix& a : test::sample_matrices())
    for (const int exponent : {-1000, -540, 540, 1000}) {
      Decomposed plain(a), scaled(a * std::ldexp(1.0, exponent));
      for (std::ptrdiff_t k = 0; k < plain.svd.values().cols; ++k)
        EXPECT_EQ(std::ldexp(plain.svd.value(k), exponent),
                  scaled.svd.value(k));  // exact scaling: the same bits
      EXPECT_EQ(plain.polar(), scaled.polar());
    }
  const Matrix smallest = Matrix::Constant(2, 2, std::numeric_limits<double>::denorm_min());
  Decomposed d(smallest);
  EXPECT_EQ(d.svd.value(0), 2 * std::numeric_limits<double>::denorm_min());
  EXPECT_NEAR(d.polar()(0, 1), 0.5, 1e-15);
}

TEST(Svd, ZeroAndNotFinite) {
  Decomposed zero(Matrix::Zero(3, 4));
  EXPECT_EQ(zero.svd.value(0), 0);
  EXPECT_EQ(zero.svd.rank(), 0);
  EXPECT_TRUE(zero.polar().isZero(0));
  EXPECT_TRUE(zero.product().isZero(0));
  for (const double bad : {std::nan(""), std::numeric_limits<double>::infinity()}) {
    Matrix a = Matrix::Ones(3, 2);
    a(1, 1) = bad;
    Decomposed d(a);
    EXPECT_TRUE(std::isnan(d.svd.value(0)));
    EXPECT_EQ(d.svd.rank(), 0);
    EXPECT_TRUE(d.polar().array().isNaN().all());
    EXPECT_TRUE(d.product().array().isNaN().all());
    d.svd.compute(PaddedMatrix(Matrix(Matrix::Ones(3, 2))).view());  // and it recovers
    EXPECT_NEAR(d.svd.value(0), std::sqrt(6.0), 1e-15);
  }
  expect_bad_input({"(2, 3)", "(3, 2)"}, [] { Svd(3, 2).compute(PaddedMatrix(2, 3).view()); });
}

TEST(Svd, RankCountsWhatIsNotRounding) {
  EXPECT_EQ(Decomposed(test::low_rank_matrix(10, 10, 6, 1)).svd.rank(), 6);
  EXPECT_EQ(Decomposed(test::low_rank_matrix(40, 40, 6, 5)).svd.rank(), 6);
  EXPECT_EQ(Decomposed(test::low_rank_matrix(12, 5, 3, 3)).svd.rank(), 3);
  EXPECT_EQ(Decomposed(test::normal_matrix(33, 33, 3)).svd.rank(), 33);
  EXPECT_EQ(Decomposed(Matrix::Ones(4, 9)).svd.rank(), 1);
}

TEST(Svd, DroppingSmallValuesChangesOnlyThose) {
  for (const Matrix& a : test::sample_matrices()) {
    Decomposed all(a);
    Svd some(a.rows(), a.cols());
    some.compute(PaddedMatrix(a).view(), SmallValues::drop);
    const double level = 2.3e-16 * static_cast<double>(std::max(a.rows(), a.cols())) * all.svd.value(0);
    EXPECT_EQ(some.rank(), all.svd.rank());
    for (std::ptrdiff_t k = 0; k < all.svd.values().cols; ++k)
      EXPECT_NEAR(some.value(k), k < some.rank() ? all.svd.value(k) : 0.0, k < some.rank() ? level : 0.0);
    PaddedMatrix out(a.rows(), a.cols());
    some.compose({some.values().data, static_cast<std::size_t>(some.values().cols)}, out.view());
    EXPECT_LE((out.view().eigen() - a).cwiseAbs().maxCoeff(), 1e-14 * all.svd.value(0));
  }
}

TEST(Svd, PolarFactorAgreesWithAReference) {
  for (const Matrix& a : test::sample_matrices()) {
    const auto reference = test::reference_svd(a);
    Decomposed d(a);
    const std::ptrdiff_t rank = d.svd.rank();
    const Matrix expected = reference.U.leftCols(rank) * reference.V.leftCols(rank).transpose();
    const double gap = d.svd.value(0) / d.svd.value(rank - 1);  // how much rounding turns the vectors
    EXPECT_LE((d.polar() - expected).cwiseAbs().maxCoeff(), 1e-14 * gap) << a.rows() << " x " << a.cols();
  }
}

Matrix orthogonalized(const Matrix& a, const NewtonSchulzOptions& options = {}) {
  PaddedMatrix out(a);
  NewtonSchulz(a.rows(), a.cols(), options).orthogonalize(out.view(), out.view());
  EXPECT_TRUE(padding_is_zero(out.view()));
  return out.view().eigen();
}

// U P(Sigma / |a|_F) V^T, P the polynomial as often as there are turns.
Matrix polynomial_of(const Matrix& a, const NewtonSchulzOptions& options) {
  const auto svd = test::reference_svd(a);
  Eigen::VectorXd s = svd.sigma / svd.sigma.norm();
  for (double& x : s)
    for (int turn = 0; turn < options.iterations; ++turn)
      x = x * (options.a + x * x * (options.b + options.c * x * x));
  return svd.U * s.asDiagonal() * svd.V.transpose();
}

TEST(NewtonSchulz, ActsOnSingularValuesAlone) {
  for (const Matrix& a : test::sample_matrices())
    for (const auto& options :
         {NewtonSchulzOptions{}, NewtonSchulzOptions{.iterations = 1}, NewtonSchulzOptions::convergent(12)})
      EXPECT_LE((orthogonalized(a, options) - polynomial_of(a, options)).cwiseAbs().maxCoeff(), 1e-12)
          << a.rows() << " x " << a.cols() << ", " << options.iterations;
}

TEST(NewtonSchulz, EndsWhereItShould) {
  const Matrix a = test::low_rank_matrix(10, 14, 6, 1);
  Decomposed muon(orthogonalized(a));
  EXPECT_LE(muon.svd.value(0), 1.21);
  EXPECT_GE(muon.svd.value(5), 0.65);
  EXPECT_LE(muon.svd.value(6), 1e-12);
  for (const Matrix& b : {test::normal_matrix(20, 7, 2), test::normal_matrix(8, 8, 4)})
    EXPECT_LE((orthogonalized(b, NewtonSchulzOptions::convergent(30)) - Decomposed(b).polar())
                  .cwiseAbs()
                  .maxCoeff(),
              1e-12);
}

TEST(NewtonSchulz, HugeTinyZeroAndNotFinite) {
  const Matrix a = test::normal_matrix(5, 3, 1);
  EXPECT_EQ(orthogonalized(a), orthogonalized(a * 0x1p1000));
  EXPECT_EQ(orthogonalized(a), orthogonalized(a * 0x1p-1000));
  EXPECT_TRUE(orthogonalized(Matrix::Zero(5, 3)).isZero(0));
  EXPECT_TRUE(orthogonalized(a * NAN).array().isNaN().all());
  expect_bad_input({"iterations is 0"}, [&] { orthogonalized(a, {.iterations = 0}); });
  expect_bad_input({"b is nan"}, [&] { orthogonalized(a, {.b = NAN}); });
}

}  // namespace
}  // namespace attmirror
