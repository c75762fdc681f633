// P3 under a ReLU head: attention keeps several tokens, and W turns to W_fin + R W_dir.
#include "papers/result_of.hpp"

namespace attmirror {
namespace {

TEST(P3SeveralTokens, WeightsTurnToTheGeneralSvm) {
  const ExperimentResult result = test::quick_result("p3-several-tokens");
  test::expect_sound(result);
  // Of the first 60 accepted data sets.
  const auto at_end = [&](const char* target) {
    return test::named(result, std::string("figure, d = 6: mean 1 - correlation with ") + target).ours;
  };
  // The published numbers are compared, and each says how heavy the tail behind its mean is.
  for (const Finding& finding : result.findings)
    if (finding.quantity.starts_with("figure, d = ")) {
      EXPECT_TRUE(finding.published) << finding.quantity;
      EXPECT_NE(finding.note.find("the largest 5 % of the runs carry"), std::string::npos)
          << finding.quantity;
    }
  EXPECT_LT(at_end("W_fin + R W_dir, step 2000"), .03);
  EXPECT_GT(at_end("the SVM of one token each, step 2000"), .08);
  EXPECT_NEAR(test::named(result, "d = 6: median").ours, .0026, .001);
  EXPECT_NEAR(test::named(result, "d = 6: mean 1 - correlation with W_fin + R W_dir, step 100").ours, .14,
              .05);
  EXPECT_NEAR(test::named(result, "d = 4: kept tokens").ours, 1.78, .25);
  EXPECT_NEAR(test::named(result, "d = 4: data sets tried").ours, 2712, 1000);
  EXPECT_GT(test::named(result, "share of runs nearer").ours, .85);
  EXPECT_LT(test::named(result, "without eps").ours, 2e-4);
  EXPECT_EQ(test::named(result, "without a certified solution").ours, 0);
}

}  // namespace
}  // namespace attmirror
