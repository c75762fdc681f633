// The experiment p2-vit on made-up records: its sentences are right whichever way the numbers fall.
#include "papers/cifar_records.hpp"
#include "papers/rank_correlation.hpp"
#include "papers/result_of.hpp"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

namespace attmirror {
namespace {

using test::AttentionTrend;
using test::CifarRecords;

void expect_words(const std::string& text, std::string_view part) {
  EXPECT_NE(text.find(part), std::string::npos) << text << "\nlacks: " << part;
}

std::string vit_conclusion(const AttentionTrend& gradient, const AttentionTrend& adam) {
  CifarRecords records;
  records.train("md-2", 0.1, 0.7, 0.2, 1, gradient);
  records.train("adam", 1e-4, 0.8, 0.2, 2, adam);
  return vit_result(records.list).conclusion;
}

TEST(RankCorrelation, IsSpearmans) {
  EXPECT_NEAR(rank_correlation({1, 2, 3, 4}, {10, 100, 1000, 1001}), 1, 1e-15);
  EXPECT_NEAR(rank_correlation({1, 2, 3}, {3, 2, 1}), -1, 1e-15);
  EXPECT_NEAR(rank_correlation({1, 2, 3, 4}, {2, 1, 4, 3}), 0.6, 1e-15);
  EXPECT_TRUE(std::isnan(rank_correlation({1, 2}, {5, 5})));
}

TEST(Vit, TheClaimIsJudgedBlockByBlock) {
  const AttentionTrend sparser{}, denser{.share_from = 0.2, .share_to = 0.1},
      shrinking{.norm_from = 10, .norm_to = 2};
  const std::string held = vit_conclusion(sparser, sparser);
  EXPECT_TRUE(held.starts_with(
      "P2's claim that attention sparsifies as weights grow holds on P1's vision transformer (P2's ViT-base is larger and trains longer, for 400 epochs): in all 18 blocks of 3 trainings K Qᵀ grew and attention concentrated with it (6 of 6 with gradient descent (ℓ2), 12 of 12 with Adam)."))
      << held;
  expect_words(
      held,
      "With gradient descent (ℓ2), from epoch 5 to epoch 150, the norm of K Qᵀ grows from 2 to 10, the share of attention on the top token rises from 0.050 to 0.200, and 5.0 tokens instead of 20.0 hold 90 % of attention (means over blocks).");
  const std::string part = vit_conclusion(sparser, denser);
  expect_words(part, "weights grow holds in part on ");
  expect_words(part, "in 6 of 18 blocks of 3 trainings K Qᵀ grew");
  expect_words(part, "(6 of 6 with gradient descent (ℓ2), 0 of 12 with Adam)");
  const std::string failed = vit_conclusion(denser, denser);
  expect_words(failed, "weights grow does not hold on ");
  expect_words(failed, "in none of 18 blocks of 3 trainings");
  expect_words(failed, "the share of attention on the top token falls from 0.200 to 0.100");
  // Sparser without larger weights is not what P2 describes.
  const std::string shrunk = vit_conclusion(shrinking, shrinking);
  expect_words(shrunk, "weights grow does not hold on ");
  expect_words(shrunk,
               "the norm of K Qᵀ shrinks from 10 to 2, the share of attention on the top token rises");
}

TEST(Vit, SomeBlocksMayDiffer) {
  CifarRecords records;
  records.train("md-2", 0.1, 0.7, 0.2, 1);
  TrainingRecord& run = records.list.front();
  for (AttentionRecord& record : run.attention)
    if (record.block >= 5) record.all.top_share = 1 - record.all.top_share;
  const std::vector<BlockTrend> trends = block_trends(run);
  ASSERT_EQ(trends.size(), 6u);
  EXPECT_TRUE(trends[0].as_claimed());
  EXPECT_NEAR(trends[0].correlation, 1, 1e-12);
  EXPECT_FALSE(trends[4].as_claimed());
  EXPECT_NEAR(trends[4].correlation, -1, 1e-12);
  const ExperimentResult result = vit_result(records.list);
  expect_words(result.conclusion, "weights grow holds in part on ");
  expect_words(result.conclusion, "in 4 of 6 blocks of 1 training K Qᵀ grew");
  EXPECT_NEAR(test::named(result, "share of blocks that do what P2 describes").ours, 4.0 / 6, 1e-12);
}

TEST(Vit, FiguresAndTheTableHaveEveryBlock) {
  const ExperimentResult result = vit_result(test::made_up_cifar_records().list);
  test::expect_sound(result);
  std::vector<std::string> ids;
  for (const Figure& figure : result.figures) ids.push_back(figure.id);
  EXPECT_EQ(ids, (std::vector<std::string>{"top-share", "class-token", "norm", "correlation", "entropy",
                                           "tokens", "norms"}));
  EXPECT_EQ(result.figures[0].series.size(), 5u);
  EXPECT_EQ(result.figures[0].series[0].x.size(), 30u);
  ASSERT_TRUE(result.figures[3].heatmap);
  EXPECT_EQ(result.figures[3].heatmap->columns.size(), 6u);
  ASSERT_EQ(result.tables.size(), 1u);
  EXPECT_EQ(result.tables[0].table.rows.size(), 6u * 8u);
  EXPECT_EQ(result.tables[0].table.rows[0][3], "yes");
  EXPECT_EQ(result.tables[0].table.rows[0][5], "2 → 10");
}

TEST(Vit, APeakIsNamedWhereTheShareFallsAgain) {
  CifarRecords records;
  records.train("md-2", 0.1, 0.7, 0.2, 1);
  records.train("adamw", 3e-4, 0.8, 0.2, 1);
  EXPECT_EQ(vit_result(records.list).conclusion.find("does not only rise"), std::string::npos);
  for (AttentionRecord& record : records.list.back().attention)
    if (record.epoch == 15) record.all.top_share = 0.25;
  expect_words(vit_result(records.list).conclusion,
               " The share does not only rise: with AdamW it peaks at 0.250 in epoch 15 and ends at 0.200.");
  // A tenth of the peak is no fall.
  for (AttentionRecord& record : records.list.back().attention)
    if (record.epoch == 15) record.all.top_share = 0.22;
  EXPECT_EQ(vit_result(records.list).conclusion.find("does not only rise"), std::string::npos);
}

TEST(Vit, TheClassTokenHasASentenceOfItsOwn) {
  CifarRecords records;
  records.train("md-2", 0.1, 0.7, 0.2, 1);
  records.train("adam", 1e-4, 0.8, 0.2, 1);
  EXPECT_TRUE(
      vit_result(records.list)
          .conclusion.ends_with(
              " The attention of the class token, which the answer is read from, concentrates in 12 of 12 "
              "blocks (6 of 6 with gradient descent (ℓ2), 6 of 6 with Adam)."));
  // In four blocks it spreads out, though all queries together concentrate.
  for (AttentionRecord& record : records.list.back().attention)
    if (record.block <= 4) {
      record.class_token.top_share = 0.5 - record.class_token.top_share;
      record.class_token.entropy = 3 - record.class_token.entropy;
    }
  const ExperimentResult result = vit_result(records.list);
  expect_words(result.conclusion, "weights grow holds on ");
  // (4 (0.5 - 0.05) + 2 0.05) / 6 and (4 (0.5 - 0.2) + 2 0.2) / 6
  expect_words(
      result.conclusion,
      "concentrates in 8 of 12 blocks (6 of 6 with gradient descent (ℓ2), 2 of 6 with Adam); with Adam its "
      "top token goes from 0.317 after epoch 5 to 0.267.");
  EXPECT_NEAR(test::named(result, "class token's attention concentrated, Adam").ours, 2.0 / 6, 1e-12);
}

// Means are over the trainings that got farthest; each block is judged by its own last epoch.
TEST(Vit, StoppedTrainingsCountAsFarAsTheyGot) {
  CifarRecords records;
  records.train("adam", 1e-4, 0.8, 0.2);
  records.stop("adam-s2", 34);
  const std::string stopped = vit_result(records.list).conclusion;
  expect_words(stopped, "in all 12 blocks of 2 trainings");
  expect_words(stopped, "With Adam, from epoch 5 to epoch 150");
  // One measurement shows no trend.
  records.stop("adam-s2", 9);
  expect_words(vit_result(records.list).conclusion, "in all 6 blocks of 1 training ");
  records.stop("adam-s1", 7);
  const ExperimentResult nothing = vit_result(records.list);
  expect_words(nothing.conclusion, "cannot be judged yet: no training has measured attention twice.");
  EXPECT_TRUE(nothing.figures.empty());
  EXPECT_EQ(nothing.findings.size(), 1u);
  EXPECT_TRUE(nothing.tables.empty());
}

}  // namespace
}  // namespace attmirror
