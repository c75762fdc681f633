// Coordinate ascent arrives at easy problems, not at infeasible ones, and not in time where the solution is large.
#include "papers/coordinate_ascent.hpp"

#include <attmirror/attention/tokens.hpp>
#include <attmirror/data/generators.hpp>
#include <attmirror/margin/max_margin.hpp>

#include <gtest/gtest.h>

namespace attmirror {
namespace {

TEST(CoordinateAscent, MissesWhatIsLarge) {
  int easy = 0, missed = 0;
  double largest_found = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const Dataset data = generate(SphereData{.samples = 5, .tokens = 5, .dim = 2, .seed = seed});
    const AttentionSvm problem{optimal_tokens(data)};
    const MarginSolution svm = max_margin(data, problem, Norm::frobenius());
    const bool arrives = coordinate_ascent_arrives(constraints(data, problem), 1e-6, 2000);
    if (svm.status == MarginStatus::infeasible) {
      EXPECT_FALSE(arrives) << seed;
    } else if (arrives) {
      ++easy;
      largest_found = std::max(largest_found, svm.norm);
    } else {
      ++missed;
      EXPECT_GT(svm.norm, 5) << seed;
    }
  }
  EXPECT_GE(easy, 5);
  EXPECT_GE(missed, 2);
  EXPECT_LT(largest_found, 300);
}

TEST(CoordinateAscent, NeedsSweepsAndDistinctTokens) {
  const Dataset data = generate(SphereData{.samples = 5, .tokens = 5, .dim = 10, .seed = 1});
  const MarginConstraints demands = constraints(data, AttentionSvm{optimal_tokens(data)});
  EXPECT_TRUE(coordinate_ascent_arrives(demands, 1e-6, 20'000));
  EXPECT_FALSE(coordinate_ascent_arrives(demands, 1e-6, 1));
  const Dataset line = generate(SphereData{.samples = 5, .tokens = 5, .dim = 1, .seed = 1});
  EXPECT_FALSE(coordinate_ascent_arrives(constraints(line, AttentionSvm{optimal_tokens(line)}), 1e-6, 1000));
}

}  // namespace
}  // namespace attmirror
