// Regularization paths tend to the max-margin directions.
#include "papers/result_of.hpp"

namespace attmirror {
namespace {

TEST(Paths, TendToTheMaxMarginDirections) {
  const ExperimentResult result = test::quick_result("paths");
  test::expect_sound(result);
  for (const char* name : {"W, Frobenius (P3)", "W, ℓ1.75 (P1)", "W, ℓ3 (P1)", "(K,Q), nuclear (P3)",
                           "prompt, three inputs (P2)", "joint, all support vectors (P2): p",
                           "joint, one not a support vector (P2): p", "v and W in ℓ2 (P1, Setting C): W"}) {
    const double far = test::named(result, std::string(name) + ": largest distance").ours;
    EXPECT_GT(far, 0) << name;
    EXPECT_LT(far, 1e-5) << name;
    EXPECT_NEAR(test::named(result, std::string(name) + ": median slope").ours, -2, 0.1) << name;
  }
  EXPECT_EQ(test::named(result, "share of global paths").ours, 1);
  EXPECT_EQ(test::named(result, "points of global paths").ours, 0);
  EXPECT_NEAR(test::named(result, "distance of p from the full problem").ours, 0.0194, 2e-4);
  EXPECT_EQ(test::named(result, "v and W in ℓ2 (P1, Setting C): tokens").ours_text, "(0, 0)");
  EXPECT_EQ(test::named(result, "v and W in ℓ1.75 (P1, Setting C): tokens").ours_text, "(1, 0)");
}

TEST(Paths, OfLocalSolutionsExistFarOutOnly) {
  const ExperimentResult result = test::quick_result("paths");
  EXPECT_EQ(test::named(result, "share of local paths with").ours, 1);
  EXPECT_LT(test::named(result, "local path (P1, P2, P3): largest").ours, 1e-9);
  // Seed 2 loses its tokens between 1e3 and 1e4.
  EXPECT_NEAR(test::named(result, "largest radius from which").ours, 1e4, 1e-6);
}

}  // namespace
}  // namespace attmirror
