#include "margin/group_ascent.hpp"

#include "margin/judge.hpp"
#include "margin/planted.hpp"
#include "margin/random_constraints.hpp"
#include "support/same_bits.hpp"

#include <cmath>
#include <cstdint>

#include <gtest/gtest.h>

namespace attmirror {
namespace {

using test::generous_limits;
using test::judge;
using test::planted_constraints;

TEST(GroupAscent, SolvesPlantedProblemsWithAProof) {
  for (const double p : {2.0, 1.75, 1.5, 1.2})
    for (const std::uint64_t seed : {1u, 2u}) {
      const MarginConstraints constraints(planted_constraints(60, 12, 16, seed));
      const ScaledConstraints scaled(constraints);
      const SolverAnswer answer = solve_group_ascent(scaled, Norm::l(p), generous_limits(1e-10), {});
      EXPECT_EQ(answer.outcome, Outcome::solved) << p;
      EXPECT_TRUE(judge(constraints, scaled, Norm::l(p), answer).certifies(1e-10)) << p;
    }
}

TEST(GroupAscent, TakesEqualitiesAndBoundsOfZero) {
  ConstraintArrays arrays = test::random_constraints(12, 5, 9, 11, 3);
  arrays.relations.assign(60, Relation::at_least);
  for (std::size_t k = 0; k < 60; ++k) {
    if (k % 7 == 0) {
      arrays.relations[k] = Relation::equal;
      arrays.bounds[k] = k % 2 == 0 ? -0.3 : 0.0;
    } else if (k % 5 == 0) {
      arrays.bounds[k] = 0;
    }
  }
  const MarginConstraints constraints(arrays);
  const ScaledConstraints scaled(constraints);
  for (const double p : {2.0, 1.5}) {
    const SolverAnswer answer = solve_group_ascent(scaled, Norm::l(p), generous_limits(1e-10), {});
    EXPECT_EQ(answer.outcome, Outcome::solved) << p;
    const Certificate certificate = certify(constraints, Norm::l(p), scaled.unscale_weights(answer.W.view()),
                                            scaled.unscale_multipliers(answer.lambda));
    EXPECT_LT(certificate.gap, 1e-10);
    EXPECT_LT(certificate.worst_violation, 1e-11);
  }
}

TEST(GroupAscent, NothingToDemandIsNothingToDo) {
  ConstraintArrays arrays = test::random_constraints(3, 2, 4, 4, 3);
  arrays.bounds.assign(6, 0.0);
  const ScaledConstraints scaled{MarginConstraints(arrays)};
  const SolverAnswer answer = solve_group_ascent(scaled, Norm::l(1.5), generous_limits(1e-10), {});
  EXPECT_EQ(answer.outcome, Outcome::solved);
  EXPECT_EQ(answer.W.view().eigen().norm(), 0);
}

TEST(GroupAscent, NeverSolvesWhatHasNoSolution) {
  ConstraintArrays arrays = test::random_constraints(10, 4, 6, 6, 5);
  arrays.left.row(13) = -arrays.left.row(14);  // of the same group
  const MarginConstraints constraints(arrays);
  const ScaledConstraints scaled(constraints);
  for (const double p : {2.0, 1.5}) {
    const SolverAnswer answer = solve_group_ascent(scaled, Norm::l(p), generous_limits(1e-10), {});
    EXPECT_NE(answer.outcome, Outcome::solved) << p;
    if (answer.outcome == Outcome::infeasible) {
      EXPECT_GT(certify(constraints, Norm::l(p), Matrix(), scaled.unscale_multipliers(answer.lambda)).dual,
                1e9);
    }
  }
}

TEST(GroupAscent, AWarmStartSavesWorkAndThreadsChangeNothing) {
  const ScaledConstraints scaled{MarginConstraints(planted_constraints(300, 16, 32, 4))};
  const SolverAnswer one = solve_group_ascent(scaled, Norm::l(1.5), generous_limits(1e-8), {});
  ASSERT_EQ(one.outcome, Outcome::solved);
  ThreadPool three(3);
  const SolverAnswer more = solve_group_ascent(scaled, Norm::l(1.5), generous_limits(1e-8, &three), {});
  EXPECT_EQ(one.lambda, more.lambda);
  EXPECT_TRUE(test::same_bits(one.W.view(), more.W.view()));
  const SolverAnswer again =
      solve_group_ascent(scaled, Norm::l(1.5), generous_limits(1e-8), {.W = one.W, .lambda = one.lambda});
  EXPECT_EQ(again.outcome, Outcome::solved);
  EXPECT_EQ(again.iterations, 0);
}

TEST(GroupAscent, LimitsEndIt) {
  const ScaledConstraints scaled{MarginConstraints(planted_constraints(60, 12, 16, 1))};
  SolverLimits limits = generous_limits(1e-10);
  limits.iterations_left = 1;
  EXPECT_EQ(solve_group_ascent(scaled, Norm::l(1.2), limits, {}).outcome, Outcome::out_of_iterations);
  limits = generous_limits(1e-10);
  limits.deadline = std::chrono::steady_clock::now();
  EXPECT_EQ(solve_group_ascent(scaled, Norm::l(1.2), limits, {}).outcome, Outcome::out_of_time);
}

}  // namespace
}  // namespace attmirror
