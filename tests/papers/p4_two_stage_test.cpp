// P4's two stages: what is exact for one-hot embeddings, and the laws of both stages, in the quick version.
#include "papers/result_of.hpp"

#include <cmath>

#include <gtest/gtest.h>

namespace attmirror::test {
namespace {

TEST(P4TwoStage, NothingDiffers) {
  expect_sound(quick_result("p4-two-stage"));
  EXPECT_GE(quick_result("p4-two-stage").findings.size(), 60u);
}

// L0(t) = log(1 + (|V| - 1) exp(-t eta0 / |W_ov*|)) for one-hot embeddings: every step goes along W_ov*.
TEST(P4TwoStage, StageOneIsExactForOneHot) {
  EXPECT_LT(named(quick_result("p4-two-stage"), "largest 1 − cos of all steps and seeds").ours, 1e-12);
  EXPECT_NEAR(named(quick_result("p4-two-stage"), "one-hot: ‖W_ov*‖").ours, std::sqrt(19.0), 1e-8);
  const double eta = 0.2 / std::sqrt(20.0);
  for (const double t : {300.0, 1000.0, 3000.0}) {
    const double loss = std::log1p(19 * std::exp(-t * eta / std::sqrt(19.0)));
    EXPECT_NEAR(named(quick_result("p4-two-stage"), "one-hot, three classes, stage 1: log10 L0 at t = " +
                                                        std::to_string(static_cast<int>(t)))
                    .ours,
                std::log10(loss), 1e-9);
  }
}

TEST(P4TwoStage, ExtendedOrderOfOneHotEmbeddings) {
  EXPECT_EQ(named(quick_result("p4-two-stage"), "where W_kq* scores optimal").ours, 1);
  EXPECT_EQ(named(quick_result("p4-two-stage"), "where the trained W_kq does").ours, 1);
  EXPECT_EQ(named(quick_result("p4-two-stage"), "largest score of a non-comparable token").ours, 0);
}

// Gaussian embeddings turn in stage 1, and stage 2 turns more slowly than with one-hot ones.
TEST(P4TwoStage, DirectionsConverge) {
  for (const char* setting : {"one-hot, three classes", "Gaussian, three classes", "Gaussian, linear"}) {
    const std::string stage = std::string(setting) + ", stage 2: 1 − cos at t = ";
    const double early = named(quick_result("p4-two-stage"), stage + "300").ours,
                 later = named(quick_result("p4-two-stage"), stage + "1000").ours,
                 end = named(quick_result("p4-two-stage"), stage + "3000").ours;
    EXPECT_GT(early, 2 * later) << setting;
    EXPECT_GT(later, 2 * end) << setting;
    EXPECT_GT(end, 0.005) << setting;
    EXPECT_NEAR(
        named(quick_result("p4-two-stage"), std::string(setting) + ", stage 2: training accuracy at the end")
            .ours,
        1, 1e-12);
  }
  EXPECT_NEAR(
      named(quick_result("p4-two-stage"), "Gaussian, three classes, stage 1: 1 − cos at t = 100").ours, 0.08,
      0.03);
}

TEST(P4TwoStage, SixPanels) {
  ASSERT_EQ(quick_result("p4-two-stage").figures.size(), 6u);
  for (const Figure& figure : quick_result("p4-two-stage").figures) {
    // One-hot embeddings are aligned from the first step: rounding, which is not drawn.
    EXPECT_EQ(figure.series.size(), figure.id == "stage-1-direction" ? 2u : 3u) << figure.id;
    for (const Series& series : figure.series) {
      EXPECT_LE(series.x.size(), 300u);
      EXPECT_EQ(series.low.size(), series.y.size());
    }
  }
}

}  // namespace
}  // namespace attmirror::test
