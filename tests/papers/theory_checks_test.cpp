// Assumptions beside outcomes: intervals by hand, data with equal scores, and what the quick version shows.
#include "papers/result_of.hpp"
#include "papers/share_interval.hpp"
#include "papers/theory_study.hpp"
#include <attmirror/attention/tokens.hpp>

#include <cmath>

namespace attmirror {
namespace {

// Wilson's interval of 8 of 10, as tables print it: 0.490 to 0.943. And at the ends it has a width.
TEST(ShareInterval, IsWilsons) {
  const ShareInterval some = share_interval(8, 10);
  EXPECT_NEAR(some.low, .4902, 5e-5);
  EXPECT_NEAR(some.high, .9433, 5e-5);
  const ShareInterval none = share_interval(0, 1000), all = share_interval(1000, 1000);
  EXPECT_EQ(none.low, 0);
  EXPECT_NEAR(none.high, .00383, 1e-5);
  EXPECT_NEAR(all.low, 1 - none.high, 1e-12);
  EXPECT_EQ(all.high, 1);
  EXPECT_TRUE(std::isnan(share_interval(0, 0).value));
  EXPECT_EQ(to_string(share_interval(0, 0)), "–");
  EXPECT_EQ(to_string(some), "0.800 (0.490, 0.943)");
  EXPECT_TRUE(apart(none, some));
  EXPECT_FALSE(apart(some, share_interval(9, 10)));
}

TEST(TheoryChecks, MakesEqualScoresWithoutTouchingTheBest) {
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    const Dataset drawn = theory::outcome_data(theory::ScoreKind::drawn, 4, seed),
                  equal = theory::outcome_data(theory::ScoreKind::equal, 4, seed);
    const TheoryReport report = check_theory(equal, {.joint = false});
    EXPECT_TRUE(report.holds(Assumption::equal_scores));
    EXPECT_FALSE(check_theory(drawn, {.joint = false}).holds(Assumption::equal_scores));
    EXPECT_EQ(report.tokens, optimal_tokens(drawn));
  }
}

TEST(TheoryChecks, AssumptionsGoWithOutcomes) {
  const ExperimentResult result = test::quick_result("theory-checks");
  test::expect_sound(result);
  // Of 60 data sets each: where the tokens cannot be separated, nothing ends on them.
  EXPECT_EQ(test::named(result, "sphere, d = 3: global share where \"separable\" fails").ours, 0);
  EXPECT_GT(test::named(result, "sphere, d = 3: global share where \"separable\" holds").ours, .3);
  EXPECT_GT(test::named(result, "sphere, d = 10: global share where \"initial gradient\" holds").ours, .9);
  EXPECT_EQ(test::named(result, "step size 1/L").ours, 1);
  EXPECT_EQ(test::named(result, "neither solved nor proved").ours, 0);
}

}  // namespace
}  // namespace attmirror
