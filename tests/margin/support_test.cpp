#include "margin/known_solution.hpp"
#include "support/golden.hpp"
#include "support/random_data.hpp"
#include "support/special_numbers.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/margin/problems.hpp>
#include <attmirror/margin/support.hpp>

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace attmirror {
namespace {

using test::infinity;
using test::known_solution;

TEST(Support, IsWhatHoldsWithEquality) {
  for (const Norm& norm : test::all_norms())
    for (const double size : {1.0, 1e150}) {
      auto known = known_solution(norm, {.active = 3, .equalities = 1, .zero_bounds = 1});
      known.arrays.left *= size;
      known.arrays.right *= size;
      known.W = known.W / size / size;
      const MarginConstraints constraints(known.arrays);
      std::vector<std::ptrdiff_t> active;
      for (std::ptrdiff_t k = 0; k < constraints.count(); ++k)
        if (known.lambda[k] != 0) active.push_back(k);
      EXPECT_EQ(support(constraints, known.W), active) << to_string(norm);
      EXPECT_EQ(support(constraints, known.W, 1e-11), active) << to_string(norm);
      EXPECT_EQ(support(constraints, known.W, 10).size(), std::size_t(constraints.count()));
    }
}

// The golden solutions of P1's runs: the runs ended there, so their selections are locally optimal.
TEST(Support, GoldenSelectionsAreLocallyOptimal) {
  const test::GoldenRuns runs(test::fixture("golden_local.npz"));
  for (const auto& [p, tag] : test::golden_geometries)
    for (std::ptrdiff_t seed = 0; seed < runs.seeds(); ++seed) {
      const Dataset data = runs.data(seed);
      const Selection alpha{runs.selected(tag, seed)};
      const MarginConstraints rows = constraints(data, AttentionSvm{alpha});
      const auto active = support(rows, runs.solution(tag, seed));
      EXPECT_GT(active.size(), 5u);
      EXPECT_LT(active.size(), 42u);
      const Vector v = data.decoder().eigen().transpose();
      const LocalOptimality local = local_optimality(data, alpha, rows, active, linear_scores(data, v));
      EXPECT_TRUE(local.holds) << tag << " seed " << seed;
      EXPECT_GT(local.least_advantage, 0);
      ASSERT_TRUE(local.worst);
      // With the opposite labels the worst tokens are selected.
      const LocalOptimality worst = local_optimality(data, alpha, rows, active, linear_scores(data, -v));
      EXPECT_FALSE(worst.holds);
      EXPECT_LT(worst.least_advantage, 0);
    }
}

TEST(Support, OnlySupportTokensMustBeWorse) {
  const Dataset data = generate(SphereData{.samples = 2, .tokens = 3, .dim = 4});
  const Selection alpha{{1, 0}};
  const MarginConstraints rows = constraints(data, AttentionSvm{alpha});  // tokens 0, 2; 1, 2
  std::vector<Vector> scores = {Vector{{5, 1, 0.5}}, Vector{{2, 1, 3}}};
  const auto judge = [&](std::vector<std::ptrdiff_t> active) {
    return local_optimality(data, alpha, rows, active, scores);
  };
  EXPECT_TRUE(judge({1, 2}).holds);
  EXPECT_EQ(judge({1, 2}).least_advantage, 0.5);
  EXPECT_EQ(judge({1, 2}).worst, (ConstraintOrigin{0, 0, 2}));
  EXPECT_FALSE(judge({0, 1, 2}).holds);
  EXPECT_EQ(judge({0, 1, 2}).least_advantage, -4);
  EXPECT_TRUE(judge({}).holds);
  EXPECT_EQ(judge({}).least_advantage, infinity);
  scores[0][2] = 1;
  EXPECT_FALSE(judge({1}).holds);  // a tie
  scores[0][2] = NAN;
  EXPECT_THROW(judge({1}), Error);
  EXPECT_TRUE(judge({2}).holds);
  EXPECT_THROW(judge({4}), Error);
  scores.pop_back();
  EXPECT_THROW(judge({2}), Error);
}

TEST(Support, ConflictsAreWhereAProofRests) {
  ConstraintArrays arrays;
  arrays.left = Matrix{{1, 1}, {2, 1}, {-1, -1}, {0, 0}};
  arrays.right = Matrix::Ones(1, 1);
  arrays.group_sizes = {4};
  arrays.bounds = {1, 1, 1, 1};
  const MarginConstraints constraints(arrays);
  EXPECT_EQ(conflict(constraints, Vector{{1, 1e-12, 1, 0}}), (std::vector<std::ptrdiff_t>{0, 2}));
  EXPECT_EQ(conflict(constraints, Vector{{1, -1, 1, -1}}), (std::vector<std::ptrdiff_t>{0, 2}));
  EXPECT_EQ(conflict(constraints, Vector{{1, 0, 1, 1}}), (std::vector<std::ptrdiff_t>{3}));
  EXPECT_TRUE(conflict(constraints, Vector::Zero(4)).empty());
  EXPECT_THROW(conflict(constraints, Vector::Zero(3)), Error);
}

TEST(Support, LabelMarginIsTheLeastOfTheQueries) {
  DatasetArrays arrays;
  arrays.tokens = Matrix{{1, 2}, {3, 5}, {-1, 4}, {10, 20}, {7, 7}};
  arrays.lengths = {3, 2};
  arrays.queries = Matrix{{1, 0}, {0, 3}};
  arrays.labels = {1, -1};
  const Dataset data(arrays);
  const Vector v{{1, -1}};
  const LabelMargins margins = label_margins(data, {{1, 0}}, v);
  EXPECT_EQ(margins.values, (Vector{{-2, 10}}));
  EXPECT_EQ(margins.smallest, -2);
  EXPECT_EQ(linear_scores(data, v)[1], (Vector{{10, 0}}));
  EXPECT_THROW(label_margins(data, {{1, 0}}, Vector::Ones(3)), Error);
  EXPECT_THROW(label_margins(data, {{1, 2}}, v), Error);
  EXPECT_THROW(linear_scores(data, Vector{{1, NAN}}), Error);
}

}  // namespace
}  // namespace attmirror
