// P3: the share of runs that end on the best tokens grows with the dimension.
#include "papers/result_of.hpp"

namespace attmirror {
namespace {

TEST(P3Global, SharesGrowWithTheDimension) {
  const ExperimentResult result = test::quick_result("p3-global");
  test::expect_sound(result);
  const auto global = [&](int d) {
    return test::named(result, "d = " + std::to_string(d) + ": share of runs on the globally").ours;
  };
  // Of the first 40 of the 200 data sets; from W = 0 nothing is random.
  EXPECT_LT(global(2), .35);
  EXPECT_LT(global(2) + .2, global(4));
  EXPECT_LT(global(4), global(8));
  EXPECT_GE(global(20), .9);
  EXPECT_GE(test::named(result, "d = 4: share of runs on locally").ours, .95);
  EXPECT_EQ(test::named(result, "d = 4: share of data whose optimal").ours, 1);
  EXPECT_LT(test::named(result, "d = 2: share of data whose optimal").ours, .5);
  EXPECT_GT(test::named(result, "smallest over d").ours, .99);
  EXPECT_EQ(test::named(result, "neither solved nor proved").ours, 0);
}

}  // namespace
}  // namespace attmirror
