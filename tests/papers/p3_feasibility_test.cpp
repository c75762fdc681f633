// P3's theorem: from d = max(T - 1, n) on every selection can be separated.
#include "papers/result_of.hpp"

namespace attmirror {
namespace {

TEST(P3Feasibility, TheTheoremHoldsAndIsNotNecessary) {
  const ExperimentResult result = test::quick_result("p3-feasibility");
  test::expect_sound(result);
  for (const char* kind : {"optimal tokens", "random tokens", "random tokens, self-attention"}) {
    const std::string start = std::string("d >= max(T - 1, n), ") + kind;
    EXPECT_EQ(test::named(result, start + ": share that can be separated").ours, 1) << kind;
    EXPECT_EQ(test::named(result, start + ": share with the weights").ours, 1) << kind;
  }
  EXPECT_EQ(test::named(result, "share of all selections").ours, 1);
  EXPECT_GT(test::named(result, "over the least one").ours, 1);
  EXPECT_EQ(test::named(result, "neither solved nor proved").ours, 0);
  // Below, the plane is too small and d = 4 is enough for most.
  EXPECT_LT(test::named(result, "n = T = 5, d = 2: share of random").ours, .4);
  EXPECT_GT(test::named(result, "n = T = 5, d = 4: share of random").ours, .9);
}

}  // namespace
}  // namespace attmirror
