// global_condition(): where no two sequences compete, there is no partial attractor, and training finds none.
#include "attractor_data.hpp"
#include <attmirror/data/generators.hpp>
#include <attmirror/sweep/attractors.hpp>

#include <cmath>

#include <gtest/gtest.h>

namespace attmirror {
namespace {

TEST(GlobalCondition, HoldsWhereNoTwoSequencesCompete) {
  // Each sequence moves its own coordinates.
  DatasetArrays arrays;
  arrays.tokens.resize(6, 4);
  arrays.tokens << 1, 0, 0, 0, 0, 1, 0, 0, 0, -1, 0, 0, 0, 0, 0, 1, 0, 0, 2, 0, 0, 0, 2, -1;
  arrays.lengths = {3, 3};
  arrays.queries = Matrix::Ones(2, 4);
  arrays.labels = {1, -1};
  arrays.decoder = Vector(4);
  arrays.decoder << 1, 0, 1, 0;
  const Dataset data(arrays);
  const Attention model(data);
  const GlobalCondition condition = global_condition(model);
  EXPECT_TRUE(condition.holds());
  EXPECT_EQ(condition.least_cosine, 0);
  EXPECT_FALSE(global_condition(Attention(data, KQ{})).applies);
  Attractors found = attractors(model);
  EXPECT_TRUE(found.complete);
  EXPECT_EQ(found.count(AttractorKind::partial), 0);
  EXPECT_EQ(train_starts(model, found, {.starts = 50, .std = 10}).counts, (std::vector<std::int64_t>{50}));
}

TEST(GlobalCondition, SaysWhatIsMissing) {
  const Dataset example = test::integer_example();
  const GlobalCondition rivals = global_condition(Attention(example));
  EXPECT_FALSE(rivals.holds());
  EXPECT_TRUE(rivals.applies && rivals.unique_best && rivals.equal_scores && rivals.feasible);
  // (1, -1) against (-2, 3), both with the query (1, 0): -5 / (sqrt 2 sqrt 13).
  EXPECT_NEAR(rivals.least_cosine, -5 / std::sqrt(26), 1e-15);
  EXPECT_EQ(rivals.first.token, 1);
  EXPECT_EQ(rivals.second.sequence, 1);
  EXPECT_EQ(rivals.second.token, 1);
  const Dataset sphere = generate(SphereData{.seed = 1});
  const GlobalCondition unequal = global_condition(Attention(sphere));
  EXPECT_TRUE(unequal.unique_best);
  EXPECT_FALSE(unequal.equal_scores || unequal.holds());
}

// Whenever it holds, there is no partial attractor.
TEST(GlobalCondition, ExcludesPartialAttractors) {
  int held = 0;
  for (unsigned seed = 0; seed < 200; ++seed) {
    const Dataset data = test::equal_scores(2, 3, 3, seed);
    const Attention model(data);
    if (!global_condition(model).holds()) continue;
    ++held;
    const Attractors found = attractors(model);
    EXPECT_TRUE(found.complete);
    EXPECT_EQ(found.list.size(), 1u);
  }
  EXPECT_GE(held, 20);
}

}  // namespace
}  // namespace attmirror
