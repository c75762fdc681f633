// The experiment imdb-clean on made-up records: its conclusion is right whichever way the numbers fall.
#include "papers/clean_records.hpp"
#include "papers/recorded_studies.hpp"
#include "papers/result_of.hpp"

#include <algorithm>

#include <gtest/gtest.h>

namespace attmirror {
namespace {

using test::CleanRecords;
using test::made_up_clean_records;

ExperimentResult result_of(const CleanRecords& records) {
  return imdb_clean_result(records.list, test::made_up_speeds());
}

const Table& clean_table(const ExperimentResult& result, std::string_view id) {
  const auto found = std::ranges::find(result.tables, id, &NamedTable::id);
  if (found == result.tables.end()) throw std::runtime_error("no table " + std::string(id));
  return found->table;
}

// The row whose first cell is that.
const std::vector<std::string>& row_of(const Table& table, std::string_view first) {
  const auto found = std::ranges::find(table.rows, first, [](const auto& row) { return row.front(); });
  if (found == table.rows.end()) throw std::runtime_error("no row " + std::string(first));
  return *found;
}

void expect_says(const std::string& text, std::string_view part) {
  EXPECT_NE(text.find(part), std::string::npos) << text << "\nlacks: " << part;
}

bool any_remark(const ExperimentResult& result, std::string_view part) {
  return std::ranges::any_of(
      result.remarks, [&](const std::string& remark) { return remark.find(part) != std::string::npos; });
}

void erase_config(CleanRecords& records, std::string_view config) {
  std::erase_if(records.list, [&](const TrainingRecord& record) { return record.config == config; });
}

TEST(ImdbClean, AccuracyIsJudgedByWelch) {
  const std::string won = result_of(made_up_clean_records(0.9)).conclusion;
  EXPECT_TRUE(won.starts_with(
      "With every optimizer tuned alike, the best ℓp mirror descent is more accurate than the best other optimizer: normalized ℓ1.2 mirror descent with momentum has a mean test accuracy of 90.00 %, 2.00 points higher (95 % interval 1.77 to 2.23) than that of Muon with AdamW and 3.00 points higher (95 % interval 2.77 to 3.23) than that of AdamW."))
      << won;
  const std::string lost = result_of(made_up_clean_records(0.873)).conclusion;
  expect_says(lost, "the best ℓp mirror descent is less accurate than the best other optimizer: ");
  expect_says(lost, "0.70 points lower (95 % interval -0.93 to -0.47) than that of Muon with AdamW");
  expect_says(lost, "0.30 points higher (95 % interval 0.07 to 0.53) than that of AdamW.");
  const std::string open = result_of(made_up_clean_records(0.8805)).conclusion;
  expect_says(open, "cannot be told apart in accuracy: ");
  expect_says(open, "0.05 points higher (95 % interval -0.18 to 0.28)");
}

TEST(ImdbClean, CostsAreComparedWithTheBestOther) {
  // 95 % of AdamW's 0.87 is 0.8265. All are there after two epochs.
  expect_says(
      result_of(made_up_clean_records(0.9)).conclusion,
      "Against Muon with AdamW it needs less memory: 4.0 bytes of optimizer state per parameter (Muon with AdamW: 5.0, AdamW: 8.0), and in the one tuning run that won 2 epochs to 95 % of AdamW's final accuracy on held-out reviews (Muon with AdamW: 2, AdamW: 2).");
  CleanRecords slow = made_up_clean_records(0.9);
  for (TrainingRecord& record : slow.list) {
    if (record.config != "md-normalized-momentum-1.2") continue;
    if (record.role == TrainingRole::tuning) record.curve[1].validation_accuracy = 0.8;
    record.state_bytes = 12 * test::clean_parameters;
  }
  expect_says(result_of(slow).conclusion, "it needs more memory: 12.0 bytes");
  // Where nothing was measured, nothing is claimed.
  for (TrainingRecord& record : slow.list) record.state_bytes.reset();
  std::erase_if(slow.list, [](const TrainingRecord& record) { return record.role == TrainingRole::tuning; });
  expect_says(imdb_clean_result(slow.list, {}).conclusion,
              "What it costs in memory and epochs is not in the records.");
  // One that never gets there.
  CleanRecords weak = made_up_clean_records(0.82);
  erase_config(weak, "md-two-1.1-2");
  for (const char* config : {"md-1.1", "md-momentum-1.1", "md-normalized-1.1"}) erase_config(weak, config);
  expect_says(result_of(weak).conclusion, "no epoch that reaches 95 % of AdamW's final accuracy");
  EXPECT_EQ(
      row_of(clean_table(result_of(weak), "optimizers"), "normalized ℓ1.2 mirror descent with momentum")[5],
      "never");
}

// Settings chosen on blocks of neighbors are a study of their own, and the last sentence compares them.
TEST(ImdbClean, BlocksAreAComparisonOfTheirOwn) {
  CleanRecords records = made_up_clean_records(0.9);
  const std::string before = result_of(records).conclusion;
  EXPECT_EQ(before.find("blocks"), std::string::npos);
  records.add("adamw-blocks", 1e-4, 0.91, 0.17, 8 * test::clean_parameters);
  records.add("md-normalized-momentum-1.2-blocks", 0.005, 0.9, 0.5, 4 * test::clean_parameters);
  const ExperimentResult result = result_of(records);
  EXPECT_TRUE(result.conclusion.starts_with(before)) << result.conclusion;
  expect_says(
      result.conclusion,
      "With settings chosen on blocks of neighbors, of which that is less so, the best ℓp mirror descent is less accurate than the best other optimizer: normalized ℓ1.2 mirror descent with momentum (by blocks) has 90.00 %, 1.00 points lower (95 % interval -1.23 to -0.77) than that of AdamW (by blocks).");
  const Table& blocks = clean_table(result, "blocks");
  EXPECT_EQ(row_of(blocks, "AdamW (by blocks)")[3], "every fifth review");
  EXPECT_EQ(row_of(blocks, "AdamW (by blocks)")[4], "+4.00");
  EXPECT_EQ(blocks.rows.size(), 3u);  // and mirror descent also against AdamW
  for (const auto& row : clean_table(result, "optimizers").rows)
    EXPECT_EQ(row.front().find("by blocks"), std::string::npos);
  EXPECT_EQ(clean_table(result, "block-searches").rows.size(), 2u);
}

// Other p and normalization are main trainings already.
TEST(ImdbClean, AblationsIncludeMainTrainingsThatReplaceOnePart) {
  CleanRecords records = made_up_clean_records(0.9);
  records.add("md-momentum-1.5", 0.1, 0.89, 0.4, 4 * test::clean_parameters);
  records.add("md-normalized-momentum-1.5", 0.03, 0.88, 0.4, 4 * test::clean_parameters);
  records.train("ablation-no-warmup", 0.1, 0.87, 0.4, 4 * test::clean_parameters, TrainingRole::ablation, 3);
  const ExperimentResult result = result_of(records);
  const Table& table = clean_table(result, "ablations");
  EXPECT_EQ(row_of(table, "no warmup")[3], "-2.10");  // the first three of five seeds
  EXPECT_EQ(row_of(table, "p = 1.1, with settings of its own")[3], "-5.90");
  EXPECT_EQ(row_of(table, "p = 2, with settings of its own")[3], "-4.00");
  EXPECT_EQ(row_of(table, "normalized, with settings of its own")[3], "-1.00");
  EXPECT_EQ(table.rows.size(), 5u);
}

// A search that was begun again keeps its first trials, outside its budget.
TEST(ImdbClean, EarlierTrialsAreApart) {
  CleanRecords records = made_up_clean_records(0.9);
  records.tune("adamw", 0.1, {0.5, 0.5, 0.5}).note = "of a first search, which stayed at chance";
  const ExperimentResult result = result_of(records);
  EXPECT_EQ(row_of(clean_table(result, "searches"), "AdamW")[1], "3 of 10, and 1 before");
  EXPECT_TRUE(any_remark(result, "1 trial more"));
}

TEST(ImdbClean, SparsityIsComparedAtEqualAccuracy) {
  const std::string sparser = result_of(made_up_clean_records(0.876)).conclusion;  // within half a point
  expect_says(sparser, "At equal accuracy (to Muon with AdamW: ");
  expect_says(
      sparser,
      "sparsity favors mirror descent: normalized ℓ1.2 mirror descent with momentum has Hoyer sparsity 0.500 against 0.160 (95 % interval of the difference 0.338 to 0.342) and 5.00 against 8.40 % of the weights");
  expect_says(result_of(made_up_clean_records(0.9, 0.1)).conclusion, "sparsity favors Muon with AdamW: ");
  expect_says(result_of(made_up_clean_records(0.88, 0.16)).conclusion, "sparsity decides nothing: ");
  CleanRecords split = made_up_clean_records(0.88);
  for (TrainingRecord& record : split.list)
    if (record.config == "md-normalized-momentum-1.2")
      for (MapRecord& map : record.maps)
        if (map.share) map.share = *map.share + 0.2;
  expect_says(
      result_of(split).conclusion,
      "sparsity is not decided, because it favors mirror descent by Hoyer's measure and favors Muon with AdamW by the share of weights above 0.06: ");
  // Too far from Muon, but as accurate as AdamW.
  expect_says(result_of(made_up_clean_records(0.871)).conclusion,
              "No mirror descent is as accurate as Muon with AdamW, but at equal accuracy (to AdamW: ");
  expect_says(
      result_of(made_up_clean_records(0.84)).conclusion,
      "Sparsity at equal accuracy does not favor it, because no mirror descent is as accurate as Muon with AdamW or AdamW (");
}

TEST(ImdbClean, MissingFamiliesAreNamed) {
  CleanRecords records = made_up_clean_records(0.9);
  EXPECT_FALSE(any_remark(result_of(records), "No main training came to its end of"));
  erase_config(records, "muon");
  const ExperimentResult no_muon = result_of(records);
  expect_says(no_muon.conclusion,
              "3.00 points higher (95 % interval 2.77 to 3.23) than that of AdamW. Against AdamW");
  EXPECT_TRUE(any_remark(no_muon, "No main training came to its end of: Muon with AdamW."));
  erase_config(records, "adamw");
  const ExperimentResult no_adamw = result_of(records);
  expect_says(no_adamw.conclusion, "than that of Adam; there is no AdamW to compare with.");
  test::expect_sound(no_adamw);
  std::erase_if(records.list, [](const TrainingRecord& record) { return record.config.starts_with("md-"); });
  const ExperimentResult no_mirror = result_of(records);
  EXPECT_TRUE(no_mirror.conclusion.starts_with(
      "Whether ℓp mirror descent is as accurate as other optimizers cannot be judged: "));
  EXPECT_TRUE(no_mirror.conclusion.ends_with("of another optimizer."));
  test::expect_sound(no_mirror);
  // Only searches so far.
  CleanRecords begun = made_up_clean_records(0.9);
  std::erase_if(begun.list, [](const TrainingRecord& record) { return record.role == TrainingRole::main; });
  const ExperimentResult searched = result_of(begun);
  EXPECT_EQ(searched.findings.size(), 11u);
  for (const NamedTable& one : searched.tables) EXPECT_NO_THROW(one.table.validate()) << one.id;
  // One seed has no interval.
  CleanRecords few = made_up_clean_records(0.9);
  std::erase_if(few.list, [](const TrainingRecord& record) { return record.seed > 1 && record.seed < 100; });
  expect_says(result_of(few).conclusion, "cannot be judged");
}

TEST(ImdbClean, TheLastEpochDecidesASearchAndDivergedTrialsLose) {
  CleanRecords records = made_up_clean_records(0.9);
  records.tune("muon", 0.1, {0.99, 0.99, 0.99}, RecordStatus::diverged);
  records.tune("muon", 0.2, {0.99, 0.99, 0.5});
  records.tune("muon", 0.3, {0.99, 0.99}, RecordStatus::unfinished);
  const ExperimentResult result = result_of(records);
  const Table& trials = clean_table(result, "trials");
  std::vector<std::vector<std::string>> muon;
  std::ranges::copy_if(trials.rows, std::back_inserter(muon),
                       [](const auto& row) { return row[0] == "Muon with AdamW"; });
  ASSERT_EQ(muon.size(), 6u);
  EXPECT_EQ(muon[1], (std::vector<std::string>{"Muon with AdamW", "88.00", "88.00", "yes",
                                               "lr 0.002, embeddings 0.02"}));
  EXPECT_EQ(muon[3][1], "diverged");
  EXPECT_EQ(muon[4][1], "50.00");
  EXPECT_EQ(muon[5][1], "unfinished");
  EXPECT_EQ(std::ranges::count(muon, "yes", [](const auto& row) { return row[3]; }), 1);
  EXPECT_EQ(row_of(clean_table(result, "searches"), "Muon with AdamW")[1], "6 of 10");
  EXPECT_TRUE(
      any_remark(result, "at most 10 trainings, of which 1 to 6 were used; 1 trial diverged and lost."));
  EXPECT_TRUE(
      any_remark(result,
                 "Mirror descent as a whole had 16 trials in 6 searches, the other optimizers, gradient "
                 "descent (p = 2) included, 18 in 5 searches, AdamW alone 3:"));
  // A search of which nothing is left.
  CleanRecords lost = made_up_clean_records(0.9);
  lost.tune("md-3", 1, {0.5}, RecordStatus::diverged);
  EXPECT_EQ(row_of(clean_table(result_of(lost), "searches"), "ℓ3 mirror descent")[3],
            "no trial came to its end");
}

TEST(ImdbClean, SaysWhereASearchEndedAtItsLastLearningRate) {
  CleanRecords records = made_up_clean_records(0.9);
  EXPECT_EQ(row_of(clean_table(result_of(records), "searches"), "AdamW")[3], "between others");
  std::erase_if(records.list, [](const TrainingRecord& record) {
    return record.config == "adamw" && record.role == TrainingRole::tuning && *record.lr > 4e-4;
  });
  const ExperimentResult result = result_of(records);
  EXPECT_EQ(row_of(clean_table(result, "searches"), "AdamW")[3], "the largest");
  EXPECT_TRUE(any_remark(result, "for: ℓ1.5 mirror descent (the only one), AdamW (the largest)."));
}

TEST(ImdbClean, DoubtsAboutSettingsAreSaid) {
  CleanRecords records = made_up_clean_records(0.9);
  EXPECT_FALSE(any_remark(result_of(records), "have other settings"));
  // Two trials are equal: the one that was trained has won.
  records.tune("muon", 0.001, {0.7, 0.8, 0.88});
  std::ranges::rotate(records.list, records.list.end() - 1);
  EXPECT_FALSE(any_remark(result_of(records), "have other settings"));
  records.tune("muon", 0.004, {0.7, 0.8, 0.89});
  records.tune("md-1.2", 0.1, {0.7, 0.8, 0.85});
  records.tune("md-1.2", 0.2, {0.7, 0.8, 0.84});
  const ExperimentResult result = result_of(records);
  EXPECT_TRUE(any_remark(
      result,
      "The main trainings of Muon with AdamW have other settings (lr 0.002, embeddings 0.02) than the trial that won (lr 0.004, embeddings 0.02)."));
  EXPECT_TRUE(any_remark(
      result,
      "On held-out reviews ℓ1.2 mirror descent is better than ℓ1.1 mirror descent, which has main trainings, too."));
  EXPECT_TRUE(any_remark(result, "The held-out reviews would have chosen the same two."));
  for (TrainingRecord& record : records.list)
    if (record.config == "adam" && record.role == TrainingRole::tuning)
      record.curve.back().validation_accuracy = 0.95;
  EXPECT_TRUE(any_remark(
      result_of(records),
      "would have chosen normalized ℓ1.2 mirror descent with momentum and Adam: +3.50 points (95 % interval 3.27 to 3.73)."));
}

TEST(ImdbClean, GradientDescentIsNotMirrorDescent) {
  CleanRecords records = made_up_clean_records(0.85);
  for (TrainingRecord& record : records.list)
    if (record.config == "md-1.1") {
      record.config = "md-2";
      if (record.last_test) record.last_test = *record.last_test + 0.1;
    }
  const ExperimentResult result = result_of(records);
  expect_says(result.conclusion,
              "8.00 points lower (95 % interval -8.23 to -7.77) than that of gradient descent (ℓ2)");
  EXPECT_TRUE(any_remark(result, "Of plain mirror descent, p = 2 won on held-out reviews."));
}

TEST(ImdbClean, TablesShowEveryTraining) {
  CleanRecords records = made_up_clean_records(0.9);
  records.train("ablation-no-momentum", 0.005, 0.88, 0.5, 0, TrainingRole::ablation, 3);
  records.train("ablation-no-decay", 0.005, 0.9, 0.5, 0, TrainingRole::ablation, 1);
  records.train("adamw", 3e-4, 0.88, 0.17, 0, TrainingRole::longer, 3);
  records.train("adamw", 3e-4, 0.8, 0.17, 0, TrainingRole::transfer, 3);
  records.train("muon", 3e-4, 0.82, 0.17, 0, TrainingRole::transfer, 3);
  records.train("adamw", 3e-4, 0.87, 0.17, 0, TrainingRole::repeat, 1);
  const ExperimentResult result = result_of(records);
  test::expect_sound(result);
  EXPECT_EQ(result.figures.size(), 5u);
  EXPECT_EQ(clean_table(result, "trainings").rows.size(), records.list.size());
  EXPECT_EQ(clean_table(result, "comparisons").rows.size(), 18u);
  EXPECT_EQ(clean_table(result, "optimizers").rows[0],
            (std::vector<std::string>{"normalized ℓ1.2 mirror descent with momentum", "5", "90.00 ± 0.20",
                                      "4.0", "2", "2", "7.0", "3.50", "lr 0.005, embeddings 0.02"}));
  EXPECT_EQ(row_of(clean_table(result, "attention"), "AdamW")[2], "0.170 ± 0.002");
  const Table& exponents = clean_table(result, "exponents");
  EXPECT_EQ(row_of(exponents, "1.1"), (std::vector<std::string>{"1.1", "83.00", "83.10", "83.20", "–"}));
  EXPECT_EQ(row_of(exponents, "1.5")[1], "80.00");
  const Table& ablations = clean_table(result, "ablations");
  expect_says(ablations.title, "the settings of normalized ℓ1.2 mirror descent with momentum changed");
  EXPECT_EQ(row_of(ablations, "no momentum")[3], "-2.10");  // of seeds 1, 2 and 3
  EXPECT_EQ(row_of(ablations, "no momentum")[7], "lower");
  EXPECT_EQ(row_of(ablations, "no decay")[4], "–");
  EXPECT_EQ(row_of(ablations, "no decay")[7], "not decided");
  EXPECT_EQ(clean_table(result, "longer").rows[0][2], "20");
  EXPECT_EQ(clean_table(result, "longer").rows[0][4], "6 epochs");
  EXPECT_EQ(clean_table(result, "longer").rows[0][9], "higher");
  EXPECT_EQ(row_of(clean_table(result, "transfer"), "Muon with AdamW")[3], "+2.00");
  EXPECT_EQ(clean_table(result, "repeats").rows.size(), 1u);
  EXPECT_TRUE(any_remark(result, "main trainings read it once, after the last epoch."));
  records.list[3].curve[2].test_accuracy = 0.8;
  EXPECT_TRUE(any_remark(result_of(records), "after other epochs, too: adamw-main-s1."));
}

TEST(ImdbClean, MemoryIsComparedAtEveryAccuracy) {
  const auto caption = [](const CleanRecords& records) {
    const ExperimentResult result = result_of(records);
    return std::ranges::find(result.figures, "memory", &Figure::id)->caption;
  };
  // With no state at all the normalized one is the most accurate; at 4 bytes it is the best of all, so 5 and 8 lose.
  expect_says(
      caption(made_up_clean_records(0.9)),
      "without taking more memory: normalized ℓ1.1 mirror descent (0.0 bytes, 83.20 %), normalized ℓ1.2 mirror descent with momentum (4.0 bytes, 90.00 %). A bar");
  expect_says(
      caption(made_up_clean_records(0.84)),
      "without taking more memory: normalized ℓ1.1 mirror descent (0.0 bytes, 83.20 %), Muon with AdamW (5.0 bytes, 88.00 %), Signum (4.0 bytes, 86.00 %). A bar");
}

TEST(ImdbClean, OptimizersAreNamedByTheirConfiguration) {
  EXPECT_EQ(optimizer_name("md-1.05"), "ℓ1.05 mirror descent");
  EXPECT_EQ(optimizer_name("md-2"), "gradient descent (ℓ2)");
  EXPECT_EQ(optimizer_name("md-normalized-momentum-2"), "normalized gradient descent with momentum (ℓ2)");
  EXPECT_EQ(optimizer_name("md-momentum-3"), "ℓ3 mirror descent with momentum");
  EXPECT_EQ(optimizer_name("md-two-1.1-2"), "two-p mirror descent (ℓ1.1, ℓ2)");
  for (const char* unknown : {"md-", "md-x", "md-1", "md-two-1.1", "md-1.1-2", "lion"}) {
    EXPECT_EQ(optimizer_name(unknown), unknown);
    EXPECT_EQ(training_optimizer(unknown).family, OptimizerFamily::unknown) << unknown;
  }
  EXPECT_TRUE(training_optimizer("md-two-2-1.1").is_mirror_descent());
  EXPECT_FALSE(training_optimizer("sgd-momentum").is_mirror_descent());
  EXPECT_EQ(
      settings_text("optimizer.lr=0.000123456789 optimizer.weight_decay=0.0 optimizer.betas=[0.9, 0.98]"),
      "lr 0.0001235, no weight decay, β 0.9 and 0.98");
  EXPECT_EQ(settings_text(""), "–");
}

// What is built in.
TEST(ImdbClean, TheRecordsOfTheRepositoryMakeAPage) {
  ASSERT_TRUE(imdb_clean_records().has_runs());
  test::expect_sound(test::quick_result("imdb-clean"));
}

}  // namespace
}  // namespace attmirror
