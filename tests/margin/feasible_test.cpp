#include "support/random_data.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/margin/problems.hpp>

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

namespace attmirror {
namespace {

Selection random_selection(const Dataset& data, std::uint64_t seed) {
  const CounterRandom random(seed, RandomStream::init_W);
  Selection alpha;
  for (std::ptrdiff_t j = 0; j < data.total_queries(); ++j)
    alpha.tokens.push_back(
        static_cast<std::int64_t>(random.uniform(std::uint64_t(j)) * double(data.attended_length(j))));
  return alpha;
}

// The largest |margin - 1|, by the definition.
double worst(const Dataset& data, const Selection& alpha, const Matrix& W) {
  double result = 0;
  for (std::ptrdiff_t j = 0; j < data.total_queries(); ++j) {
    const auto X = data.tokens(data.sequence_of(j)).eigen();
    const Vector y = W * data.queries().eigen().row(j).transpose();
    for (std::ptrdiff_t t = 0; t < X.rows(); ++t)
      if (t != alpha.tokens[std::size_t(j)] && data.allows(j, t))
        result = std::max(result, std::fabs((X.row(alpha.tokens[std::size_t(j)]) - X.row(t)).dot(y) - 1));
  }
  return result;
}

// P3: for d >= max(T - 1, n) every selection is feasible. Also where both are equal.
TEST(Feasible, AnySelectionInEnoughDimensions) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    const auto n = std::int64_t(1 + seed % 10), T = std::int64_t(2 + seed % 7);
    const std::int64_t d = std::max(T - 1, n) + std::int64_t(seed % 3);
    const Dataset data = generate(SphereData{.samples = n, .tokens = T, .dim = d, .seed = seed});
    const Selection alpha = random_selection(data, seed);
    const auto W = constructive_weights(data, alpha);
    ASSERT_TRUE(W) << seed;
    EXPECT_LT(worst(data, alpha, *W), 1e-6) << seed;
    EXPECT_EQ(constraints(data, AttentionSvm{alpha}).count(), n * (T - 1));
  }
}

TEST(Feasible, SeveralQueriesAndMasks) {
  const Dataset data = with_causal_mask(generate(SphereData{
      .samples = 3, .tokens = 4, .dim = 12, .seed = 5, .query_from = SphereData::QueryFrom::all_tokens}));
  const Selection alpha = random_selection(data, 9);
  const auto W = constructive_weights(data, alpha);
  ASSERT_TRUE(W);
  EXPECT_LT(worst(data, alpha, *W), 1e-10);
}

TEST(Feasible, SizesOfDataDoNotMatter) {
  for (const double size : {1e150, 1e-150}) {
    DatasetArrays arrays = test::arrays_of(generate(SphereData{.samples = 4, .tokens = 5, .dim = 6}));
    arrays.tokens *= size;
    arrays.queries *= size;
    const Dataset data(arrays);
    const auto W = constructive_weights(data, {{0, 1, 2, 3}});
    ASSERT_TRUE(W);
    EXPECT_LT(worst(data, {{0, 1, 2, 3}}, *W), 1e-10);
  }
}

TEST(Feasible, NothingWhereTheConstructionFails) {
  const auto arrays = [](std::int64_t n, std::int64_t T, std::int64_t d) {
    return test::arrays_of(generate(SphereData{.samples = n, .tokens = T, .dim = d}));
  };
  const auto weights = [](const DatasetArrays& a, std::size_t n) {
    return constructive_weights(Dataset(a), {std::vector<std::int64_t>(n, 1)});
  };
  EXPECT_FALSE(weights(arrays(4, 3, 3), 4));  // more queries than dimensions
  EXPECT_FALSE(weights(arrays(2, 5, 3), 2));  // more tokens
  DatasetArrays a = arrays(3, 4, 5);
  ASSERT_TRUE(weights(a, 3));
  a.tokens.row(0) = a.tokens.row(1);  // a token that equals the selected one
  EXPECT_FALSE(weights(a, 3));
  a = arrays(3, 4, 5);
  a.queries.row(2) = -2 * a.queries.row(0);
  EXPECT_FALSE(weights(a, 3));
  a = arrays(3, 4, 5);
  a.queries.row(1).setZero();
  EXPECT_FALSE(weights(a, 3));
  a = arrays(3, 4, 5);
  a.tokens.row(2) = 2 * a.tokens.row(1) - a.tokens.row(0);  // differences of opposite sign: truly infeasible
  EXPECT_FALSE(weights(a, 3));
  EXPECT_THROW(constructive_weights(Dataset(a), {{9, 0, 0}}), Error);
}

TEST(Feasible, OneTokenNeedsNothing) {
  const Dataset data = generate(SphereData{.samples = 5, .tokens = 1, .dim = 2});
  const auto W = constructive_weights(data, {{0, 0, 0, 0, 0}});
  ASSERT_TRUE(W);
  EXPECT_EQ(*W, Matrix::Zero(2, 2));
}

}  // namespace
}  // namespace attmirror
