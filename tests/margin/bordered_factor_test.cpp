#include "margin/bordered_factor.hpp"

#include "margin/cholesky.hpp"
#include "margin/nonnegative_qp.hpp"
#include "support/random_data.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include <Eigen/Cholesky>
#include <gtest/gtest.h>

namespace attmirror {
namespace {

using test::random_matrix;

// A matrix of scalar products, a set with its factor, and a set that differs from it.
class BorderedFactorTest : public ::testing::Test {
 protected:
  void make(std::ptrdiff_t size, std::ptrdiff_t dimension, std::uint64_t seed) {
    const Matrix vectors = random_matrix(size, dimension, seed);
    M = vectors * vectors.transpose();
    lower = PaddedMatrix(M);
    for (std::ptrdiff_t k = 0; k < size; ++k)  // only the lower triangle may be read
      for (std::ptrdiff_t l = k + 1; l < size; ++l) lower.view().eigen()(k, l) = NAN;
    b = random_matrix(size, 1, seed + 1).col(0);
    x = Vector::Zero(size);
    is_passive.assign(static_cast<std::size_t>(size), 0);
    for (std::ptrdiff_t k = 0; k < size; ++k) is_passive[static_cast<std::size_t>(k)] = k % 4 != 0;
  }
  void factor_set() {
    for (std::size_t k = 0; k < is_passive.size(); ++k)
      if (is_passive[k]) factored.push_back(static_cast<std::ptrdiff_t>(k));
    const auto count = static_cast<std::ptrdiff_t>(factored.size());
    factor = PaddedMatrix(count, count);
    for (std::ptrdiff_t i = 0; i < count; ++i)
      for (std::ptrdiff_t l = 0; l <= i; ++l)
        factor.view().eigen()(i, l) =
            M(factored[static_cast<std::size_t>(i)], factored[static_cast<std::size_t>(l)]);
    ASSERT_EQ(cholesky(factor.view(), 0), count);
  }
  QpProblem<double> problem() {
    const auto size = static_cast<std::size_t>(b.size());
    return {lower.view().data, lower.view().stride, {b.data(), size}, {}, {x.data(), size}};
  }
  bool form() { return bordered.form(problem(), factor.view(), factored, is_passive); }
  void solve() {
    bordered.solve({b.data(), static_cast<std::size_t>(b.size())},
                   {x.data(), static_cast<std::size_t>(x.size())});
  }
  // Against a factorization of the set itself.
  void expect_solution() {
    std::vector<std::ptrdiff_t> passive;
    for (std::size_t k = 0; k < is_passive.size(); ++k)
      if (is_passive[k]) passive.push_back(static_cast<std::ptrdiff_t>(k));
    const Matrix block = M(passive, passive);
    const Vector right = b(passive), expected = block.llt().solve(right);
    for (std::size_t i = 0; i < passive.size(); ++i)
      EXPECT_NEAR(x[passive[i]], expected[static_cast<std::ptrdiff_t>(i)], 1e-9 * expected.norm()) << i;
    for (std::size_t k = 0; k < is_passive.size(); ++k) {
      const double value = x[static_cast<std::ptrdiff_t>(k)];
      EXPECT_TRUE(is_passive[k] || value == 0) << k << ": " << value;
    }
  }

  Matrix M;
  PaddedMatrix lower, factor;
  Vector b, x;
  std::vector<unsigned char> is_passive;
  std::vector<std::ptrdiff_t> factored;
  BorderedFactor bordered;
};

TEST_F(BorderedFactorTest, SolvesForSetsNearTheFactoredOne) {
  for (const std::ptrdiff_t changes : {0, 1, 2, 15, 16, 17, 33, 48}) {
    make(203, 240, 7 + static_cast<std::uint64_t>(changes));
    factored.clear();
    factor_set();
    for (std::ptrdiff_t c = 0; c < changes; ++c) {
      auto& passive = is_passive[static_cast<std::size_t>(c * 203 / 48 % 203)];
      passive = passive ? 0 : 1;
    }
    ASSERT_TRUE(form()) << changes;
    solve();
    expect_solution();
  }
}

TEST_F(BorderedFactorTest, RefusesWideBordersAndSmallFactors) {
  make(203, 240, 1);
  factor_set();
  for (std::size_t k = 0; k < 49; ++k) is_passive[k] = is_passive[k] ? 0 : 1;
  EXPECT_FALSE(form());
  make(100, 120, 1);
  factored.clear();
  factor_set();
  EXPECT_FALSE(form());
}

TEST_F(BorderedFactorTest, RefusesWhatDependsOnTheSet) {
  make(203, 240, 3);
  Matrix vectors = random_matrix(203, 240, 3);
  vectors.row(4) = vectors.row(1) + vectors.row(2);
  M = vectors * vectors.transpose();
  lower = PaddedMatrix(M);
  factor_set();
  is_passive[8] = 1;
  EXPECT_TRUE(form());
  is_passive[4] = 1;
  EXPECT_FALSE(form());
  is_passive[2] = 0;  // without it row 4 says something new
  EXPECT_TRUE(form());
  solve();
  expect_solution();
}

// The same solutions as with a factorization each time, and fewer of those.
TEST_F(BorderedFactorTest, QuadraticProblemsNeedFewerFactorizations) {
  int with = 0, without = 0;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    make(400, 500, 100 + seed);
    const auto size = static_cast<std::size_t>(b.size());
    Vector y = Vector::Zero(b.size());
    NonnegativeQp bordering(400, NonnegativeQp::Factor::not_needed), plain(400);
    const QpResult first = bordering.solve(lower.view(), {b.data(), size}, {}, {x.data(), size}, 100);
    const QpResult second = plain.solve(lower.view(), {b.data(), size}, {}, {y.data(), size}, 100);
    EXPECT_EQ(first.outcome, QpOutcome::solved);
    EXPECT_EQ(second.outcome, QpOutcome::solved);
    EXPECT_LT((x - y).norm(), 1e-10 * y.norm());
    with += first.factorizations;
    without += second.factorizations;
  }
  EXPECT_LT(with, without);
}

}  // namespace
}  // namespace attmirror
