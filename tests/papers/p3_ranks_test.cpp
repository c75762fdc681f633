// P3's ranks: what is published at small d counts infeasible problems, and of nuclear solutions the noise of a solver.
#include "papers/result_of.hpp"

namespace attmirror {
namespace {

TEST(P3Ranks, CertifiedRanksAndTheirBounds) {
  const ExperimentResult result = test::quick_result("p3-ranks");
  test::expect_sound(result);
  // Of the first 16 data sets of each cell.
  EXPECT_NEAR(test::named(result, "n = 5, d = 2: share of infeasible").ours, .6, .25);
  EXPECT_EQ(test::named(result, "n = 10, d = 5: share of infeasible").ours, 0);
  EXPECT_EQ(test::named(result, "figure, n = 5, d = 10: mean rank, Frobenius").ours, 5);
  EXPECT_NEAR(test::named(result, "figure, n = 10, d = 20: mean rank, Frobenius").ours, 10, 1e-12);
  EXPECT_NEAR(test::named(result, "n = 5, d = 10 to 20: mean rank, nuclear").ours, 2.5, .25);
  EXPECT_NEAR(test::named(result, "n = 10, d = 10 to 20: mean rank, nuclear").ours, 3.8, .25);
  EXPECT_EQ(test::named(result, "rank above min(n, d)").ours, 0);
  EXPECT_EQ(test::named(result, "above the dual multiplicity").ours, 0);
  EXPECT_EQ(test::named(result, "neither solved nor proved").ours, 0);
  EXPECT_GT(test::named(result, "median ratio").ours, 1e5);
}

TEST(P3Ranks, ThePublishedOnesAreArtefacts) {
  const ExperimentResult result = test::quick_result("p3-ranks");
  const Finding& infeasible = test::named(result, "figure, n = 5, d = 2: mean rank, Frobenius");
  EXPECT_EQ(judge(infeasible), Verdict::artefact);
  EXPECT_GE(infeasible.ours, 1.8);
  EXPECT_NEAR(*infeasible.imitated, 1.3, .3);
  const Finding& noise = test::named(result, "figure, n = 10, d = 15: mean rank, nuclear");
  EXPECT_EQ(judge(noise), Verdict::artefact);
  EXPECT_LT(noise.ours, 4.5);
  EXPECT_NEAR(*noise.imitated, 9.95, .2);
}

}  // namespace
}  // namespace attmirror
