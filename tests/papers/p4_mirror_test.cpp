// Other optimizers in both stages.
#include "papers/result_of.hpp"

#include <gtest/gtest.h>

namespace attmirror::test {
namespace {

TEST(P4Mirror, NothingDiffers) { expect_sound(quick_result("p4-mirror")); }

// A certified target is an upper bound: a share above 1 would be a direction better than the best.
TEST(P4Mirror, SharesAreShares) {
  std::ptrdiff_t maps = 0;
  for (const Figure& figure : quick_result("p4-mirror").figures) {
    if (!figure.heatmap) continue;
    ++maps;
    for (const std::vector<double>& row : figure.heatmap->values)
      for (const double share : row) EXPECT_LE(share, 1 + 1e-7);
  }
  EXPECT_EQ(maps, 2);
}

// After 1,000 steps of each stage already: mirror descent is nearest to the margin of its own norm.
TEST(P4Mirror, OwnNormIsNearest) {
  for (const char* p : {"1.5", "3"}) {
    const std::string name = "ℓ" + std::string(p) + " mirror descent, ";
    for (const char* stage : {"stage 1", "stage 2"}) {
      EXPECT_EQ(named(quick_result("p4-mirror"), name + stage + ": norm whose largest margin").ours_text,
                "ℓ" + std::string(p))
          << stage;
      EXPECT_GT(named(quick_result("p4-mirror"), name + stage + ": share of the largest").ours, 0.7) << stage;
    }
  }
}

}  // namespace
}  // namespace attmirror::test
