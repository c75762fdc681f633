// Distances from all solutions of a max-margin problem: known by hand, proved by a bound, and never above
// that from one.
#include "margin/solution_set.hpp"

#include "margin/random_constraints.hpp"
#include "support/files.hpp"
#include <attmirror/margin/max_margin.hpp>

#include <gtest/gtest.h>

namespace attmirror::test {
namespace {

Matrix as_column(std::initializer_list<double> values) {
  Matrix result(static_cast<std::ptrdiff_t>(values.size()), 1);
  std::copy(values.begin(), values.end(), result.data());
  return result;
}

// a_k^T p >= 1 for each row of `a`.
MarginConstraints vector_constraints(const Matrix& a) {
  return MarginConstraints({.left = a,
                            .right = Matrix::Ones(1, 1),
                            .group_sizes = {a.rows()},
                            .bounds = std::vector<double>(static_cast<std::size_t>(a.rows()), 1.0)});
}

double distance(const SolutionSet& set, const Matrix& W) {
  const auto nearest = set.nearest(W);
  EXPECT_TRUE(nearest);
  if (!nearest) return -1;
  EXPECT_LE(nearest->lower_bound, nearest->distance + 1e-7);
  EXPECT_GE(nearest->lower_bound, nearest->distance - 1e-6);
  return nearest->distance;
}

// In the largest entry, p_1 >= 1 is solved by (1, s) for every s between -1 and 1.
TEST(SolutionSet, OfTheLargestEntryByHand) {
  Matrix a(1, 2);
  a << 1, 0;
  const SolutionSet set(vector_constraints(a), Norm::l(std::numeric_limits<double>::infinity()),
                        as_column({1, 0}));
  EXPECT_EQ(distance(set, as_column({2, 0.6})), 0);
  EXPECT_EQ(distance(set, as_column({1, -1})), 0);
  EXPECT_NEAR(distance(set, as_column({0.5, 1})), 0.5, 1e-5);
  EXPECT_NEAR(distance(set, as_column({0, -3})), 1, 1e-5);
  EXPECT_NEAR(distance(set, as_column({-1, 0})), 2, 1e-5);
  EXPECT_NEAR(distance(set, as_column({-1e200, 0})), 2, 1e-5);
}

// In the sum of entries, p_1 + p_2 >= 1 is solved by (s, 1 - s) for every s between 0 and 1.
TEST(SolutionSet, OfTheSumOfEntriesByHand) {
  Matrix a(1, 2);
  a << 1, 1;
  const SolutionSet set(vector_constraints(a), Norm::l(1), as_column({1, 0}));
  EXPECT_EQ(distance(set, as_column({0.3, 0.7})), 0);
  EXPECT_EQ(distance(set, as_column({0, 5})), 0);
  EXPECT_NEAR(distance(set, as_column({0.5, -0.5})), 1, 1e-5);
  EXPECT_NEAR(distance(set, as_column({-1, 0})), 2, 1e-5);
  EXPECT_NEAR(distance(set, as_column({-1, -1})), 2, 1e-5);
}

// The solver's solution is in its own set, and no point between two members is nearer than the nearest.
TEST(SolutionSet, OfRandomProblems) {
  for (const double p : {1.0, std::numeric_limits<double>::infinity()})
    for (const std::uint64_t seed : {1, 2, 3, 4, 5}) {
      const MarginConstraints problem(random_constraints(4, 3, 5, 4, seed));
      const MarginSolution solved = max_margin(problem, Norm::l(p));
      ASSERT_EQ(solved.status, MarginStatus::certified);
      const SolutionSet set(problem, Norm::l(p), solved.W);
      EXPECT_EQ(distance(set, 3 * solved.W), 0);
      const Matrix direction = solved.W / solved.norm;
      std::vector<Matrix> members{direction};
      for (const std::uint64_t other : {10, 11, 12}) {
        Matrix W = random_matrix(5, 4, seed + 100 * other);
        W /= norm(W, Norm::l(p));
        const auto nearest = set.nearest(W);
        ASSERT_TRUE(nearest) << p << ' ' << seed << ' ' << other;
        EXPECT_LE(nearest->distance, norm(Matrix(W - direction), Norm::l(p)) + 1e-7);
        EXPECT_GE(nearest->distance, 0);
        EXPECT_LE(nearest->distance - nearest->lower_bound, 1e-6);
        EXPECT_LE(norm(nearest->V, Norm::l(p)), 1 + 1e-12);
        members.push_back(nearest->V);
        for (const Matrix& one : members)
          EXPECT_LE(nearest->distance, norm(Matrix(W - 0.5 * (one + nearest->V)), Norm::l(p)) + 1e-5);
      }
    }
}

// The distance does not depend on the scale of anything: W, the solution, the data.
TEST(SolutionSet, HasNoScale) {
  const Norm norm = Norm::l(std::numeric_limits<double>::infinity());
  ConstraintArrays arrays = random_constraints(3, 4, 6, 5, 21);
  const MarginConstraints problem(arrays);
  const Matrix solution = max_margin(problem, norm).W, W = random_matrix(6, 5, 77);
  const double expected = distance(SolutionSet(problem, norm, solution), W);
  EXPECT_GT(expected, 0.01);
  EXPECT_NEAR(distance(SolutionSet(problem, norm, 1e30 * solution), 1e-90 * W), expected, 1e-6);
  arrays.left *= 1e100;
  EXPECT_NEAR(distance(SolutionSet(MarginConstraints(arrays), norm, solution), W), expected, 1e-6);
}

TEST(SolutionSet, SaysWhichNormsHaveOneSolution) {
  EXPECT_EQ(solutions_of(Norm::frobenius()), Solutions::one);
  EXPECT_EQ(solutions_of(Norm::l(1.1)), Solutions::one);
  EXPECT_EQ(solutions_of(Norm::schatten(1.5)), Solutions::one);
  EXPECT_EQ(solutions_of(Norm::nuclear()), Solutions::seldom_several);
  EXPECT_EQ(solutions_of(Norm::l(1)), Solutions::several);
  EXPECT_EQ(solutions_of(Norm::l(std::numeric_limits<double>::infinity())), Solutions::several);
  EXPECT_EQ(solutions_of(Norm::spectral()), Solutions::several);
}

// Two queries and two differences that are orthogonal: [1 x; x 1] separates with trace 2 for every x between
// -1 and 1.
TEST(SolutionSet, TheNuclearNormCanHaveSeveral) {
  const Matrix eye = Matrix::Identity(2, 2);
  const MarginConstraints problem({.left = eye, .right = eye, .group_sizes = {1, 1}, .bounds = {1, 1}});
  const MarginSolution solved = max_margin(problem, Norm::nuclear());
  ASSERT_EQ(solved.status, MarginStatus::certified);
  EXPECT_NEAR(solved.norm, 2, 1e-6);
  for (const double x : {-1.0, -0.5, 0.0, 1.0}) {
    Matrix W(2, 2);
    W << 1, x, x, 1;
    EXPECT_NEAR(norm(W, Norm::nuclear()), 2, 1e-12);
  }
}

TEST(SolutionSet, Refuses) {
  const MarginConstraints problem(random_constraints(2, 2, 3, 3, 5));
  const Matrix W = max_margin(problem, Norm::l(1)).W;
  expect_bad_input({"norm is 2"}, [&] { SolutionSet(problem, Norm::frobenius(), W); });
  expect_bad_input({"norm is spectral"}, [&] { SolutionSet(problem, Norm::spectral(), W); });
  expect_bad_input({"violates a constraint"}, [&] { SolutionSet(problem, Norm::l(1), -W); });
  const SolutionSet set(problem, Norm::l(1), W);
  EXPECT_FALSE(set.nearest(Matrix::Zero(3, 3)));
  EXPECT_FALSE(set.nearest(Matrix::Constant(3, 3, std::nan(""))));
}

}  // namespace
}  // namespace attmirror::test
