// P3 in the plane: the numbers that do not depend on how many starts there are.
#include "papers/result_of.hpp"

namespace attmirror {
namespace {

TEST(P3Plane, WeightsAndFactorsTurnToTheirSolutions) {
  const ExperimentResult result = test::quick_result("p3-plane");
  test::expect_sound(result);
  EXPECT_NEAR(test::named(result, "first data set: least Frobenius norm").ours, 8.68573, 2e-5);
  EXPECT_NEAR(test::named(result, "second data set: least nuclear norm").ours, 1.87260, 1e-5);
  EXPECT_NEAR(test::named(result, "first data set: correlation of W with its solution, step 2000").ours,
              .99968, 6e-6);
  EXPECT_NEAR(test::named(result, "second data set: correlation of W with its solution, step 2000").ours,
              .99944, 6e-6);
  EXPECT_NEAR(test::named(result, "second data set: norm of W, step 2000").ours, 60.08, .05);
  EXPECT_NEAR(test::named(result, "second data set: correlation of K Q^T with W*").ours, .9999, 7e-5);
  // Without eps W goes on, and its direction comes ten times as close.
  EXPECT_GT(test::named(result, "second data set: the same without eps").ours, .9999);
  // Without the penalty a start can be late.
  EXPECT_LT(test::named(result, "second data set: the same without penalty").ours, .999);
}

}  // namespace
}  // namespace attmirror
