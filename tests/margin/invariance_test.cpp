// What must not change the answer, what must change it in a known way, and what must vary continuously.
#include "margin/known_solution.hpp"
#include "margin/random_constraints.hpp"
#include <attmirror/margin/max_margin.hpp>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <Eigen/QR>
#include <gtest/gtest.h>

namespace attmirror {
namespace {

using test::random_constraints;
using test::random_matrix;

std::vector<Norm> tested_norms() {
  std::vector<Norm> norms;
  for (const char* name :
       {"1", "1.1", "1.5", "2", "3", "6", "inf", "nuclear", "schatten:1.5", "schatten:4", "spectral"})
    norms.push_back(parse_norm(name));
  return norms;
}

MarginSolution solution_of(const ConstraintArrays& arrays, const Norm& norm) {
  const MarginSolution svm = max_margin(MarginConstraints(arrays), norm);
  EXPECT_EQ(svm.status, MarginStatus::certified) << to_string(norm) << "\n" << svm.report();
  return svm;
}

TEST(Invariance, ScalingOfDataScalesTheAnswer) {
  for (const Norm& norm : tested_norms()) {
    const ConstraintArrays arrays = random_constraints(4, 3, 5, 6, 1);
    const double expected = solution_of(arrays, norm).norm;
    ConstraintArrays scaled = arrays;
    scaled.left *= 1e6;
    scaled.right *= 3e-3;
    for (double& c : scaled.bounds) c *= 7;
    EXPECT_NEAR(solution_of(scaled, norm).norm / (expected * 7 / 3e3), 1, 2e-8) << to_string(norm);
    // A constraint and its bound multiplied by one number are the same constraint.
    scaled = arrays;
    for (std::ptrdiff_t k = 0; k < scaled.left.rows(); ++k) {
      const double factor = std::pow(10.0, static_cast<double>(k % 5) - 2);
      scaled.left.row(k) *= factor;
      scaled.bounds[static_cast<std::size_t>(k)] *= factor;
    }
    EXPECT_NEAR(solution_of(scaled, norm).norm / expected, 1, 2e-8) << to_string(norm);
  }
}

TEST(Invariance, OrderAndRepetitionOfConstraints) {
  for (const Norm& norm : tested_norms()) {
    const ConstraintArrays arrays = random_constraints(4, 3, 5, 6, 2);
    const double expected = solution_of(arrays, norm).norm;
    ConstraintArrays turned = arrays;
    turned.left = arrays.left.colwise().reverse();
    turned.right = arrays.right.colwise().reverse();
    EXPECT_NEAR(solution_of(turned, norm).norm / expected, 1, 2e-8) << to_string(norm);
    ConstraintArrays twice = arrays;
    twice.left.resize(24, 5);
    twice.left << arrays.left, arrays.left;
    twice.right.resize(8, 6);
    twice.right << arrays.right, arrays.right;
    twice.group_sizes.assign(8, 3);
    twice.bounds.assign(24, 1.0);
    EXPECT_NEAR(solution_of(twice, norm).norm / expected, 1, 2e-8) << to_string(norm);
  }
}

TEST(Invariance, PermutedAndTransposedWeights) {
  for (const Norm& norm : tested_norms()) {
    const ConstraintArrays arrays = random_constraints(12, 1, 5, 6, 3);
    const double expected = solution_of(arrays, norm).norm;
    ConstraintArrays turned = arrays;
    turned.left = arrays.left.rowwise().reverse();
    EXPECT_NEAR(solution_of(turned, norm).norm / expected, 1, 2e-8) << to_string(norm);
    turned = arrays;  // a^T W z = z^T W^T a
    std::swap(turned.left, turned.right);
    EXPECT_NEAR(solution_of(turned, norm).norm / expected, 1, 2e-8) << to_string(norm);
  }
}

TEST(Invariance, RotationForFrobeniusAndSchattenNorms) {
  const Matrix P =
      Eigen::HouseholderQR<Eigen::MatrixXd>(random_matrix(5, 5, 8)).householderQ() * Matrix::Identity(5, 5);
  const Matrix Q =
      Eigen::HouseholderQR<Eigen::MatrixXd>(random_matrix(6, 6, 9)).householderQ() * Matrix::Identity(6, 6);
  const ConstraintArrays arrays = random_constraints(4, 3, 5, 6, 4);
  ConstraintArrays turned = arrays;
  turned.left = arrays.left * P.transpose();
  turned.right = arrays.right * Q.transpose();
  for (const char* name : {"2", "nuclear", "spectral", "schatten:1.5", "schatten:4"}) {
    const MarginSolution before = solution_of(arrays, parse_norm(name)),
                         after = solution_of(turned, parse_norm(name));
    EXPECT_NEAR(after.norm / before.norm, 1, 2e-8) << name;
    if (std::string(name) == "2") {
      EXPECT_LT((P.transpose() * after.W * Q - before.W).norm(), 1e-9);
    }
  }
}

TEST(KnownSolution, IsFoundInEveryNorm) {
  for (const Norm& norm : test::all_norms())
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
      const test::KnownSolution known = test::known_solution(norm, {.seed = seed});
      const MarginSolution svm = solution_of(known.arrays, norm);
      EXPECT_NEAR(svm.norm / known.norm, 1, 1e-8) << to_string(norm) << " seed " << seed;
    }
}

TEST(Continuity, OfTheObjectiveInP) {
  const ConstraintArrays arrays = random_constraints(5, 4, 6, 6, 5);
  const double d2 = 36;
  for (const bool schatten : {false, true}) {
    const auto value = [&](double p) {
      return solution_of(arrays, schatten ? Norm::schatten(p) : Norm::l(p)).norm;
    };
    const double size = schatten ? 6 : d2;  // ||W||_p <= ||W||_1 <= size^{1 - 1/p} ||W||_p
    const double one = value(1), two = value(2), top = value(std::numeric_limits<double>::infinity());
    for (const double p : {1.3, 1.1, 1.01}) {
      EXPECT_LE(value(p), one * (1 + 1e-8));
      EXPECT_GE(value(p) * std::pow(size, 1 - 1 / p), one * (1 - 1e-8));
    }
    for (const double p : {1.99, 2.01}) EXPECT_NEAR(value(p) / two, 1, 0.02);
    for (const double p : {1.9999, 2.0001}) EXPECT_NEAR(value(p) / two, 1, 2e-4);
    for (const double p : {5.0, 20.0, 50.0}) {
      EXPECT_GE(value(p), top * (1 - 1e-8));
      EXPECT_LE(value(p), top * std::pow(size, 1 / p) * (1 + 1e-8));
    }
    double before = one;
    for (const double p : {1.2, 1.5, 2.0, 3.0, 8.0}) {
      EXPECT_LE(value(p), before * (1 + 1e-8));  // norms fall with p
      before = value(p);
    }
  }
}

}  // namespace
}  // namespace attmirror
