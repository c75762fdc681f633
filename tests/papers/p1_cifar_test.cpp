// The experiment p1-cifar on made-up records: its sentences are right whichever way the numbers fall.
#include "papers/cifar_records.hpp"
#include "papers/recorded_studies.hpp"
#include "papers/result_of.hpp"

#include <algorithm>
#include <string>

#include <gtest/gtest.h>

namespace attmirror {
namespace {

using test::CifarRecords;
using test::made_up_cifar_records;
using test::words_of;

std::string cifar_words(double mirror, double sparsity = 0.4) {
  return words_of(cifar_result(made_up_cifar_records(mirror, sparsity).list));
}

const Table& cifar_table(const ExperimentResult& result, std::string_view id) {
  const auto found = std::ranges::find(result.tables, id, &NamedTable::id);
  if (found == result.tables.end()) throw std::runtime_error("no table " + std::string(id));
  return found->table;
}

void expect_part(const std::string& text, std::string_view part) {
  EXPECT_NE(text.find(part), std::string::npos) << text << "\nlacks: " << part;
}

TEST(Cifar, TheClaimIsOneOfEquality) {
  const std::string held = cifar_words(0.80);
  EXPECT_TRUE(held.starts_with(
      "P1's claim that ℓ1.1 mirror descent reaches Adam's test accuracy on CIFAR-10 holds: it ends at 80.00 % and Adam at 80.50 %, no more than a point apart; 2 seeds each do not exclude a larger difference. That its weights"))
      << held;
  expect_part(
      held,
      "\nThese accuracies are means over the last ten of 150 epochs (2 seeds each). ℓ1.1 mirror descent minus Adam is -0.50 points (95 % interval -1.11 to 0.11); in their best epochs they reach 80.00 and 80.50 %, which is -0.50 points (-1.11 to 0.11).");
  EXPECT_EQ(cifar_words(0.805).find("do not exclude"), std::string::npos);
  expect_part(cifar_words(0.77), "on CIFAR-10 is contradicted: it ends at 77.00 % and Adam at 80.50 %.");
  expect_part(cifar_words(0.85),
              "on CIFAR-10 holds: it ends at 85.00 % and Adam at 80.50 %, which is even less.");
  // Seeds that differ by as much decide nothing.
  CifarRecords wide = made_up_cifar_records(0.78);
  for (TrainingRecord& record : wide.list)
    if (record.run == "md-1.1-s1") record.last_ten_test = *record.last_ten_test - 0.05;
  expect_part(words_of(cifar_result(wide.list)), "on CIFAR-10 is not decided by so few seeds: ");
  CifarRecords more;
  more.train("md-1.1", 0.05, 0.8, 0.4, 2);
  more.train("adam", 1e-4, 0.805, 0.2, 3);
  expect_part(words_of(cifar_result(more.list)), "of 150 epochs (2 and 3 seeds). ");
}

TEST(Cifar, WeightsOfKAreJudgedByWelch) {
  expect_part(
      cifar_words(0.8),
      "That its weights of K lie nearer to 0 than Adam's holds: 19.7 against 10.1 % of them are within 0.005 of 0.");
  expect_part(
      cifar_words(0.8),
      "\nThe share of weights of K near 0 differs by +9.5 points (95 % interval 9.3 to 9.8; before training it is 11.3 %). 20.00 against 25.00 % are larger than 0.06 in absolute value; the largest is 0.400 against 0.400. ");
  expect_part(
      cifar_words(0.8),
      " They are sparser, too: Hoyer's measure (0 all equal, 1 a single weight; the size of weights does not matter to it) is 0.400 against 0.200 (95 % interval of the difference 0.19");
  expect_part(cifar_words(0.8, 0.1), "nearer to 0 than Adam's is contradicted: ");
  expect_part(cifar_words(0.8, 0.1), " They are less sparse: ");
  expect_part(cifar_words(0.8, 0.2), "nearer to 0 than Adam's is not decided by so few seeds: ");
  expect_part(cifar_words(0.8, 0.2), " They cannot be told apart by sparsity: ");
  // Nearer to 0 is not sparser, and either can be without the other.
  CifarRecords records = made_up_cifar_records();
  for (TrainingRecord& record : records.list)
    if (record.config == "md-1.1") record.maps[0].sparsity = *record.maps[0].sparsity - 0.3;
  const std::string both = words_of(cifar_result(records.list));
  expect_part(both, "nearer to 0 than Adam's holds: ");
  expect_part(both, " They are less sparse: ");
  expect_part(
      cifar_words(0.8),
      "Optimizers that P1 does not try here end at: gradient descent (ℓ2) 72.00 % (2 seeds, 150 epochs), ℓ1.5 mirror descent with momentum 85.00 % (1 seed, 150 epochs), AdamW 86.00 % (1 seed, 150 epochs).");
}

TEST(Cifar, PublishedNumbersAreReadToAPoint) {
  const ExperimentResult result = cifar_result(made_up_cifar_records().list);
  const Finding& late = test::named(result, "test accuracy in % after 150 epochs, Adam");
  EXPECT_EQ(late.published, 80.5);
  EXPECT_NEAR(late.ours, 80.5, 1e-9);
  EXPECT_EQ(judge(late), Verdict::reproduced);
  EXPECT_EQ(judge(test::named(result, "test accuracy in % after 150 epochs, ℓ1.1")), Verdict::reproduced);
  // 0.1 + 0.705 (1 - 1/32)
  const Finding& early = test::named(result, "test accuracy in % after 50 epochs, Adam");
  EXPECT_NEAR(early.ours, 78.297, 1e-3);
  EXPECT_EQ(judge(early), Verdict::reproduced);
  EXPECT_EQ(judge(test::named(cifar_result(made_up_cifar_records(0.77).list), "after 150 epochs, ℓ1.1")),
            Verdict::differs);
  EXPECT_EQ(judge(test::named(result, "largest weight of K, Adam")), Verdict::unpublished);
  expect_part(test::named(result, "largest weight of K, Adam").note, "about 0.41");
  EXPECT_EQ(test::named(result, "main trainings that came to their end").ours, 8);
}

TEST(Cifar, TablesAndFiguresShowEveryTraining) {
  const CifarRecords records = made_up_cifar_records();
  const ExperimentResult result = cifar_result(records.list);
  test::expect_sound(result);
  EXPECT_EQ(result.remarks.back(), "No main training was left out.");
  EXPECT_EQ(cifar_table(result, "trainings").rows.size(), records.list.size());
  EXPECT_EQ(cifar_table(result, "learning-rates").rows.size(), 4u);
  EXPECT_EQ(cifar_table(result, "learning-rates").rows[2].back(), "yes");
  const Table& optimizers = cifar_table(result, "optimizers");
  ASSERT_EQ(optimizers.rows.size(), 5u);
  const auto adam = std::ranges::find(optimizers.rows, "Adam", [](const auto& row) { return row.front(); });
  ASSERT_NE(adam, optimizers.rows.end());
  EXPECT_TRUE((*adam)[3].starts_with("78.30 ± ")) << (*adam)[3];
  std::vector<std::string> ids;
  for (const Figure& figure : result.figures) ids.push_back(figure.id);
  EXPECT_EQ(ids, (std::vector<std::string>{"curves", "weights-near-0", "weights-K", "weights-Q", "weights-V",
                                           "sparsity"}));
  const std::vector<Series>& curves = result.figures[0].series;
  ASSERT_EQ(curves.size(), 7u);  // five optimizers, and two of P1 in the same colors
  EXPECT_EQ(curves[5].name, "P1's figure, Adam");
  EXPECT_EQ(curves[5].color, std::ranges::find(curves, "Adam", &Series::name)->color);
  EXPECT_EQ(curves[6].color, std::ranges::find(curves, "ℓ1.1 mirror descent", &Series::name)->color);
  EXPECT_NE(curves[5].color, curves[6].color);
  // P1's numbers are known to a point.
  EXPECT_EQ(curves[5].low, (std::vector<double>{78, 79.5}));
  EXPECT_EQ(result.figures[1].series.size(), 2u);  // P1's
  // The two edges of each of 41 bins.
  EXPECT_EQ(result.figures[2].series[0].x.size(), 82u);
}

TEST(Cifar, StoppedTrainingsCountAsFarAsTheyGot) {
  CifarRecords records = made_up_cifar_records();
  records.stop("adam-s2", 60);
  const ExperimentResult result = cifar_result(records.list);
  expect_part(
      result.conclusion,
      "cannot be judged yet: that takes two finished trainings of each, and there are 2 of mirror descent and 1 of Adam.");
  EXPECT_EQ(test::named(result, "test accuracy in % after 50 epochs, Adam").note,
            "2 seeds; read off a curve");
  EXPECT_EQ(test::named(result, "test accuracy in % after 150 epochs, Adam").note,
            "1 seed; read off a curve");
  EXPECT_EQ(
      result.remarks.back(),
      "Trainings that were stopped count as far as they got, and in no mean of best or last epochs: adam-s2 (60 epochs).");
  const Table& optimizers = cifar_table(result, "optimizers");
  const auto adam = std::ranges::find(optimizers.rows, "Adam", [](const auto& row) { return row.front(); });
  ASSERT_NE(adam, optimizers.rows.end());
  EXPECT_EQ((*adam)[1], "1 of 2");
  EXPECT_EQ((*adam)[6], "80.40");  // the best of the other one alone
  // Its curve does not end with the one that was stopped.
  EXPECT_EQ(result.figures[0].series[3].name, "Adam");
  EXPECT_EQ(result.figures[0].series[3].x.size(), 150u);
  records.stop("adam-s1", 40);
  EXPECT_EQ(cifar_result(records.list).figures[0].series[3].x.size(), 40u);
  // In no mean of last epochs.
  EXPECT_EQ(test::named(result, "mean of the last ten epochs, Adam").note, "1 seed");
  for (const Figure& figure : result.figures) EXPECT_NO_THROW(figure.validate()) << figure.id;
}

// A line across empty bins would show weights where there are none.
TEST(Cifar, EmptyBinsAreGaps) {
  CifarRecords records = made_up_cifar_records();
  for (TrainingRecord& record : records.list)
    if (record.run == "md-1.1-s1")
      record.histogram = {{'K', -0.02, 7}, {'K', 0, 100}, {'K', 0.01, 50}, {'Q', 0, 1}, {'V', 0, 1}};
  const ExperimentResult result = cifar_result(records.list);
  const Series& outline = result.figures[2].series[0];
  EXPECT_EQ(outline.name, "ℓ1.1 mirror descent");
  EXPECT_EQ(outline.y, (std::vector<double>{7, 7, 0, 0, 100, 100, 50, 50}));
  ASSERT_EQ(outline.x.size(), outline.y.size());
  for (std::size_t i = 0; i < outline.x.size(); ++i)
    EXPECT_NEAR(outline.x[i], -0.025 + 0.01 * static_cast<double>((i + 1) / 2), 1e-12) << i;
  expect_part(result.figures[2].caption,
              "Of the weights of K, 63.7 % are within 0.005 of 0 with ℓ1.1 mirror descent, ");
}

TEST(Cifar, RatesAtTheEndOfTheGridAreNamed) {
  const auto remarks = [](const CifarRecords& records) {
    std::string all;
    for (const std::string& remark : cifar_result(records.list).remarks) all += remark + "\n";
    return all;
  };
  CifarRecords records = made_up_cifar_records();
  EXPECT_EQ(remarks(records).find("Learning rates at an end"), std::string::npos);
  for (const double lr : {1e-4, 3e-4}) records.tune("adamw", lr, 0.5);
  expect_part(
      remarks(records),
      "Learning rates at an end of what was tried, so that others might do better: AdamW 0.0003 (the largest of 2).");
}

TEST(Cifar, FewRecordsAreEnough) {
  CifarRecords tuned;
  tuned.tune("md-2", 0.1, 0.4);
  const ExperimentResult result = cifar_result(tuned.list);
  expect_part(result.conclusion, "there are 0 of mirror descent and 0 of Adam.");
  EXPECT_FALSE(result.findings.empty());
  EXPECT_TRUE(result.figures.empty());
  CifarRecords failed = made_up_cifar_records();
  for (TrainingRecord& record : failed.list) {
    TrainingRecord early;
    early.run = record.run;
    early.config = record.config;
    early.role = record.role;
    early.seed = record.seed;
    early.status = RecordStatus::failed;
    early.note = "no GPU";
    record = early;
  }
  const ExperimentResult nothing = cifar_result(failed.list);
  EXPECT_EQ(test::named(nothing, "main trainings that came to their end").ours, 0);
  expect_part(nothing.remarks.back(), "are in no mean: md-1.1-s1 (failed after 0 epochs), ");
  EXPECT_TRUE(nothing.figures.empty());
}

// What README.md and docs/results/cifar say of the repository's records.
TEST(Cifar, TheRecordsOfTheRepositoryHaveTheOutcomeThatTheDocsDescribe) {
  ASSERT_TRUE(cifar_records().has_runs());
  for (const char* id : {"p1-cifar", "p2-vit"}) {
    EXPECT_EQ(find_experiment(id).info().out_of_scope, "");
    test::expect_sound(test::quick_result(id));
  }
  const ExperimentResult& accuracies = test::quick_result("p1-cifar");
  expect_part(accuracies.conclusion, "on CIFAR-10 holds: it ends at 78.92 % and Adam at 79.55 %, ");
  expect_part(accuracies.conclusion, "nearer to 0 than Adam's holds: 12.0 against 11.2 % of them");
  expect_part(words_of(accuracies), "They are less sparse: Hoyer's measure");
  EXPECT_EQ(judge(test::named(accuracies, "after 50 epochs, Adam")), Verdict::reproduced);
  EXPECT_EQ(judge(test::named(accuracies, "after 150 epochs, Adam")), Verdict::inconclusive);
  EXPECT_EQ(judge(test::named(accuracies, "after 150 epochs, ℓ1.1")), Verdict::inconclusive);
  const ExperimentResult& attention = test::quick_result("p2-vit");
  expect_part(attention.conclusion,
              "in all 42 blocks of 7 trainings K Qᵀ is larger and attention more concentrated");
  expect_part(attention.conclusion, "in 37 of 42 the two rose together");
  expect_part(words_of(attention),
              "in 27 of 42 blocks its attention is more concentrated after the last epoch");
  expect_part(words_of(attention),
              "in all 42 the share of its top token ends more than a tenth below its peak");
}

}  // namespace
}  // namespace attmirror
