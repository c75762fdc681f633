#include "margin/generation.hpp"

#include "margin/judge.hpp"
#include "margin/planted.hpp"
#include "margin/random_constraints.hpp"

#include <cstddef>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace attmirror {
namespace {

using test::generous_limits;
using test::judge;
using test::planted_constraints;

// The Frobenius solver, with the sizes that it was asked to solve.
struct Recorder {
  SolverLimits limits;
  std::vector<std::ptrdiff_t> sizes{};
  RestrictedSolver solver() {
    return [this](const ScaledConstraints& some, const SolverStart& start) {
      sizes.push_back(some.count());
      return solve_frobenius(some, limits, start);
    };
  }
};

// 64 unknowns, 2200 constraints: the optimum lies nearly in a corner, and ascent by groups does not get there.
TEST(Generation, EndsAtTheOptimumOverAllConstraints) {
  const MarginConstraints constraints(planted_constraints(200, 12, 8, 1));
  const ScaledConstraints scaled(constraints);
  ASSERT_TRUE(worth_generating(scaled));
  Recorder recorder{generous_limits(1e-10)};
  const GeneratedAnswer found =
      solve_by_generation(scaled, Norm::frobenius(), recorder.limits, {}, recorder.solver());
  EXPECT_EQ(found.answer.outcome, Outcome::solved);
  EXPECT_TRUE(judge(constraints, scaled, Norm::frobenius(), found.answer).certifies(1e-10));
  EXPECT_EQ(found.rounds, static_cast<int>(recorder.sizes.size()));
  for (const std::ptrdiff_t size : recorder.sizes) EXPECT_LT(size, scaled.count() / 2);
}

// A guess that says nothing costs rounds, not correctness. (A Schatten norm takes the guess as it is; p = 2
// is Frobenius.)
TEST(Generation, RecoversFromABadGuess) {
  const MarginConstraints constraints(planted_constraints(200, 12, 8, 2));
  const ScaledConstraints scaled(constraints);
  Recorder recorder{generous_limits(1e-10)};
  SolverStart bad;
  bad.W = PaddedMatrix(Matrix(-test::random_matrix(8, 8, 3)));
  bad.lambda.assign(static_cast<std::size_t>(scaled.count()), 0.0);
  bad.lambda[5] = 1;
  const GeneratedAnswer found =
      solve_by_generation(scaled, Norm::schatten(2), recorder.limits, bad, recorder.solver());
  EXPECT_EQ(found.answer.outcome, Outcome::solved);
  EXPECT_GT(found.rounds, 1);
  EXPECT_TRUE(judge(constraints, scaled, Norm::frobenius(), found.answer).certifies(1e-10));
}

TEST(Generation, KeepsEqualitiesAndBoundsOfZero) {
  ConstraintArrays arrays = test::random_constraints(150, 6, 7, 7, 3);
  // What the hidden W of random_constraints() does at some constraints is demanded exactly.
  const Matrix hidden = test::random_matrix(7, 7, 2003);
  arrays.relations.assign(900, Relation::at_least);
  for (std::size_t k = 0; k < 900; ++k) {
    const auto row = static_cast<std::ptrdiff_t>(k);
    const double margin = arrays.left.row(row).dot(hidden * arrays.right.row(row / 6).transpose());
    if (k % 100 == 7) arrays.relations[k] = Relation::equal;
    arrays.bounds[k] = k % 100 == 7 ? margin : k % 5 == 0 ? 0 : margin / 2;
  }
  const MarginConstraints constraints(arrays);
  const ScaledConstraints scaled(constraints);
  Recorder recorder{generous_limits(1e-10)};
  const SolverAnswer all = solve_frobenius(scaled, recorder.limits, {});
  const GeneratedAnswer found =
      solve_by_generation(scaled, Norm::schatten(2), recorder.limits, {}, recorder.solver());
  EXPECT_EQ(found.answer.outcome, all.outcome);
  ASSERT_EQ(all.outcome, Outcome::solved);
  EXPECT_NEAR(found.answer.W.view().eigen().norm(), all.W.view().eigen().norm(),
              1e-9 * all.W.view().eigen().norm());
  EXPECT_LT(found.largest_set, scaled.count());
}

TEST(Generation, ProvesInfeasibilityFromAPart) {
  ConstraintArrays arrays = planted_constraints(200, 12, 8, 4);
  arrays.left.row(100) = -arrays.left.row(101);
  const MarginConstraints constraints(arrays);
  const ScaledConstraints scaled(constraints);
  Recorder recorder{generous_limits(1e-10)};
  const GeneratedAnswer found =
      solve_by_generation(scaled, Norm::frobenius(), recorder.limits, {}, recorder.solver());
  EXPECT_EQ(found.answer.outcome, Outcome::infeasible);
  ASSERT_EQ(static_cast<std::ptrdiff_t>(found.answer.lambda.size()), scaled.count());
  EXPECT_GT(
      certify(constraints, Norm::frobenius(), Matrix(), scaled.unscale_multipliers(found.answer.lambda)).dual,
      1e9);
}

// One token of each query asks for the opposite. Working sets would each be solved nearly to the end before the next;
// ascent by groups sees it at once, and goes on until the verifier sees it, too, in every norm.
TEST(Generation, AscentProvesInfeasibilityInEveryNorm) {
  ConstraintArrays arrays = planted_constraints(200, 17, 16, 5);
  for (std::ptrdiff_t k = 0; k < arrays.left.rows(); k += 16) arrays.left.row(k) *= -1;
  const MarginConstraints constraints(arrays);
  const ScaledConstraints scaled(constraints);
  Recorder recorder{generous_limits(1e-10)};
  const double max_norm = recorder.limits.max_norm;
  recorder.limits.max_norm = solver_max_norm(constraints.rows(), constraints.cols(), max_norm);
  for (const Norm& norm : {Norm::l(1.5), Norm::l(3), Norm::l(1), Norm::nuclear(), Norm::spectral()}) {
    const GeneratedAnswer found = solve_by_generation(scaled, norm, recorder.limits, {}, recorder.solver());
    EXPECT_EQ(found.answer.outcome, Outcome::infeasible);
    EXPECT_EQ(found.rounds, 0) << to_string(norm);
    EXPECT_TRUE(certify(constraints, norm, Matrix(), scaled.unscale_multipliers(found.answer.lambda))
                    .proves_norm_above(max_norm))
        << to_string(norm);
  }
}

}  // namespace
}  // namespace attmirror
