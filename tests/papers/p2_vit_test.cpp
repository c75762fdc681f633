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

std::string vit_words(const AttentionTrend& gradient, const AttentionTrend& adam) {
  CifarRecords records;
  records.train("md-2", 0.1, 0.7, 0.2, 1, gradient);
  records.train("adam", 1e-4, 0.8, 0.2, 2, adam);
  return test::words_of(vit_result(records.list));
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
  const std::string held = vit_words(sparser, sparser);
  EXPECT_TRUE(held.starts_with(
      "P2's claim that attention sparsifies as weights grow holds on P1's vision transformer (P2's ViT-base is larger and trains longer, for 400 epochs): in all 18 blocks of 3 trainings K Qᵀ is larger and attention more concentrated after the last epoch than after the first, and in all 18 the two rose together over the epochs.\n"))
      << held;
  expect_words(
      held,
      "With gradient descent (ℓ2), from epoch 5 to epoch 150, the norm of K Qᵀ grows from 2 to 10, the share of attention on the top token rises from 0.050 to 0.200, and 5.0 tokens instead of 20.0 hold 90 % of attention (means over blocks).");
  const std::string part = vit_words(sparser, denser);
  expect_words(part, "weights grow holds in part on ");
  expect_words(part, "in 6 of 18 blocks of 3 trainings K Qᵀ is larger");
  expect_words(part, "and in 6 of 18 the two rose together");
  expect_words(
      part,
      "\nRank correlations of the norm of K Qᵀ and the share of attention on the top token, over the epochs of a block (1: they always rise or fall together): 1.00 to 1.00 with gradient descent (ℓ2) (positive in all 6), -1.00 to -1.00 with Adam (positive in none of 12).");
  const std::string failed = vit_words(denser, denser);
  expect_words(failed, "weights grow does not hold on ");
  expect_words(failed, "in none of 18 blocks of 3 trainings");
  expect_words(failed, "the share of attention on the top token falls from 0.200 to 0.100");
  // Sparser without larger weights is not what P2 describes.
  const std::string shrunk = vit_words(shrinking, shrinking);
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
  expect_words(result.conclusion, "in 4 of 6 blocks of 1 training K Qᵀ is larger");
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

// Larger weights and more attention on the top token at the end, but no common rise on the way.
TEST(Vit, EndsAndTheWayToThemAreJudgedApart) {
  CifarRecords records;
  records.train("md-2", 0.1, 0.7, 0.2, 1);
  for (AttentionRecord& record : records.list.back().attention)
    if (record.epoch > 5 && record.epoch < 150) record.all.top_share = 0.9 - record.all.top_share;
  const ExperimentResult result = vit_result(records.list);
  expect_words(result.conclusion, "weights grow holds in part on ");
  expect_words(result.conclusion, "in all 6 blocks of 1 training K Qᵀ is larger");
  expect_words(result.conclusion, "and in none of 6 the two rose together over the epochs.");
}

TEST(Vit, APeakIsNamedWhereTheShareFallsAgain) {
  CifarRecords records;
  records.train("md-2", 0.1, 0.7, 0.2, 1);
  records.train("adamw", 3e-4, 0.8, 0.2, 1);
  const auto peak = [&](double share) {
    for (AttentionRecord& record : records.list.back().attention)
      if (record.epoch == 15) record.all.top_share = share;
    return vit_result(records.list);
  };
  EXPECT_EQ(test::words_of(vit_result(records.list)).find("falls again"), std::string::npos);
  const ExperimentResult fallen = peak(0.25);
  expect_words(
      test::words_of(fallen),
      "\nThe share of the top token peaks and falls again with AdamW at 0.250 in epoch 15, and 0.200 at the end.");
  expect_words(fallen.figures[0].caption, "AdamW goes from 0.050 to 0.200 after 0.250 in epoch 15.");
  // Less than a tenth of the peak is no fall.
  EXPECT_EQ(test::words_of(peak(0.22)).find("falls again"), std::string::npos);
}

TEST(Vit, TheClassTokenHasAParagraphOfItsOwn) {
  CifarRecords records;
  records.train("md-2", 0.1, 0.7, 0.2, 1);
  records.train("adam", 1e-4, 0.8, 0.2, 1);
  EXPECT_EQ(
      vit_result(records.list).details.back(),
      "The class token, from which the answer is read: in all 12 blocks its attention is more concentrated "
      "after the last epoch than after the first, and in none of 12 the share of its top token ends more than "
      "a tenth below its peak.");
  // In four blocks it spreads out from the first epoch on, though all queries together concentrate.
  for (AttentionRecord& record : records.list.back().attention)
    if (record.block <= 4) {
      record.class_token.top_share = 0.5 - record.class_token.top_share;
      record.class_token.entropy = 3 - record.class_token.entropy;
    }
  const ExperimentResult result = vit_result(records.list);
  expect_words(result.conclusion, "weights grow holds on ");
  // (4 (0.5 - 0.05) + 2 0.05) / 6 and (4 (0.5 - 0.2) + 2 0.2) / 6
  EXPECT_EQ(
      result.details.back(),
      "The class token, from which the answer is read: in 8 of 12 blocks its attention is more concentrated "
      "after the last epoch than after the first, and in 4 of 12 the share of its top token ends more than a "
      "tenth below its peak (means over blocks: with Adam at 0.317 in epoch 5, and 0.267 at the end).");
  EXPECT_NEAR(test::named(result, "class token's attention concentrated, Adam").ours, 2.0 / 6, 1e-12);
}

// Means are over the trainings that got farthest; each block is judged by its own last epoch.
TEST(Vit, StoppedTrainingsCountAsFarAsTheyGot) {
  CifarRecords records;
  records.train("adam", 1e-4, 0.8, 0.2);
  records.stop("adam-s2", 34);
  const std::string stopped = test::words_of(vit_result(records.list));
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
