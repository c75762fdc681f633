// Solutions of 1e7 to 1e10 in units of the data: constraints that all but contradict each other.
#include "margin/random_constraints.hpp"
#include "support/random_data.hpp"
#include <attmirror/margin/max_margin.hpp>
#include <attmirror/margin/support.hpp>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace attmirror {
namespace {

using test::random_matrix;

std::vector<Norm> norms_named(const std::vector<const char*>& names) {
  std::vector<Norm> norms;
  for (const char* name : names) norms.push_back(parse_norm(name));
  return norms;
}

// The tokens (1, 0, 0), (0, 1e-8, 0) and (-1, 0, 0) under the query (1, 0, 0).
Dataset thin_triangle() {
  DatasetArrays arrays;
  arrays.tokens = Matrix{{1, 0, 0}, {0, 1e-8, 0}, {-1, 0, 0}};
  arrays.lengths = {3};
  arrays.queries = Matrix{{1, 0, 0}};
  arrays.labels = {1};
  return Dataset(arrays);
}

TEST(LargeNorm, ThinTriangle) {
  const Dataset data = thin_triangle();
  for (const Norm& norm : norms_named(
           {"2", "1.5", "3", "1", "inf", "nuclear", "spectral", "1.1", "10", "schatten:1.5", "schatten:3"}))
    for (const double tol : {1e-11, 1e-3}) {
      const MarginSolution svm = max_margin(data, Selection{{1}}, norm, {.tol = tol});
      SCOPED_TRACE(to_string(norm) + "\n" + svm.report());
      EXPECT_EQ(svm.status, MarginStatus::certified);
      EXPECT_LE(std::fabs(svm.gap), tol);
      EXPECT_NEAR(svm.W(1, 0) / 1e8, 1, tol);
      EXPECT_EQ(svm.support.size(), 2u);
    }
  // The defaults.
  for (const Norm& norm : norms_named({"2", "1.5", "3", "1", "inf", "nuclear"}))
    EXPECT_EQ(max_margin(data, Selection{{1}}, norm).status, MarginStatus::certified) << to_string(norm);
}

// Random constraints of which some of the first group add up to a vector of length 1 / size: the norm is about `size`.
ConstraintArrays nearly_contradictory(std::ptrdiff_t groups, std::ptrdiff_t each, std::ptrdiff_t d,
                                      double size, std::uint64_t seed) {
  ConstraintArrays arrays = test::random_constraints(groups, each, d, d, seed);
  const Matrix weights = random_matrix(1, each, seed + 3000), rest = random_matrix(1, d, seed + 4000);
  auto last = arrays.left.row(each - 1);
  last = rest / (size * rest.norm());
  for (std::ptrdiff_t k = 0; k + 1 < std::min(each, d); ++k)
    last -= (0.2 + std::fabs(weights(0, k))) * arrays.left.row(k);
  return arrays;
}

TEST(LargeNorm, RandomProblemsOf1e7AreCertified) {
  for (const Norm& norm : norms_named(
           {"2", "1.1", "1.5", "3", "10", "1", "inf", "nuclear", "spectral", "schatten:1.5", "schatten:3"}))
    for (std::uint64_t seed = 1; seed <= 6; ++seed) {
      const std::ptrdiff_t each = 2 + static_cast<std::ptrdiff_t>(seed % 3);
      const MarginConstraints problem(nearly_contradictory(3, each, 5, 1e7, seed));
      const MarginSolution svm = max_margin(problem, norm, {.tol = 1e-3});
      SCOPED_TRACE(to_string(norm) + ", seed " + std::to_string(seed) + "\n" + svm.report());
      EXPECT_EQ(svm.status, MarginStatus::certified);
      EXPECT_GT(svm.certificate.scaled_dual, 1e5);
      EXPECT_TRUE(certify(problem, norm, svm.W, svm.lambda).certifies(1e-3));
    }
}

// What is out of reach is said to be: a feasible W with a gap that is none, or a proof.
TEST(LargeNorm, BeyondItTheGapIsHonest) {
  for (const Norm& norm : norms_named({"2", "1.5", "3", "1", "inf", "nuclear", "spectral"}))
    for (const double size : {1e8, 1e9, 1e10, 1e12})
      for (std::uint64_t seed = 11; seed <= 13; ++seed) {
        const MarginConstraints problem(nearly_contradictory(2, 3, 4, size, seed));
        const MarginSolution svm = max_margin(problem, norm);
        SCOPED_TRACE(to_string(norm) + ", " + std::to_string(size) + ", seed " + std::to_string(seed) + "\n" +
                     svm.report());
        if (svm.status == MarginStatus::infeasible) {
          EXPECT_GT(svm.certificate.scaled_dual, 1e10);
          EXPECT_GE(size, 1e9);
          continue;
        }
        const Certificate again = certify(problem, norm, svm.W, svm.lambda);
        EXPECT_TRUE(again.feasible());
        EXPECT_GE(svm.gap, -1e-11);
        // The spectral norm's interior point method may stop earlier than the others; it says so.
        EXPECT_LE(svm.gap, norm == Norm::spectral() ? 0.5 : 1e-2);
        EXPECT_EQ(again.gap, svm.gap);
        EXPECT_EQ(svm.status == MarginStatus::certified, svm.gap <= MarginOptions{}.tolerance(norm));
      }
}

// A W that violates a constraint supports nothing.
TEST(LargeNorm, FailedWeightsHaveNoSupport) {
  int failed = 0;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const MarginConstraints problem(nearly_contradictory(3, 4, 5, 1e6, seed));
    for (const Norm& norm : norms_named({"2", "3", "1", "nuclear"}))
      for (const int most : {1, 2}) {
        const MarginSolution svm = max_margin(problem, norm, {.max_iterations = most});
        if (svm.status != MarginStatus::stopped || svm.certificate.feasible()) continue;
        ++failed;
        EXPECT_TRUE(svm.support.empty()) << svm.report();
        EXPECT_EQ(svm.report().find("support"), std::string::npos) << svm.report();
      }
  }
  EXPECT_GT(failed, 0);
}

// The unit of `infeasible` is what the hardest constraint demands of the norm at hand: with one constraint alone it is
// the norm of the solution, in every norm.
TEST(LargeNorm, UnitIsOfTheNormAtHand) {
  for (const Norm& norm : norms_named({"2", "1.1", "1.5", "3", "10", "1", "inf", "nuclear", "spectral"})) {
    const MarginConstraints one(test::random_constraints(1, 1, 6, 7, 5));
    const MarginSolution svm = max_margin(one, norm);
    EXPECT_NEAR(svm.certificate.scaled_dual, 1, 1e-7) << to_string(norm);
    // Of several, the hardest.
    const ConstraintArrays arrays = test::random_constraints(4, 5, 6, 7, 6);
    const MarginConstraints many(arrays);
    double hardest = 0;
    for (std::ptrdiff_t k = 0; k < many.count(); ++k)
      hardest = std::max(hardest, 1 / attmirror::norm(test::constraint_matrix(arrays, k), norm.dual()));
    const MarginSolution all = max_margin(many, norm);
    EXPECT_NEAR(all.certificate.scaled_dual * hardest / all.dual, 1, 1e-12) << to_string(norm);
  }
}

// a and -a, turned by an angle, in the first of many dimensions: in l_1 one entry of each factor carries the norm, so a
// Frobenius unit would be d times too small and call it infeasible.
TEST(LargeNorm, FeasibleInItsOwnUnit) {
  const std::ptrdiff_t d = 16;
  for (const Norm& norm : norms_named({"1", "1.1", "1.5"})) {
    ConstraintArrays arrays;
    arrays.left = Matrix::Constant(2, d, 1);
    arrays.left.row(1) *= -1;
    const double angle = 1e-9;
    arrays.left(0, 0) += angle;
    arrays.left(1, 0) += angle;
    arrays.right = Matrix::Constant(1, d, 1);
    arrays.group_sizes = {2};
    arrays.bounds = {1, 1};
    const MarginConstraints problem(arrays);
    // A W that satisfies the constraints once it is divided by its margins, and its norm in units of the data.
    Matrix W = Matrix::Zero(d, d);
    W.row(0).setConstant(1);
    W.row(1).setConstant(-1);
    const double margin = angle * static_cast<double>(d);
    const double own = attmirror::norm(W, norm) / margin *
                       attmirror::norm(Matrix(arrays.left.row(0).transpose() * arrays.right), norm.dual());
    ASSERT_GT(own, 1e8) << to_string(norm);
    const MarginSolution svm = max_margin(problem, norm, {.tol = 1e-3, .max_norm = 1.5 * own});
    EXPECT_NE(svm.status, MarginStatus::infeasible) << to_string(norm) << "\n" << svm.report();
    EXPECT_TRUE(svm.certificate.feasible());
    EXPECT_LE(svm.certificate.scaled_dual, 1.5 * own);
  }
}

}  // namespace
}  // namespace attmirror
