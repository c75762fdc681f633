// The quadratic head: attention becomes a sparsemax, but for local optima.
#include "papers/result_of.hpp"

namespace attmirror {
namespace {

TEST(P3Sparsemax, AttentionKeepsTheTokensOfTheClosedForm) {
  const ExperimentResult result = test::quick_result("p3-sparsemax");
  test::expect_sound(result);
  EXPECT_GE(test::named(result, "share of sequences").ours, .95);
  EXPECT_LT(test::named(result, "largest difference of a probability").ours, 1e-3);
  EXPECT_LT(test::named(result, "runs that keep every token").ours, 1e-9);  // W = W_fin
  EXPECT_LT(test::named(result, "lambda = 0.1: kept").ours, 1.6);
  EXPECT_EQ(test::named(result, "lambda = 2: kept").ours, 4);
  // Seed 3 has a sequence that loses a token.
  EXPECT_LT(test::named(result, "share of sequences").ours, 1);
  EXPECT_LT(test::named(result, "those in a local optimum").ours, 1e-3);
}

}  // namespace
}  // namespace attmirror
