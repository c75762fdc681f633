// The experiment p1-imdb on made-up records, whose outcome is known.
#include "papers/imdb_study.hpp"
#include "papers/result_of.hpp"
#include "papers/training_views.hpp"
#include "support/paths.hpp"
#include <attmirror/base/error.hpp>

#include <algorithm>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

namespace attmirror {
namespace {

const std::vector<TrainingRecord>& made_up_records() {
  static const std::vector<TrainingRecord> records = [] {
    const auto text = [](const char* name) {
      std::ifstream file(test::fixture(std::string("records/") + name));
      std::stringstream stream;
      stream << file.rdbuf();
      return stream.str();
    };
    const std::string runs = text("runs.csv"), curves = text("curves.csv");
    return read_records({.runs = runs, .curves = curves, .configs = {"adam", "md-1.1", "md-2", "md-3"}});
  }();
  return records;
}

// All best and last-ten accuracies of one configuration changed by so much.
std::vector<TrainingRecord> shifted(const char* config, double best, double last_ten) {
  std::vector<TrainingRecord> records = made_up_records();
  for (TrainingRecord& record : records) {
    if (record.config != config || !record.is_comparable()) continue;
    record.best_test = *record.best_test + best;
    record.last_ten_test = *record.last_ten_test + last_ten;
  }
  return records;
}

const Table& table_named(const ExperimentResult& result, std::string_view id) {
  return std::ranges::find(result.tables, id, &NamedTable::id)->table;
}

TEST(Imdb, GroupsHaveWhatCanBeCompared) {
  const std::vector<TrainingGroup> groups = training_groups(made_up_records());
  ASSERT_EQ(groups.size(), 4u);
  EXPECT_EQ(groups[0].config, "md-1.1");
  EXPECT_EQ(groups[1].config, "md-2");
  EXPECT_EQ(groups[1].runs.size(), 3u);
  EXPECT_EQ(groups[1].others.size(), 1u);  // failed
  EXPECT_EQ(groups[2].runs.size(), 2u);
  EXPECT_EQ(groups[2].others.size(), 1u);  // diverged
  EXPECT_EQ(groups[3].name, "Adam");
  EXPECT_NEAR(groups[0].percent(&TrainingRecord::best_test).mean, (83.48 + 83.468 + 83.536) / 3, 1e-10);
  EXPECT_THROW(group_of(groups, "muon"), Error);
}

TEST(Imdb, VerdictsFollowFromTheNumbers) {
  const ExperimentResult result = imdb_result(made_up_records());
  EXPECT_EQ(judge(test::named(result, "best test accuracy, ℓ1.1 mirror descent")), Verdict::reproduced);
  EXPECT_EQ(judge(test::named(result, "best test accuracy, gradient descent")), Verdict::reproduced);
  EXPECT_EQ(judge(test::named(result, "test accuracy of the last epoch, ℓ1.1 mirror descent")),
            Verdict::differs);
  EXPECT_EQ(judge(test::named(result, "epochs to 99.5 % training accuracy, ℓ1.1")), Verdict::differs);
  // No training of p = 3 got there, so there is nothing to compare.
  const Finding& epochs = test::named(result, "epochs to 99.5 % training accuracy, ℓ3");
  EXPECT_EQ(judge(epochs), Verdict::unpublished);
  EXPECT_EQ(epochs.note, "published: 161.7; 0 of 2 trainings got there before their end");
  EXPECT_EQ(judge(test::named(result, "test accuracy of the last epoch, ℓ3")), Verdict::unpublished);
  EXPECT_EQ(judge(test::named(result, "best test accuracy, ℓ1.1 mirror descent minus")), Verdict::reproduced);
  EXPECT_EQ(judge(test::named(imdb_result(shifted("md-1.1", 0.03, 0)), "best test accuracy, ℓ1.1 mirror")),
            Verdict::differs);
}

TEST(Imdb, PublishedNumbersArePrintedOnes) {
  const ExperimentResult result = imdb_result(made_up_records());
  for (const Finding& finding : result.findings)
    EXPECT_TRUE(!finding.published || finding.source == ReferenceSource::printed) << finding.quantity;
}

TEST(Imdb, TheClaimIsJudgedByWelch) {
  const auto conclusion = [](const std::vector<TrainingRecord>& records) {
    return imdb_result(records).conclusion;
  };
  const std::string held = conclusion(made_up_records());
  EXPECT_TRUE(held.starts_with(
      "P1's claim that ℓ1.1 mirror descent generalizes better than gradient descent holds at this size and with P1's "
      "learning rates: over 3 independent seeds each, its best test accuracy is 1.83 points higher (95 % interval 1."))
      << held;
  EXPECT_NE(
      held.find(
          "Adam, which P1 does not have on IMDb, with a learning rate chosen on held-out reviews, generalizes better than ℓ1.1 mirror descent: over 3 seeds"),
      std::string::npos)
      << held;
  EXPECT_NE(conclusion(shifted("md-2", 0.05, 0.05))
                .find("is contradicted at this size and with P1's learning rates: "),
            std::string::npos);
  EXPECT_NE(conclusion(shifted("md-2", 0.0183, 0.0185))
                .find("is not decided at this size and with P1's learning rates: "),
            std::string::npos);
  EXPECT_NE(
      conclusion(shifted("md-2", 0, 0.05))
          .find(
              "holds at this size and with P1's learning rates, by the best epoch of a run, which P1 reports, and is contradicted by its "
              "last ten epochs: "),
      std::string::npos);
  EXPECT_EQ(held.find("has the highest best test accuracy"),
            std::string::npos);  // Adam's sentence has said so
  EXPECT_NE(conclusion(shifted("md-3", 0.1, 0))
                .find(" ℓ3 mirror descent has the highest best test accuracy: over 2 seeds it is "),
            std::string::npos);
  EXPECT_NE(conclusion(shifted("adam", -0.05, -0.05)).find("generalizes worse than"), std::string::npos);
  EXPECT_NE(conclusion(shifted("adam", -0.0147, -0.0139)).find("cannot be told from"), std::string::npos);
  std::vector<TrainingRecord> few = made_up_records();
  std::erase_if(few, [](const TrainingRecord& record) { return record.config == "md-2" && record.seed > 1; });
  EXPECT_NE(conclusion(few).find("cannot be judged: 3 trainings and 1 training"), std::string::npos);
  std::erase_if(few, [](const TrainingRecord& record) { return record.config == "md-2"; });
  EXPECT_THROW(imdb_result(few), Error);
  // Nothing has ended yet.
  std::vector<TrainingRecord> begun = made_up_records();
  for (TrainingRecord& record : begun) record.status = RecordStatus::unfinished;
  EXPECT_TRUE(imdb_result(begun).figures.empty());
  EXPECT_NE(conclusion(begun).find("cannot be judged: 0 trainings and 0 trainings"), std::string::npos);
}

TEST(Imdb, EveryTrainingIsShown) {
  const ExperimentResult result = imdb_result(made_up_records());
  EXPECT_EQ(table_named(result, "trainings").rows.size(), made_up_records().size());
  const auto is_tuning = [](const TrainingRecord& record) { return record.role == TrainingRole::tuning; };
  EXPECT_EQ(table_named(result, "weights").rows.size() +
                static_cast<std::size_t>(std::ranges::count_if(made_up_records(), is_tuning)),
            made_up_records().size());
  EXPECT_EQ(table_named(result, "optimizers").rows.size(), 4u);
  EXPECT_EQ(table_named(result, "optimizers").rows[1][1], "3 of 4");
  EXPECT_EQ(table_named(result, "optimizers").rows[2][6], "0 of 2 got there");
  EXPECT_EQ(table_named(result, "comparisons").rows.size(), 9u);
  EXPECT_EQ(table_named(result, "comparisons").rows[0][6], "lower");
  const Table& rates = table_named(result, "learning-rates");
  ASSERT_EQ(rates.rows.size(), 4u);
  EXPECT_EQ(rates.rows[2][4], "yes");
  EXPECT_EQ(rates.rows[3][3], "diverged");
  const Table& repeats = table_named(result, "repeats");
  ASSERT_EQ(repeats.rows.size(), 1u);
  EXPECT_EQ(repeats.rows[0][5], "within the noise of seeds");
  for (const NamedTable& one : result.tables) EXPECT_NO_THROW(one.table.validate()) << one.id;
  EXPECT_TRUE(std::ranges::any_of(result.remarks, [](const std::string& remark) {
    return remark.find("md-2-s4 (failed after") != std::string::npos &&
           remark.find("), md-3-s3 (diverged after") != std::string::npos;
  }));
}

TEST(Imdb, SaysWhichTrainingsStoodAtChance) {
  std::vector<TrainingRecord> records = made_up_records();
  for (TrainingRecord& record : records)
    if (record.run == "md-2-s1" || record.run == "md-2-s2") {
      record.status = RecordStatus::unfinished;
      record.epochs = 7;
      record.last_test = record.run == "md-2-s1" ? 0.5004 : 0.8125;
    }
  const std::string remark = imdb_result(records).remarks.back();
  EXPECT_NE(
      remark.find(
          "md-2-s1 (unfinished after 7 epochs, with 50.0 % of the test reviews right, which is chance)"),
      std::string::npos)
      << remark;
  EXPECT_NE(remark.find("md-2-s2 (unfinished after 7 epochs, with 81.2 % of the test reviews right)"),
            std::string::npos)
      << remark;
}

TEST(Imdb, FiguresShowBandsAndPoints) {
  const ExperimentResult result = imdb_result(made_up_records());
  ASSERT_EQ(result.figures.size(), 2u);
  for (const Figure& figure : result.figures) EXPECT_NO_THROW(figure.validate()) << figure.id;
  const Series& band = result.figures[0].series.at(0);
  ASSERT_EQ(band.x.size(), 6u);
  for (std::size_t i = 0; i < band.x.size(); ++i) {
    EXPECT_LE(band.low[i], band.y[i]);
    EXPECT_LE(band.y[i], band.high[i]);
  }
  EXPECT_EQ(result.figures[1].series.at(0).x.size(), 3u);
  EXPECT_TRUE(result.figures[0].caption.starts_with("Adam has the highest mean, 84.9"))
      << result.figures[0].caption;
  EXPECT_NE(result.figures[1].caption.find("rank correlation of sparsity and accuracy is +0."),
            std::string::npos)
      << result.figures[1].caption;
}

}  // namespace
}  // namespace attmirror
