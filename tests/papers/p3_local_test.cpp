// P3 from random starts: W ends at the Frobenius solution, (K, Q) at the nuclear one, and the published plot of (K,
// Q) is that of W.
#include "papers/result_of.hpp"

namespace attmirror {
namespace {

TEST(P3Local, EachModelEndsAtItsSolution) {
  const ExperimentResult result = test::quick_result("p3-local");
  test::expect_sound(result);
  EXPECT_NEAR(test::named(result, "W, step 2000: correlation with the Frobenius").ours, .9955, .003);
  EXPECT_NEAR(test::named(result, "(K, Q), step 2000: correlation with the nuclear").ours, .9965, .002);
  EXPECT_LT(test::named(result, "W, step 2000: correlation with the nuclear").ours, .89);
  EXPECT_LT(test::named(result, "(K, Q), step 2000: correlation with the Frobenius").ours, .89);
  EXPECT_NEAR(test::named(result, "rank of the Frobenius").ours, 6, .1);
  EXPECT_NEAR(test::named(result, "rank of the nuclear").ours, 3.15, .35);
  EXPECT_EQ(test::named(result, "without a certificate").ours, 0);
}

TEST(P3Local, ThePublishedPlotOfFactorsIsOfWeights) {
  const ExperimentResult result = test::quick_result("p3-local");
  const Finding& plot = test::named(result, "curve \"(K, Q)\"");
  EXPECT_EQ(judge(plot), Verdict::artefact);
  EXPECT_GT(plot.ours, .98);
  EXPECT_NEAR(*plot.imitated, .862, .03);
}

}  // namespace
}  // namespace attmirror
