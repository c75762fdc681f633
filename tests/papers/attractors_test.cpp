// The study of attractors: every wrong end is explained, and one sequence alone has none.
#include "papers/result_of.hpp"

namespace attmirror {
namespace {

TEST(AttractorsExperiment, EveryWrongEndIsExplained) {
  const ExperimentResult& result = test::quick_result("attractors");
  test::expect_sound(result);
  EXPECT_EQ(test::named(result, "integer example: partial").ours, 1);
  EXPECT_NEAR(test::named(result, "integer example: deficit").ours, 2, 1e-12);
  EXPECT_EQ(test::named(result, "no two sequences compete").ours, 0);
  EXPECT_EQ(test::named(result, "without a partial attractor").ours, 0);
  EXPECT_EQ(test::named(result, "certified attractor").ours, 1);
  EXPECT_EQ(test::named(result, "confirm").ours, 1);
  EXPECT_EQ(test::named(result, "n = 1").ours, 0);
  EXPECT_GT(test::named(result, "n = 4").ours, 0.1);
  EXPECT_NE(result.conclusion.find("with one sequence none does"), std::string::npos) << result.conclusion;
}

}  // namespace
}  // namespace attmirror
