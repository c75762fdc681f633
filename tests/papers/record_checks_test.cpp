// What files of records must agree on, and that those of the repository do.
#include "papers/fixture_records.hpp"
#include "papers/recorded_studies.hpp"
#include "papers/records.hpp"
#include "support/paths.hpp"

#include <filesystem>
#include <set>
#include <string>

#include <gtest/gtest.h>

namespace attmirror {
namespace {

using test::expect_refused;
using test::read;
using test::record_file;
using test::replaced;

// With this part of the fixture's runs.csv replaced.
void expect_refused_run(std::string_view from, std::string_view to, const std::string& message) {
  expect_refused(replaced(record_file("runs.csv"), from, to), record_file("curves.csv"), message);
}

void expect_read_run(std::string_view from, std::string_view to) {
  EXPECT_NO_THROW(read(replaced(record_file("runs.csv"), from, to), record_file("curves.csv"))) << to;
}

// The first training has the test accuracies 0.8496, 0.84648 and 0.84284, with the mean 0.8463067.
TEST(RecordChecks, AccuraciesAreThoseOfTheCurve) {
  expect_refused_run("0.8496,1,", "0.9,1,",
                     "runs.csv line 2: best_test of adam-s1 is 0.9: expected 0.8496, as in curves.csv");
  expect_refused_run("0.8496,1,", ",1,",
                     "runs.csv line 2: best_test of adam-s1 is missing: expected 0.8496, as in curves.csv");
  expect_refused_run("0.84284,0.846307", "0.84294,0.846307",
                     "runs.csv line 2: last_test of adam-s1 is 0.84294: expected 0.84284, as in curves.csv");
  expect_refused_run(
      "0.84284,0.846307", "0.84284,0.84284",
      "runs.csv line 2: last_ten_test of adam-s1 is 0.84284: expected 0.846307, as in curves.csv");
  expect_refused_run(
      "0.1512,0.9955,", "0.1512,0.9965,",
      "runs.csv line 2: train_accuracy of adam-s1 is 0.9965: expected 0.9955, as in curves.csv");
  expect_refused_run("0.8496,1,", "0.8496,2,",
                     "runs.csv line 2: best_epoch of adam-s1 is 2: expected 1, as in curves.csv");
  expect_refused_run("0.8496,1,", "0.8496,,",
                     "runs.csv line 2: best_epoch of adam-s1 is missing: expected 1, as in curves.csv");
}

// Six digits in one file, five in the other.
TEST(RecordChecks, RoundingIsNoDisagreement) {
  expect_read_run("0.8496,1,", "0.849605,1,");
  expect_refused_run("0.8496,1,", "0.849606,1,",
                     "runs.csv line 2: best_test of adam-s1 is 0.849606: expected 0.8496, as in curves.csv");
  expect_read_run("0.84284,0.846307", "0.842835,0.846307");
  expect_read_run("0.84284,0.846307", "0.84284,0.846312");
  expect_refused_run(
      "0.84284,0.846307", "0.84284,0.846313",
      "runs.csv line 2: last_ten_test of adam-s1 is 0.846313: expected 0.846307, as in curves.csv");
  // Of two epochs that rounding made equal, either may have been the best.
  const std::string curves = replaced(record_file("curves.csv"), "0.84648", "0.8496"),
                    runs = replaced(record_file("runs.csv"), "0.84284,0.846307", "0.84284,0.847347");
  EXPECT_NO_THROW(read(runs, curves));
  EXPECT_NO_THROW(read(replaced(runs, "0.8496,1,", "0.8496,2,"), curves));
  expect_refused(replaced(runs, "0.8496,1,", "0.8496,3,"), curves,
                 "runs.csv line 2: best_epoch of adam-s1 is 3: expected 1, as in curves.csv");
}

TEST(RecordChecks, WithoutTestAccuraciesNothingFollowsFromThem) {
  const std::string none = "expected none, because curves.csv has no test accuracy of it";
  expect_refused_run("completed,2,,,,,,0.83", "completed,2,,,0.8,,,0.83",
                     "runs.csv line 15: last_test of adam-s100-lr3e-05 is 0.8: " + none);
  expect_refused_run("completed,2,,,,,,0.83", "completed,2,,1,,,,0.83",
                     "runs.csv line 15: best_epoch of adam-s100-lr3e-05 is 1: " + none);
}

TEST(RecordChecks, SharesOfLargeWeightsAreThoseOfTheLastEpoch) {
  const std::string runs = record_file("runs.csv"), curves = record_file("curves.csv");
  expect_refused(runs, replaced(curves, "0.0519997", "0.0519897"),
                 "runs.csv line 2: K_share of adam-s1 is 0.0519997: expected 0.0519897, as in curves.csv");
  expect_refused(replaced(runs, "31850,0.0719989", "31850,"), curves,
                 "runs.csv line 2: V_share of adam-s1 is missing: expected 0.0719989, as in curves.csv");
  // Where the curve does not have it, there is nothing to compare with.
  EXPECT_NO_THROW(read(runs, replaced(curves, "0.0519997", "")));
}

// 442,368 weights each.
TEST(RecordChecks, CountsOfLargeWeightsFitTheirShares) {
  const std::string weights = "_share times the 442368 weights of the other maps";
  expect_refused_run("23003,0.0519997", "23103,0.0519997",
                     "runs.csv line 2: K_above of adam-s1 is 23103: expected 23003, which is K" + weights);
  expect_refused_run("31850,0.0719989", "31851,0.0719989",
                     "runs.csv line 2: V_above of adam-s1 is 31851: expected 31850, which is V" + weights);
  expect_refused_run("27426,0.0619982", "0,0.0619982",
                     "runs.csv line 2: Q_above of adam-s1 is 0: expected 27426, which is Q" + weights);
  // A count that is not there says nothing; of two that disagree, the first is named.
  expect_read_run("31850,0.0719989", ",0.0719989");
  const std::string without = replaced(record_file("runs.csv"), "31850,0.0719989", ",0.0719989"),
                    curves = record_file("curves.csv");
  expect_refused(replaced(without, "23003,", "23004,"), curves,
                 "runs.csv line 2: K_above of adam-s1 is 23004: expected 23003, which is K" + weights);
  // No two of them fit each other.
  expect_refused(
      replaced(replaced(record_file("runs.csv"), "23003,", "1000,"), "27426,", "1000,"), curves,
      "runs.csv line 2: K_above of adam-s1 is 1000: expected a count that is K_share times the number "
      "of weights");
}

TEST(RecordChecks, NoLargeWeightsAreNoShare) {
  const std::string curves = replaced(record_file("curves.csv"), "0.0519997", "0");
  EXPECT_NO_THROW(read(replaced(record_file("runs.csv"), "23003,0.0519997", "0,0"), curves));
  expect_refused(replaced(record_file("runs.csv"), "23003,0.0519997", "5,0"), curves,
                 "runs.csv line 2: K_above of adam-s1 is 5: expected 0, as K_share");
}

// The records of the repository, as they are built in. Reading checks that no row is there twice, and that the
// configuration of every row is there.
void expect_sound_records(const RecordTexts& texts, const char* study) {
  const std::filesystem::path folder = test::source_folder() / "docs/results" / study / "configs";
  std::set<std::string> configs;
  if (std::filesystem::exists(folder))
    for (const auto& entry : std::filesystem::directory_iterator(folder))
      configs.insert(entry.path().stem().string());
  EXPECT_EQ(std::set<std::string>(texts.configs.begin(), texts.configs.end()), configs);
  ASSERT_TRUE(texts.has_runs());
  const std::vector<TrainingRecord> records = read_records(texts);
  EXPECT_FALSE(records.empty());
  EXPECT_NO_THROW(read_speeds(texts));
  for (const TrainingRecord& record : records) {
    if (!record.is_comparable() || record.role != TrainingRole::main) continue;
    EXPECT_TRUE(record.maps[0].above && record.seconds && record.last_ten_test) << record.run;
    // Images have no pivotal words; what they have is measured during training.
    if (record.data == "cifar10")
      EXPECT_FALSE(record.attention.empty() || record.histogram.empty()) << record.run;
    else
      EXPECT_TRUE(record.score) << record.run;
    EXPECT_EQ(record.sentences.size(), texts.sentences.empty() ? 0u : 50u) << record.run;
    EXPECT_FALSE(record.device.empty() || record.date.empty() || record.commit.empty()) << record.run;
  }
}

TEST(RecordChecks, ThoseOfImdbAreSound) { expect_sound_records(imdb_records(), "imdb"); }
TEST(RecordChecks, ThoseOfImdbCleanAreSound) { expect_sound_records(imdb_clean_records(), "imdb_clean"); }
TEST(RecordChecks, ThoseOfImdbDepthAreSound) { expect_sound_records(imdb_depth_records(), "imdb_depth"); }
TEST(RecordChecks, ThoseOfCifarAreSound) { expect_sound_records(cifar_records(), "cifar"); }

}  // namespace
}  // namespace attmirror
