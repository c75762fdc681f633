// The experiment p1-imdb-depth on made-up records: its conclusion is right whichever way the numbers fall.
#include "papers/depth_records.hpp"
#include "papers/recorded_studies.hpp"
#include "papers/result_of.hpp"
#include <attmirror/base/error.hpp>

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

namespace attmirror {
namespace {

using test::depth_table;
using test::DepthRecords;
using test::expect_conclusion;
using test::made_up_depth_records;
using test::whole_conclusion;

void erase_config(DepthRecords& records, std::string_view config) {
  for (std::vector<TrainingRecord>* list : {&records.deep, &records.shallow})
    std::erase_if(*list, [&](const TrainingRecord& record) { return record.config == config; });
}

SampleSummary sample_of(std::initializer_list<double> values) {
  return summarize(std::vector<double>(values));
}

// By hand: {3, 5} and {1, 2, 3} differ by 2 with weight 6/5, {8} and {4, 6} by 3 with weight 2/3, so that d = 33/14.
// The squares within samples are 2 + 2 + 0 + 2, those between sizes 3/7; 8 - 2 - 1 = 5 degrees of freedom, sigma^2 =
// 9/7, and the squared standard error is 9/7 / (28/15) = 135/196. Student's 97.5 % quantile for 5 is 2.570582.
TEST(PooledDifference, IsLeastSquaresWithSizesAsBlocks) {
  const std::vector<SamplePair> pairs{{sample_of({3, 5}), sample_of({1, 2, 3})},
                                      {sample_of({8}), sample_of({4, 6})},
                                      {sample_of({100}), sample_of({})}};  // says nothing
  const WelchComparison pooled = pooled_difference(pairs);
  EXPECT_NEAR(pooled.difference, 33.0 / 14, 1e-14);
  EXPECT_NEAR(pooled.standard_error, std::sqrt(135.0) / 14, 1e-14);
  EXPECT_EQ(pooled.freedom, 5);
  EXPECT_NEAR(pooled.low, 33.0 / 14 - 2.570582 * std::sqrt(135.0) / 14, 1e-5);
  EXPECT_NEAR(pooled.high, 33.0 / 14 + 2.570582 * std::sqrt(135.0) / 14, 1e-5);
  EXPECT_GT(pooled.probability, 0.02);  // t = 2.84: between the quantiles of 5 % and of 2 %, 3.365
  EXPECT_LT(pooled.probability, 0.05);
}

// One size is the two-sample t with one variance: means 4 and 2, 3 degrees of freedom, sigma^2 = 4/3.
TEST(PooledDifference, OfOneSizeIsStudentsT) {
  const WelchComparison one =
      pooled_difference(std::vector<SamplePair>{{sample_of({3, 5}), sample_of({1, 2, 3})}});
  EXPECT_NEAR(one.difference, 2, 1e-14);
  EXPECT_EQ(one.freedom, 3);
  EXPECT_NEAR(one.standard_error, std::sqrt(4.0 / 3 * 5 / 6), 1e-14);
}

TEST(PooledDifference, SaysWhereNothingCanBeSaid) {
  const WelchComparison open = pooled_difference(std::vector<SamplePair>{{sample_of({3}), sample_of({1})}});
  EXPECT_EQ(open.difference, 2);
  EXPECT_TRUE(std::isnan(open.freedom));
  EXPECT_EQ(open.low, -INFINITY);
  EXPECT_THROW(pooled_difference(std::vector<SamplePair>{{sample_of({3}), sample_of({})}}), Error);
  // No scatter at all.
  const std::vector<SamplePair> equal{{sample_of({3, 3}), sample_of({1, 1})}};
  EXPECT_EQ(pooled_difference(equal).low, 2);
  EXPECT_EQ(pooled_difference(equal).probability, 0);
}

TEST(ImdbDepth, ConfigurationsNameTheirSize) {
  EXPECT_EQ(training_optimizer("md-1.1-6blocks").blocks, 6);
  EXPECT_EQ(training_optimizer("md-1.1-6blocks").name, "ℓ1.1 mirror descent, 6 blocks");
  EXPECT_EQ(training_optimizer("md-1.1-6blocks").p, std::vector<double>{1.1});
  EXPECT_EQ(training_optimizer("adam-6blocks").family, OptimizerFamily::adam);
  EXPECT_EQ(training_optimizer("adam-1e-4-6blocks").name, "Adam with learning rate 0.0001, 6 blocks");
  EXPECT_EQ(training_optimizer("adam-1e-4-6blocks").family, OptimizerFamily::adam);
  EXPECT_EQ(training_optimizer("adam-1e-4x").family, OptimizerFamily::unknown);
  EXPECT_EQ(training_optimizer("md-two-1.1-2-4blocks").p.size(), 2u);
  EXPECT_EQ(training_optimizer("md-2").blocks, 3);
  for (const char* unknown :
       {"md-1.1-6", "md-1.1-manyblocks", "md-1.1-0blocks", "md-1.1-sixblocks", "blocks"})
    EXPECT_EQ(training_optimizer(unknown).family, OptimizerFamily::unknown) << unknown;
}

// Differences 1.2, 2 and 2 with weights 2.5, 1 and 1.5: 1.6 points over all sizes.
TEST(ImdbDepth, TheClaimIsJudgedOverAllSizes) {
  const std::string held = made_up_depth_records(0.02).result().details.at(0);
  EXPECT_TRUE(held.starts_with(
      "P1's claim that ℓ1.1 mirror descent generalizes better than gradient descent holds over 3, 4 and 6 blocks together and with P1's learning rates: over independent seeds its best test accuracy is 1.60 points higher (95 % interval 1."))
      << held;
  expect_conclusion(
      made_up_depth_records(0.02),
      "At 6 blocks alone it is 2.00 points higher (95 % interval 1.77 to 2.23) at the best epoch, over 3 "
      "and 3 seeds. At 4 blocks alone it is 2.00 points");
  expect_conclusion(made_up_depth_records(-0.05), "is contradicted over 3, 4 and 6 blocks together");
  expect_conclusion(made_up_depth_records(-0.012), "is not decided over 3, 4 and 6 blocks together");
  DepthRecords late = made_up_depth_records(0.02);
  for (TrainingRecord& record : late.deep)
    if (record.config.starts_with("md-2")) *record.last_ten_test += 0.032;
  expect_conclusion(
      late, "by the best epoch of a run, which P1 reports, and is not decided by its last ten epochs");
}

TEST(ImdbDepth, TheConclusionHasTheVerdictsAlone) {
  const std::string text = made_up_depth_records(0.02).result().conclusion;
  EXPECT_TRUE(text.starts_with(
      "P1's claim that ℓ1.1 mirror descent generalizes better than gradient descent holds over 3, 4 and 6 blocks together and with P1's learning rates: its best test accuracy is 1.60 points higher (95 % interval 1."))
      << text;
  for (const char* part :
       {"it selects pivotal words better at 6 blocks holds.", "it has fewer large weights holds at 6 blocks",
        "Adam generalizes better than ℓ1.1 mirror descent at 6 blocks, over 2 seeds."})
    EXPECT_NE(text.find(part), std::string::npos) << text << "\nlacks: " << part;
  EXPECT_LT(text.size(), 700u) << text;
}

TEST(ImdbDepth, PartsOfThePlanAreEnough) {
  DepthRecords records = made_up_depth_records(0.02);
  erase_config(records, "md-2-4blocks");
  expect_conclusion(records, "holds over 3 and 6 blocks together");
  expect_conclusion(
      records, "At 4 blocks alone nothing can be said: 2 trainings and 0 trainings of the two have ended.");
  erase_config(records, "adam-6blocks");
  expect_conclusion(records, "At 6 blocks there is no Adam to compare with yet.");
  records.shallow.clear();
  expect_conclusion(records, "holds at 6 blocks and with P1's learning rates");
  std::erase_if(records.deep, [](const TrainingRecord& record) { return record.seed > 1; });
  expect_conclusion(records, "cannot be judged: one training of each has ended, at 6 blocks.");
  erase_config(records, "md-1.1-6blocks");
  expect_conclusion(
      records,
      "cannot be judged in deeper networks: neither at 4 nor at 6 blocks have trainings of both "
      "ended.\nAt 6 blocks there is no Adam to compare with yet. None of the");
  for (TrainingRecord& record : records.deep) record.status = RecordStatus::unfinished;
  const ExperimentResult begun = records.result();
  EXPECT_FALSE(begun.findings.empty());
  for (const Figure& figure : begun.figures) EXPECT_NO_THROW(figure.validate()) << figure.id;
  for (const NamedTable& one : begun.tables) EXPECT_NO_THROW(one.table.validate()) << one.id;
}

// Where Adam collapses with its learning rate of 3 blocks, a smaller one is compared.
TEST(ImdbDepth, AdamMayHaveAnotherRate) {
  DepthRecords records = made_up_depth_records(0.02);
  records.add("adam-1e-4", 6, 0.846, 2);
  expect_conclusion(records, "At 6 blocks Adam, with its learning rate of 3 blocks, generalizes better");
  expect_conclusion(
      records,
      "At 6 blocks Adam with learning rate 0.0001 generalizes better than ℓ1.1 mirror descent: over 2 "
      "seeds its best test accuracy is 1.65 points higher");
  for (const char* run : {"adam-6blocks-s1", "adam-6blocks-s2"})
    records.run(run).status = RecordStatus::unfinished;
  EXPECT_EQ(whole_conclusion(records).find("learning rate of 3 blocks"), std::string::npos);
  const ExperimentResult result = records.result();
  const Table& sizes = depth_table(result, "sizes");
  ASSERT_EQ(sizes.rows.size(), 8u);
  EXPECT_EQ(sizes.rows[7][0], "Adam with learning rate 0.0001");
}

TEST(ImdbDepth, PublishedNumbersHaveVerdicts) {
  const ExperimentResult result = made_up_depth_records(0.0157).result();
  EXPECT_EQ(judge(test::named(result, "best test accuracy, ℓ1.1 mirror descent, 6 blocks")),
            Verdict::reproduced);
  EXPECT_EQ(judge(test::named(result, "best test accuracy, ℓ3 mirror descent, 4 blocks")),
            Verdict::reproduced);
  EXPECT_EQ(judge(test::named(result, "epochs to 99.5 % training accuracy, gradient descent (ℓ2), 6 blocks")),
            Verdict::differs);
  EXPECT_NE(test::named(result, "test accuracy of the last epoch, ℓ1.1 mirror descent, 6 blocks")
                .note.find("one of the ten published trainings collapsed"),
            std::string::npos);
  // P1's deviation of epochs is 298.6, because of the collapse: four epochs are within it.
  EXPECT_NE(judge(test::named(result, "epochs to 99.5 % training accuracy, ℓ1.1 mirror descent, 6 blocks")),
            Verdict::differs);
  EXPECT_EQ(judge(test::named(result, "minus gradient descent (ℓ2), 6 blocks, points")), Verdict::reproduced);
  // P1's over all sizes: 1.81, 2.31 and 1.54 with equal weights, its counts being equal.
  EXPECT_NEAR(*test::named(result, "3, 4 and 6 blocks together").published, (1.81 + 2.31 + 1.54) / 3, 1e-12);
  EXPECT_EQ(judge(test::named(result, "weights of K above 0.06, ℓ1.1 mirror descent, 6 blocks")),
            Verdict::reproduced);
  EXPECT_EQ(judge(test::named(result, "weights of Q above 0.06, gradient descent (ℓ2), 6 blocks")),
            Verdict::differs);
  EXPECT_EQ(judge(test::named(result, "token-selection score, ℓ1.1")), Verdict::reproduced);
  // Those of 3 blocks are p1-imdb's.
  EXPECT_THROW(test::named(result, "best test accuracy, ℓ1.1 mirror descent, %"), std::runtime_error);
  EXPECT_EQ(judge(test::named(result, "best test accuracy in %, Adam, 6 blocks")), Verdict::unpublished);
}

TEST(ImdbDepth, TheTableHasEverySizeWithItsSeeds) {
  const ExperimentResult result = made_up_depth_records(0.02).result();
  const Table& sizes = depth_table(result, "sizes");
  ASSERT_EQ(sizes.rows.size(), 7u);
  EXPECT_EQ(sizes.rows[0], (std::vector<std::string>{"ℓ1.1 mirror descent", "ours", "83.00 ± 0.09 (5)",
                                                     "83.05 ± 0.64 (2)", "83.00 ± 0.25 (3)"}));
  EXPECT_EQ(sizes.rows[1], (std::vector<std::string>{"ℓ1.1 mirror descent", "P1", "83.47 ± 0.06 (10)",
                                                     "83.36 ± 0.09 (10)", "82.57 ± 0.11 (10)"}));
  EXPECT_EQ(sizes.rows[6][3], "–");  // Adam at 4 blocks
  const Table& differences = depth_table(result, "differences");
  EXPECT_EQ(differences.rows[3][2], "3, 4 and 6 together");
  EXPECT_EQ(differences.rows[3][3], "+1.60");
  EXPECT_EQ(differences.rows[3][5], "16.0");  // 20 trainings, 3 sizes, 1 difference
  EXPECT_EQ(differences.rows[3][7], "higher");
  EXPECT_EQ(depth_table(result, "trainings").rows.size(), 32u);
  for (const NamedTable& one : result.tables) EXPECT_NO_THROW(one.table.validate()) << one.id;
  for (const Figure& figure : result.figures) EXPECT_NO_THROW(figure.validate()) << figure.id;
  EXPECT_EQ(result.figures.size(), 4u);
}

TEST(ImdbDepth, EveryCollapseIsNamed) {
  DepthRecords records = made_up_depth_records(0.02);
  expect_conclusion(records, "None of the 32 trainings collapsed; in P1 one of ten did");
  EXPECT_TRUE(std::ranges::none_of(records.result().tables,
                                   [](const NamedTable& one) { return one.id == "collapses"; }));
  TrainingRecord& fallen = records.run("md-1.1-6blocks-s2");
  fallen.last_test = 0.5;
  records.run("md-2-6blocks-s1").status = RecordStatus::diverged;
  TrainingRecord& stuck = records.run("md-3-4blocks-s1");
  stuck.best_test = stuck.last_test = 0.503;
  EXPECT_FALSE(collapse_of(stuck));  // after four epochs nothing is lost yet
  stuck.epochs = 12;
  EXPECT_TRUE(collapse_of(stuck));
  // Ten points below the best are scatter of a long training, a little more is not.
  TrainingRecord close = fallen;
  close.best_test = 0.8;
  close.last_test = 0.7001;
  EXPECT_FALSE(collapse_of(close));
  close.last_test = 0.699;
  EXPECT_TRUE(collapse_of(close));
  expect_conclusion(records,
                    "3 of the 32 trainings collapsed: md-3-4blocks-s1 (never above chance: 50.3 % at best), "
                    "md-1.1-6blocks-s2 (from 83.1 % in epoch 3 to 50.0 % in epoch 4), md-2-6blocks-s1 "
                    "(diverged after 4 epochs); in P1 one of ten did");
  // Where the curve has it, the epoch of the fall is named, and the curve is in a figure.
  fallen.curve.back().test_accuracy = 0.5;
  fallen.curve.push_back(fallen.curve.back());
  fallen.epochs = fallen.curve.back().epoch = 5;
  expect_conclusion(records, "(from 83.1 % in epoch 3 to 50.0 % in epoch 4, and 50.0 % in epoch 5)");
  expect_conclusion(records, "1 of 3 trainings of ℓ1.1 mirror descent, 6 blocks, collapsed.");
  EXPECT_TRUE(std::ranges::any_of(records.result().figures, [](const Figure& figure) {
    return std::ranges::any_of(figure.series,
                               [](const Series& one) { return one.name == "md-1.1-6blocks-s2, collapsed"; });
  }));
  const Table table = depth_table(records.result(), "collapses");
  ASSERT_EQ(table.rows.size(), 3u);
  EXPECT_EQ(table.rows[1].back(), "yes");
  EXPECT_EQ(table.rows[2].back(), "no");
}

// A collapse widens every interval, so that the page says what is without it.
TEST(ImdbDepth, WhatIsWithoutCollapsesIsSaid) {
  DepthRecords records = made_up_depth_records(0.02);
  expect_conclusion(records, "points higher");
  EXPECT_EQ(whole_conclusion(records).find("Without the trainings"), std::string::npos);
  TrainingRecord& fallen = records.run("md-1.1-6blocks-s1");
  fallen.last_test = fallen.last_ten_test = 0.5;
  // Weights 2.5, 1 and 6/5, and differences as before: 1.2, 2 and 2 points.
  expect_conclusion(records, "Without the trainings that collapsed these are 1.57 points higher");
  expect_conclusion(records, "and is not decided by its last ten epochs");
}

// A mirror descent that was stopped after its best epoch counts, and the page says which and why; Adam, whose best
// epochs come later, and one that was stopped early do not.
TEST(ImdbDepth, TrainingsThatWereStoppedLateCount) {
  DepthRecords records = made_up_depth_records(0.02);
  EXPECT_EQ(records.result().remarks.size(), 9u);
  const auto stop = [&](const char* run, double accuracy) {
    TrainingRecord& record = records.run(run);
    record.status = RecordStatus::unfinished;
    record.train_accuracy = accuracy;
    record.epochs_to_stop.reset();
    record.score.reset();
  };
  stop("md-3-6blocks-s1", 0.9801);
  stop("md-3-6blocks-s2", 0.9799);
  stop("adam-6blocks-s1", 0.99);
  const ExperimentResult result = records.result();
  const Table& sizes = depth_table(result, "sizes");
  const auto row = [&](std::string_view optimizer) {
    return *std::ranges::find_if(sizes.rows, [&](const auto& cells) { return cells[0] == optimizer; });
  };
  EXPECT_EQ(row("ℓ3 mirror descent").back(), "80.60 (1)*");
  EXPECT_TRUE(sizes.title.ends_with("* Some or all of these were cut off before 99.5 % training accuracy"));
  EXPECT_EQ(row("Adam").back(), "85.10 (1)");
  ASSERT_EQ(result.remarks.size(), 10u);
  EXPECT_NE(result.remarks[8].find("in no mean: md-3-6blocks-s2 (unfinished after 4 epochs"),
            std::string::npos)
      << result.remarks[8];
  EXPECT_EQ(result.remarks[8].find("md-3-6blocks-s1"), std::string::npos) << result.remarks[8];
  // Made-up trainings are best in their third epoch, at 97 % training accuracy: 5 + 5 + 3 + 2 + 2 + 2 + 3 + 3.
  EXPECT_NE(
      result.remarks[9].find(
          "Cut off before 99.5 % training accuracy: md-3-6blocks-s1 (4 epochs, 98.0 % training accuracy). Mirror descents that got to 98 % count"),
      std::string::npos)
      << result.remarks[9];
  EXPECT_NE(
      result.remarks[9].find(
          "in the 25 other trainings of mirror descent the best epoch came at 97.0 % training accuracy or below."),
      std::string::npos)
      << result.remarks[9];
  // Counts of large weights come from the shares of the last epoch: 0.05 of 6 x 384 x 384.
  TrainingRecord& late = records.run("md-3-6blocks-s1");
  for (MapRecord& map : late.maps) map.above.reset();
  const DepthStudy study(records.deep, records.shallow);
  EXPECT_EQ(study.group("md-3", 6)->runs.at(0)->maps[1].above, 44237);
  // Without a test accuracy there is nothing to count.
  const std::optional<double> best = late.best_test;
  late.best_test.reset();
  EXPECT_EQ(records.result().remarks.size(), 9u);
  late.best_test = best;
  // A training that collapsed counts only if it came to its end.
  records.run("md-3-6blocks-s1").last_test = 0.5;
  EXPECT_EQ(records.result().remarks.size(), 9u);
}

// What is built in.
TEST(ImdbDepth, TheRecordsOfTheRepositoryMakeAPage) {
  ASSERT_TRUE(imdb_depth_records().has_runs());
  const ExperimentResult& result = test::quick_result("p1-imdb-depth");
  EXPECT_FALSE(result.findings.empty());
  EXPECT_FALSE(result.conclusion.empty());
  for (const Figure& figure : result.figures) EXPECT_NO_THROW(figure.validate()) << figure.id;
  for (const NamedTable& one : result.tables) EXPECT_NO_THROW(one.table.validate()) << one.id;
}

}  // namespace
}  // namespace attmirror
