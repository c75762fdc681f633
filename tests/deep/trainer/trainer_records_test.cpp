// What a training keeps and measures besides its last weights: weights of chosen epochs, rows that were held
// out, attention.
#include "base/atomic_file.hpp"
#include "deep/trainer/attention_measures.hpp"
#include "deep/trainer/batch_source.hpp"
#include "deep/trainer/toy_texts.hpp"
#include "support/files.hpp"
#include <attmirror/deep/trainer.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <sstream>

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace attmirror::deep {
namespace {

using test::expect_bad_input;
using test::TemporaryFolder;
using trainer_tests::toy_config;
using trainer_tests::toy_data;

const TrainData& toy_set() {
  static const TrainData made = toy_data();
  return made;
}

std::vector<nlohmann::json> metrics_of(const std::filesystem::path& folder) {
  std::vector<nlohmann::json> rows;
  std::istringstream lines(read_text_file(folder / "metrics.jsonl"));
  for (std::string line; std::getline(lines, line);) rows.push_back(nlohmann::json::parse(line));
  return rows;
}

TEST(Trainer, SavesWeightsAtChosenEpochs) {
  const TemporaryFolder folder;
  TrainConfig config = toy_config();
  config.train.save_epochs = "0,2,3";
  TrainOptions options;
  options.folder = folder / "run";
  train(config, toy_set(), options);
  const auto weights = [&](const char* name) { return read_file(folder / "run" / name); };
  EXPECT_FALSE(std::filesystem::exists(folder / "run/epoch-1.safetensors"));
  EXPECT_EQ(weights("epoch-3.safetensors"), weights("final.safetensors"));
  EXPECT_NE(weights("epoch-2.safetensors"), weights("final.safetensors"));
  EXPECT_NE(weights("epoch-0.safetensors"), weights("epoch-2.safetensors"));
  // Those of a shorter training, which they are.
  config.train.save_epochs = "";
  config.train.epochs = 2;
  config.train.trials = 2;
  options.folder = folder / "shorter";
  train(config, toy_set(), options);
  EXPECT_EQ(weights("epoch-2.safetensors"), read_file(folder / "shorter/final-0.safetensors"));
  // Several trials have names of their own, and what replaces a run removes them.
  config.train.save_epochs = "1";
  options.existing = ExistingRun::replace;
  options.folder = folder / "run";
  train(config, toy_set(), options);
  EXPECT_TRUE(std::filesystem::exists(folder / "run/epoch-1-trial-1.safetensors"));
  EXPECT_FALSE(std::filesystem::exists(folder / "run/epoch-2.safetensors"));
}

TEST(Trainer, HoldsOutRowsForValidation) {
  const TemporaryFolder folder;
  TrainConfig config = toy_config();
  config.data.validation = 0.25;
  config.train.evaluate_every = 2;
  TrainOptions options;
  options.folder = folder / "run";
  const TrainResult result = train(config, toy_set(), options);
  const auto rows = metrics_of(folder / "run");
  EXPECT_EQ(rows[0]["step"], 10);  // 150 samples in batches of 16
  EXPECT_FALSE(rows[0].contains("validation_loss"));
  ASSERT_TRUE(rows[1].contains("validation_loss"));
  const TrialResult& trial = result.trials.at(0);
  EXPECT_EQ(rows[2]["validation_accuracy"], *trial.validation_accuracy);
  EXPECT_EQ(*trial.best_validation_accuracy, std::max(rows[1]["validation_accuracy"].get<double>(),
                                                      rows[2]["validation_accuracy"].get<double>()));
  // Fiftieths: of the 50 rows that were held out, not of 60 test rows.
  EXPECT_NEAR(std::remainder(*trial.validation_accuracy * 50, 1), 0, 1e-9);
  EXPECT_NE(*trial.validation_loss, *trial.test_loss);
  config.data.validation = 0.001;
  expect_bad_input({"data.validation is 0.001: of 200 rows it holds out none"},
                   [&] { train(config, toy_set()); });
}

// Neighbors stay together.
TEST(Trainer, HoldsOutBlocksOfNeighbors) {
  const auto rows_of = [](const ChosenRows& rows) {
    std::vector<std::int64_t> list;
    for (std::int64_t i = 0; i < rows.count(); ++i) list.push_back(rows[i]);
    return list;
  };
  ChosenRows rows(20, 0);
  EXPECT_EQ(rows_of(rows.held_out(0.25, 5)), (std::vector<std::int64_t>{15, 16, 17, 18, 19}));
  EXPECT_EQ(rows.count(), 15);
  ChosenRows others(20, 0);
  EXPECT_EQ(rows_of(others.held_out(0.5, 8)), (std::vector<std::int64_t>{8, 9, 10, 11, 12, 13, 14, 15}));
  TrainConfig config = toy_config();
  config.data.validation = 0.2;
  config.data.validation_block = 100;
  expect_bad_input({"data.validation is 0.2: of 200 rows, in blocks of 100, it holds out none"},
                   [&] { train(config, toy_set()); });
}

TEST(Trainer, MeasuresAttention) {
  const TemporaryFolder folder;
  TrainConfig config = toy_config();
  config.train.epochs = 4;
  config.train.attention_every = 3;
  TrainOptions options;
  options.folder = folder / "run";
  train(config, toy_set(), options);
  const auto rows = metrics_of(folder / "run");
  ASSERT_EQ(rows.size(), 4u);
  // After every third epoch, and in any case after the first and the last.
  for (std::size_t e = 0; e < rows.size(); ++e) EXPECT_EQ(rows[e].contains("attention"), e != 1) << e;
  ASSERT_EQ(rows[2]["attention"].size(), 2u);  // blocks
  double squares = 0;
  for (const auto& block : rows[2]["attention"]) {
    for (const char* queries : {"all", "first"}) {
      EXPECT_GT(block[queries]["entropy"].get<double>(), 0);
      EXPECT_LT(block[queries]["entropy"].get<double>(), std::log(12.0));
      EXPECT_GT(block[queries]["top_share"].get<double>(), 1.0 / 12);
      EXPECT_LE(block[queries]["top_share"].get<double>(), 1);
      EXPECT_GE(block[queries]["tokens_90"].get<double>(), 1);
      EXPECT_LE(block[queries]["tokens_90"].get<double>(), 12);
    }
    EXPECT_LE(block["KQ_norm"].get<double>(), block["K_norm"].get<double>() * block["Q_norm"].get<double>());
    squares += std::pow(block["K_norm"].get<double>(), 2);
  }
  EXPECT_NEAR(std::sqrt(squares), rows[2]["K"]["norm"].get<double>(), 1e-9);
}

TEST(AttentionMeasures, OfKnownProbabilities) {
  const at::Tensor one = at::zeros({2, 3, 4});
  one.select(2, 1).fill_(1);
  const AttentionSpread sure = attention_spread(one);
  EXPECT_EQ(sure.entropy, 0);
  EXPECT_EQ(sure.top_share, 1);
  EXPECT_EQ(sure.tokens_90, 1);
  const AttentionSpread even = attention_spread(at::full({2, 3, 4}, 0.25));
  EXPECT_NEAR(even.entropy, std::log(4.0), 1e-12);
  EXPECT_EQ(even.top_share, 0.25);
  EXPECT_EQ(even.tokens_90, 4);
  const AttentionSpread mixed =
      attention_spread(at::tensor({0.1, 0.65, 0.05, 0.2}, at::kDouble).view({1, 1, 4}));
  EXPECT_EQ(mixed.tokens_90, 3);
}

// One group has the p and lr of attention, the other those of the rest.
TEST(Trainer, AttentionMayHaveItsOwnPotential) {
  TrainConfig config = toy_config();
  config.train.epochs = 1;
  const auto loss = [&] { return train(config, toy_set()).trials.at(0).train_loss; };
  const double plain = loss();
  config.optimizer.attention_p = config.optimizer.p;
  config.optimizer.attention_lr = config.optimizer.lr;
  EXPECT_EQ(loss(), plain);
  config.optimizer.attention_p = 2;
  const double other_p = loss();
  EXPECT_NE(other_p, plain);
  config.optimizer.attention_lr = 2 * config.optimizer.lr;
  EXPECT_NE(loss(), other_p);
}

TEST(Trainer, GraphsAreForGpus) {
  TrainConfig config = toy_config();
  config.train.device = "cpu";
  config.train.graphs = "on";
  expect_bad_input({"train.graphs is \"on\": it is for GPUs, and this training runs on cpu"},
                   [&] { train(config, toy_set()); });
}

}  // namespace
}  // namespace attmirror::deep
