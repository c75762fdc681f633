// What p1-imdb-depth says of token selection and of weights, on made-up records with known winners.
#include "papers/depth_records.hpp"
#include "papers/imdb_depth_selection.hpp"
#include "papers/recorded_studies.hpp"

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

TEST(ImdbDepth, SelectionAndSparsityAreJudged) {
  const Table table = depth_table(made_up_depth_records(0.02).result(), "six-blocks");
  EXPECT_EQ(table.rows[0][0], "token-selection score");
  EXPECT_EQ(table.rows[0][1], "0.4387");
  EXPECT_EQ(table.rows[4][0], "largest weight of K");
  EXPECT_EQ(table.rows[4][2], "0.26");
  EXPECT_EQ(table.rows[1],
            (std::vector<std::string>{"weights of K above 0.06", "18206", "27224", "18200 ± 248 (3)",
                                      "27200 ± 248 (3)", "-9000", "-9227 to -8773", "lower"}));
  expect_conclusion(made_up_depth_records(0.02),
                    "selects pivotal words better at 6 blocks holds: over 3 and 3 seeds its "
                    "mean score is 0.440 against 0.310 (95 % interval of the difference 0.107 to 0.153).");
  expect_conclusion(
      made_up_depth_records(0.02),
      "fewer weights above 0.06 at 6 blocks holds: on average 18200 against 27200 in K, 18200 against 27200 in Q");
  DepthRecords mixed = made_up_depth_records(0.02);
  for (const char* run : {"md-1.1-6blocks-s1", "md-1.1-6blocks-s2", "md-1.1-6blocks-s3"}) {
    mixed.run(run).maps[1].above = *mixed.run(run).maps[1].above + 9000;
    mixed.run(run).maps[2].above = *mixed.run(run).maps[2].above + 19'000;
    mixed.run(run).score = *mixed.run(run).score - 0.13;
  }
  expect_conclusion(mixed,
                    "above 0.06 at 6 blocks holds for K and is contradicted for V and is open for Q: ");
  expect_conclusion(mixed, "selects pivotal words better at 6 blocks is not decided: ");
}

// P1 prints accuracies, epochs, scores and counts; the largest weight of K was read off a figure.
TEST(ImdbDepth, FindingsSayWhereThePublishedNumberIsFrom) {
  std::size_t printed = 0, read_off = 0;
  const ExperimentResult result = made_up_depth_records(0.02).result();
  for (const Finding& finding : result.findings) {
    if (!finding.published) continue;
    const bool is_largest = finding.quantity.starts_with("largest weight of K");
    EXPECT_EQ(finding.source, is_largest ? ReferenceSource::figure : ReferenceSource::printed)
        << finding.quantity;
    ++(is_largest ? read_off : printed);
  }
  EXPECT_EQ(read_off, 2u);
  EXPECT_GT(printed, 10u);
}

TEST(ImdbDepth, EveryScoreIsDrawn) {
  DepthRecords records = made_up_depth_records(0.02);
  records.run("md-3-4blocks-s2").score.reset();
  records.run("md-2-6blocks-s3").status = RecordStatus::unfinished;
  records.run("md-2-6blocks-s3").train_accuracy = 0.9;  // stopped early
  const ExperimentResult result = records.result();
  const auto figure = std::ranges::find(result.figures, "scores", &Figure::id);
  ASSERT_NE(figure, result.figures.end());
  EXPECT_NO_THROW(figure->validate());
  // There is no network of 3.5 blocks.
  for (const char* id : {"scores", "sizes"})
    EXPECT_TRUE(std::ranges::find(result.figures, id, &Figure::id)->x.whole) << id;
  ASSERT_EQ(figure->series.size(), 6u);
  std::size_t points = 0;
  for (std::size_t i = 0; i < 4; ++i) points += figure->series[i].y.size();
  EXPECT_EQ(points, 30u);  // of 32 trainings
  EXPECT_EQ(figure->series[4].y, std::vector<double>{0.4387});
  EXPECT_EQ(figure->series[5].name, "P1's network, gradient descent (ℓ2)");
  EXPECT_TRUE(figure->caption.starts_with(
      "At 6 blocks, scores have a standard deviation of 0.01 over the seeds of ℓ1.1 mirror descent"))
      << figure->caption;
  EXPECT_NE(figure->caption.find("P1's two networks differ by 0.13."), std::string::npos) << figure->caption;
  for (auto* list : {&records.deep, &records.shallow})
    for (TrainingRecord& record : *list) record.score.reset();
  for (const Figure& one : records.result().figures) EXPECT_NE(one.id, "scores");
}

// Ten sentences, one of them dropped: by their means over seeds l1.1 wins 7, gradient descent 1, and 1 is a tie. Of 8
// that are decided, 1 or fewer have the probability (1 + 8) / 2^8, twice which is 0.070.
DepthRecords with_sentences() {
  DepthRecords records = made_up_depth_records(0.02);
  // The first is won on average, though two of three seeds lose it.
  records.score_sentences("md-1.1", 6,
                          {{0.9, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.1, 1, -1},
                           {0.1, 0.6, 0.6, 0.6, 0.6, 0.6, 0.6, 0.1, 1, -1},
                           {0.1, 0.7, 0.7, 0.7, 0.7, 0.7, 0.7, 0.1, 1, -1}});
  const std::vector<double> second{0.2, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.2, 1, -1};
  records.score_sentences("md-2", 6, {second, second, second});
  // Adam wins the eight that are decided, by 2 / 2^8 = 0.0078.
  const std::vector<double> best{1, 1, 1, 1, 1, 1, 1, 1, 1, -1};
  records.score_sentences("adam", 6, {best, best});
  return records;
}

TEST(ImdbDepth, SentencesHaveWinners) {
  const DepthRecords records = with_sentences();
  const DepthStudy study(records.deep, records.shallow);
  const std::optional<SignTest> wins = sentence_wins(study, 6, "md-1.1", "md-2");
  ASSERT_TRUE(wins);
  EXPECT_EQ(wins->first, 7);
  EXPECT_EQ(wins->second, 1);
  EXPECT_EQ(wins->ties, 1);
  EXPECT_EQ(wins->p, 9.0 / 128);
  EXPECT_FALSE(sentence_wins(study, 4, "md-1.1", "md-2"));
  expect_conclusion(
      records,
      "Of P1's sentences its networks win 7 and those of gradient descent 1 (sign test, p = 0.07, about "
      "these networks alone), and by words, without special tokens, 7 and 1 (p = 0.07).");
  const ExperimentResult result = records.result();
  const Table& won = depth_table(result, "sentences-won");
  ASSERT_EQ(won.rows.size(), 2u);  // nothing at other sizes, and nothing of l3
  EXPECT_EQ(won.rows[0], (std::vector<std::string>{"ℓ1.1 mirror descent against gradient descent (ℓ2)", "6",
                                                   "7", "1", "1", "0.07", "7", "1", "1", "0.07", "+0.130",
                                                   "+0.107 to +0.153", "9.1e-05"}));
  EXPECT_EQ(won.rows[1][2], "8");
  EXPECT_EQ(won.rows[1][5], "0.0078");
  const Table& sentences = depth_table(result, "sentences");
  ASSERT_EQ(sentences.rows.size(), 10u);
  EXPECT_EQ(sentences.rows[0],
            (std::vector<std::string>{"1", "word1", "0.367", "0.200", "–", "1.000", "–", "–", "ℓ1.1"}));
  EXPECT_EQ(sentences.rows[7].back(), "ℓ2");
  EXPECT_EQ(sentences.rows[8].back(), "tie");
  EXPECT_EQ(sentences.rows[9].back(), "–");
  for (const NamedTable& one : result.tables) EXPECT_NO_THROW(one.table.validate()) << one.id;
}

TEST(ImdbDepth, EverySizeHasItsWinners) {
  DepthRecords records = with_sentences();
  records.score_sentences("md-1.1", 3, {{0.5, 0.5, 0.5}, {0.5, 0.5, 0.5}});
  records.score_sentences("md-2", 3, {{0.6, 0.6, 0.6}});  // the one that has sentences
  const ExperimentResult result = records.result();
  const Table& won = depth_table(result, "sentences-won");
  ASSERT_EQ(won.rows.size(), 3u);
  EXPECT_EQ(won.rows[0][1], "3");
  EXPECT_EQ(won.rows[0][2], "0");
  EXPECT_EQ(won.rows[0][3], "3");
  EXPECT_EQ(won.rows[0][5], "0.25");
}

// Of the two scores on reviews, one may decide and the other not.
TEST(ImdbDepth, ReviewsAreJudgedBesideSentences) {
  DepthRecords records = made_up_depth_records(0.02);
  EXPECT_EQ(whole_conclusion(records).find("On test reviews"), std::string::npos);
  records.score_reviews("md-1.1", 6, 0.3, 1.5, 0.2);
  records.score_reviews("md-2", 6, 0.2, 1.56, 0.2);
  // Moves are those of scores: on average 0.04 and -0.09, a tenth of which goes to the score.
  expect_conclusion(
      records,
      "On test reviews the claim holds: sentiment words have a mean score of 0.304 against 0.191, and 1.54 "
      "against 1.47 times the attention of an average word.\n");
  const ExperimentResult result = records.result();
  const Table& six = depth_table(result, "six-blocks");
  EXPECT_EQ(six.rows[1][0], "score on reviews");
  EXPECT_EQ(six.rows[3][0], "reviews with a listed word on top, %");
  EXPECT_EQ(six.rows[3][3], "20.4 ± 0.2 (3)");
  const Table& all = depth_table(result, "selection");
  const auto six_blocks = std::ranges::find_if(
      all.rows, [](const auto& row) { return row[0] == "ℓ1.1 mirror descent" && row[1] == "6"; });
  ASSERT_NE(six_blocks, all.rows.end());
  EXPECT_EQ((*six_blocks)[3], "0.4387");
  EXPECT_EQ((*six_blocks)[7], "0.304 ± 0.002");
  const auto rows = depth_table(result, "selection-differences").rows;
  const auto lift = std::ranges::find(rows, "lift on reviews", [](const auto& row) { return row[1]; });
  ASSERT_NE(lift, rows.end());
  EXPECT_EQ((*lift)[2], "6");
  EXPECT_EQ((*lift)[3], "+0.07");
  EXPECT_EQ(lift->back(), "higher");
  // Over all sizes: differences 0, 0 and 0.13 with weights 2.5, 1 and 1.5.
  EXPECT_EQ(rows[3][2], "3, 4 and 6 together");
  EXPECT_EQ(rows[3][3], "+0.039");
  records.add("adam-1e-4", 6, 0.846, 2);
  records.score_reviews("adam-1e-4", 6, 0.2, 7.895, 0.2);
  expect_conclusion(records, "1.47 (Adam with learning rate 0.0001: 7.90) times the attention");
  records.score_reviews("md-2", 6, 0.2, 1.73, 0.2);
  expect_conclusion(
      records,
      "1.64 (Adam with learning rate 0.0001: 7.90) times the attention of an average word, so that the two point in opposite directions.");
  records.score_reviews("md-2", 6, 0.2, 1.63, 0.2);
  expect_conclusion(records, "On test reviews the claim holds by the score and is not decided by the lift: ");
}

// Counts at equal accuracy are shares of all weights of a size, times these.
// Where the first training with a seed was not scored on reviews, the second one's numbers stand for it, and for
// nothing else.
TEST(ImdbDepth, ReviewScoresOfARepeatStandForThoseOfItsTraining) {
  DepthRecords records = made_up_depth_records(0.02);
  records.score_reviews("md-1.1", 6, 0.33, 1.3, 0.1);
  const auto remark = [](const DepthRecords& all) { return all.result().remarks.at(6); };
  EXPECT_NE(
      remark(records).find(
          "Of the trainings that count, 0 of 16 with 3 blocks, 0 of 6 with 4 blocks and 3 of 10 with 6 blocks were scored on reviews."),
      std::string::npos)
      << remark(records);
  TrainingRecord repeat = records.run("md-1.1-s2");
  repeat.run += "-repeat";
  repeat.role = TrainingRole::repeat;
  repeat.best_test = 0.5;
  repeat.review_score = 0.25;
  repeat.review_lift = 2.5;
  repeat.review_top = 0.75;
  records.shallow.push_back(repeat);
  const DepthStudy study(records.deep, records.shallow);
  EXPECT_EQ(study.scored_again, 1);
  const SampleSummary lift = study.group("md-1.1", 3)->numbers(&TrainingRecord::review_lift);
  EXPECT_EQ(lift.count, 1u);
  EXPECT_EQ(lift.mean, 2.5);
  EXPECT_EQ(study.group("md-1.1", 3)->runs.size(), 5u);
  EXPECT_EQ(study.group("md-1.1", 3)->runs[1]->best_test, 0.831);
  EXPECT_NE(
      remark(records).find(
          "1 of 16 with 3 blocks, 0 of 6 with 4 blocks and 3 of 10 with 6 blocks were scored on reviews; for 1 of them it was a second training with the same seed"),
      std::string::npos)
      << remark(records);
  // One that was stopped says nothing, and a training with scores of its own keeps them.
  records.shallow.back().status = RecordStatus::unfinished;
  EXPECT_EQ(DepthStudy(records.deep, records.shallow).scored_again, 0);
  records.shallow.back().status = RecordStatus::completed;
  records.run("md-1.1-s2").review_score = 0.5;
  EXPECT_EQ(DepthStudy(records.deep, records.shallow).scored_again, 0);
}

TEST(ImdbDepth, WeightsAreComparedAtTheEndAndAtEqualAccuracy) {
  DepthRecords records = made_up_depth_records(0.02);
  expect_conclusion(
      records,
      "27200 in V. All of these trainings ended at 99.6 % training accuracy, so these counts are at equal "
      "accuracy, too. Its Hoyer");
  for (TrainingRecord& record : records.deep)
    if (record.config == "md-2-6blocks") record.curve.back().train_accuracy = 0.9694;
  // In the third epoch of four: three quarters of 18200 and 27200.
  expect_conclusion(
      records,
      "At 97.0 % training accuracy, which all trainings of this size reached, the claim holds. Its Hoyer");
  expect_conclusion(
      records, " At 3 blocks the claim about large weights is not decided, at 4 blocks it is not decided.");
  const ExperimentResult result = records.result();
  const auto rows = depth_table(result, "weights-by-optimizer").rows;
  const auto first = std::ranges::find_if(
      rows, [](const auto& row) { return row[0] == "ℓ1.1 mirror descent" && row[1] == "6"; });
  ASSERT_LT(first + 2, rows.end());
  EXPECT_EQ(*first,
            (std::vector<std::string>{"ℓ1.1 mirror descent", "6", "at the end", "4.0 ± 0.0", "18200 ± 248",
                                      "18200 ± 248", "18200 ± 248", "0.300 ± 0.002", "0.300 ± 0.002",
                                      "0.300 ± 0.002", "0.340 ± 0.002", "0.340 ± 0.002", "0.340 ± 0.002"}));
  EXPECT_EQ((first + 1)->at(2), "at 97.0 %");
  EXPECT_EQ((first + 1)->at(3), "3.0 ± 0.0");
  EXPECT_EQ((first + 1)->at(4), "13650 ± 186");
  EXPECT_EQ((first + 1)->at(7), "0.225 ± 0.002");
  EXPECT_EQ((first + 1)->at(10), "0.260 ± 0.002");
  EXPECT_EQ(*(first + 2),
            (std::vector<std::string>{"ℓ1.1 mirror descent", "6", "P1, one network", "–", "18206", "13964",
                                      "7643", "0.70", "–", "–", "–", "–", "–"}));
  const Table& six = depth_table(result, "six-blocks");
  const auto equal = std::ranges::find(six.rows, "weights of K above 0.06 at 97.0 % training accuracy",
                                       [](const auto& row) { return row.front(); });
  ASSERT_NE(equal, six.rows.end());
  EXPECT_EQ((*equal)[3], "13650 ± 186 (3)");
  EXPECT_EQ((*equal)[5], "-6750");
  EXPECT_EQ(depth_table(result, "three-blocks").columns[1].name, "ℓ1.1");  // P1 shows nothing at 3 blocks
  // Adam and the smallest size are there, too.
  EXPECT_TRUE(std::ranges::any_of(
      rows, [](const auto& row) { return row[0] == "Adam" && row[1] == "6" && row[2] == "at 97.0 %"; }));
  EXPECT_TRUE(std::ranges::any_of(rows, [](const auto& row) {
    return row[0] == "ℓ3 mirror descent" && row[1] == "3" && row[2] == "at 99.6 %";
  }));
  // Curves of earlier studies have sparsity alone.
  for (TrainingRecord& record : records.deep)
    for (EpochRecord& epoch : record.curve) epoch.share = epoch.largest = {};
  const std::string text = whole_conclusion(records);
  EXPECT_EQ(text.find("which all trainings of this size reached"), std::string::npos) << text;
  EXPECT_NE(text.find("Its Hoyer sparsity of K, Q and V at 97.0 % training accuracy is higher"),
            std::string::npos)
      << text;
}

// Even attention has a score, too: the conclusion says of how many networks it is.
TEST(ImdbDepth, NetworksThatAttendEvenlyAreCounted) {
  DepthRecords records = made_up_depth_records(0.02);
  for (TrainingRecord& record : records.deep) record.attended_share = 0.95;
  EXPECT_EQ(whole_conclusion(records).find("evenly"), std::string::npos);
  records.run("md-1.1-6blocks-s2").attended_share = records.run("md-1.1-6blocks-s3").attended_share = 0.96;
  expect_conclusion(records, "at 6 blocks holds; 2 of its 3 networks attend almost evenly there.");
  expect_conclusion(
      records,
      "But 2 of 3 networks of ℓ1.1 mirror descent and 0 of 3 of gradient descent attend almost evenly, as "
      "if over more than 95 % of a sentence's tokens");
}

// Counts of the page at the end come from runs.csv, those at equal accuracy from shares in curves.csv.
TEST(ImdbDepth, SharesOfTheRepositoryGiveBackCounts) {
  for (const RecordTexts& texts : {imdb_records(), imdb_depth_records()})
    for (const TrainingRecord& record : read_records(texts))
      for (std::size_t map = 0; map < record.maps.size(); ++map)
        if (record.maps[map].above) {
          EXPECT_EQ(std::round(*record.curve.back().share[map] * training_optimizer(record.config).blocks *
                               384 * 384),
                    static_cast<double>(*record.maps[map].above))
              << record.run;
        }
}

// Gradient descent without its last epoch: 97 % is what all have reached, in the third.
TEST(ImdbDepth, SparsityIsComparedAtEqualTrainingAccuracy) {
  DepthRecords records = made_up_depth_records(0.02);
  expect_conclusion(records,
                    "Its Hoyer sparsity of K, Q and V at 99.6 % training accuracy is higher: 0.340 "
                    "against 0.250 (95 % interval of the difference 0.088 to 0.092).");
  for (TrainingRecord& record : records.deep)
    if (record.config == "md-2-6blocks") record.curve.back().train_accuracy = 0.9694;
  expect_conclusion(records, "at 97.0 % training accuracy is higher: ");
  for (TrainingRecord& record : records.deep)
    if (record.config == "md-2-6blocks") record.curve[2].train_accuracy = 0.9689;
  // 96.94 % is 96.9 % in steps of 0.1, where gradient descent is after the fourth epoch and the others after the third.
  expect_conclusion(records, "at 96.9 % training accuracy is higher: 0.260 against 0.250");
  // One that collapsed does not count.
  TrainingRecord& fallen = records.run("md-2-6blocks-s1");
  fallen.last_test = 0.5;
  for (EpochRecord& epoch : fallen.curve) epoch.train_accuracy = 0.5;
  expect_conclusion(records, "at 96.9 % training accuracy is higher: ");
}

}  // namespace
}  // namespace attmirror
