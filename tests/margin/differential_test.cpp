// Random problems by both methods, which share no more than the constraints: the active set and the interior point
// must find the same norm, and every answer its certificate. A few by default; 2,000 where ATTMIRROR_NIGHTLY is 1.
#include "base/random.hpp"
#include "margin/random_constraints.hpp"
#include "support/nightly.hpp"
#include <attmirror/margin/max_margin.hpp>

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

#include <gtest/gtest.h>

namespace attmirror {
namespace {

struct RandomProblem {
  ConstraintArrays arrays;
  Norm norm = Norm::frobenius();
  std::string text;
};

// Shapes, exponents and kinds of constraints from one seed.
RandomProblem random_problem(std::uint64_t seed) {
  const CounterRandom random(seed, RandomStream::init_W);
  std::uint64_t drawn = 0;
  const auto between = [&](std::ptrdiff_t least, std::ptrdiff_t most) {
    return least + static_cast<std::ptrdiff_t>(random.uniform(1'000'000 + drawn++) *
                                               static_cast<double>(most - least + 1));
  };
  const std::ptrdiff_t groups = between(1, 5), each = between(1, 6), rows = between(1, 7),
                       cols = between(1, 7);
  RandomProblem problem;
  problem.arrays = test::random_constraints(groups, each, rows, cols, 17 * seed + 5);
  static constexpr double exponents[] = {1.1, 1.25, 1.5, 1.75, 2, 2.5, 3, 5, 10};
  problem.norm = Norm::l(exponents[between(0, 8)]);
  // Bounds that differ, some of them 0; constraints that repeat each other; one of a tiny scale.
  const std::ptrdiff_t kind = between(0, 4);
  for (std::size_t k = 0; k < problem.arrays.bounds.size(); ++k) {
    if (kind == 1) problem.arrays.bounds[k] = 0.1 + 3 * random.uniform(2'000'000 + k);
    if (kind == 2 && k > 0 && random.uniform(3'000'000 + k) < 0.3) problem.arrays.bounds[k] = 0;
  }
  if (kind == 3 && each > 1) problem.arrays.left.row(1) = 1.5 * problem.arrays.left.row(0);
  if (kind == 4) problem.arrays.left.row(0) *= 1e-4;
  problem.text = "seed " + std::to_string(seed) + ": " + std::to_string(groups) + " groups of " +
                 std::to_string(each) + " on " + std::to_string(rows) + " x " + std::to_string(cols) +
                 ", kind " + std::to_string(kind) + ", norm " + to_string(problem.norm);
  return problem;
}

TEST(Differential, InteriorPointAgainstActiveSet) {
  const std::uint64_t count = test::nightly_count(40, 2000);
  std::uint64_t compared = 0;
  for (std::uint64_t seed = 1; seed <= count; ++seed) {
    const RandomProblem random = random_problem(seed);
    SCOPED_TRACE(random.text);
    const MarginConstraints problem(random.arrays);
    const MarginSolution active =
        max_margin(problem, random.norm,
                   {.method = MarginMethod::active_set, .generation = MarginOptions::Generation::off});
    const MarginSolution interior = max_margin(
        problem, random.norm,
        {.tol = 1e-9, .method = MarginMethod::interior_point, .generation = MarginOptions::Generation::off});
    ASSERT_EQ(active.status, MarginStatus::certified) << active.report();
    ASSERT_EQ(interior.status, MarginStatus::certified) << interior.report();
    EXPECT_NEAR(active.norm / interior.norm, 1, 1e-8) << active.report() << interior.report();
    EXPECT_TRUE(certify(problem, random.norm, active.W, active.lambda).certifies(1e-10));
    EXPECT_TRUE(certify(problem, random.norm, interior.W, interior.lambda).certifies(1e-9));
    // Each one's multipliers bound the other's norm from below.
    EXPECT_TRUE(certify(problem, random.norm, active.W, interior.lambda).certifies(2e-9));
    EXPECT_TRUE(certify(problem, random.norm, interior.W, active.lambda).certifies(2e-9));
    ++compared;
  }
  EXPECT_EQ(compared, count);
}

}  // namespace
}  // namespace attmirror
