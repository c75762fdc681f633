// Trainings of a toy language, small enough to be repeated many times.
#include "base/atomic_file.hpp"
#include "deep/trainer/optimizer_set.hpp"
#include "deep/trainer/toy_texts.hpp"
#include "deep/trainer/train_checkpoint.hpp"
#include "support/files.hpp"
#include <attmirror/data/safetensors.hpp>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace attmirror::deep {
namespace {

using test::expect_bad_input;
using test::TemporaryFolder;
using trainer_tests::toy_config;
using trainer_tests::toy_data;

const TrainData& data() {
  static const TrainData made = toy_data();
  return made;
}

std::vector<nlohmann::json> rows_of(const std::filesystem::path& folder) {
  std::vector<nlohmann::json> rows;
  std::istringstream lines(read_text_file(folder / "metrics.jsonl"));
  for (std::string line; std::getline(lines, line);) rows.push_back(nlohmann::json::parse(line));
  return rows;
}

// What must be equal whatever happened in between; clock times are not.
std::vector<nlohmann::json> rows_without_times(const std::filesystem::path& folder) {
  std::vector<nlohmann::json> rows = rows_of(folder);
  for (nlohmann::json& row : rows)
    for (const char* key : {"seconds", "epoch_seconds", "tokens_per_second"}) row.erase(key);
  return rows;
}

TEST(Trainer, EveryOptimizerReducesTheLoss) {
  struct Case {
    const char* name;
    double lr, momentum, weight_decay;
  };
  for (const Case& given :
       {Case{"md", 5e-3, 0, 0}, Case{"md", 5e-4, 0.9, 1e-3}, Case{"gd", 2e-2, 0.5, 0},
        Case{"adam", 3e-3, 0, 0}, Case{"adamw", 3e-3, 0, 0.01}, Case{"muon-adamw", 0.02, 0.95, 0},
        Case{"sign", 2e-3, 0, 0}, Case{"signum", 1e-3, 0.9, 0}}) {
    TrainConfig config = toy_config();
    config.optimizer.name = given.name;
    config.optimizer.lr = given.lr;
    config.optimizer.momentum = given.momentum;
    config.optimizer.weight_decay = given.weight_decay;
    config.train.epochs = 12;
    std::vector<double> losses;
    TrainOptions options;
    options.on_epoch = [&](const EpochRow& row) { losses.push_back(row.train_loss); };
    const TrainResult result = train(config, data(), options);
    ASSERT_EQ(result.status, TrainStatus::completed);
    ASSERT_EQ(losses.size(), 12u) << given.name;
    EXPECT_LT(losses.back(), 0.8 * losses.front()) << given.name;
    EXPECT_GT(*result.trials.at(0).best_test_accuracy, 0.7) << given.name;
  }
}

TEST(Trainer, RowsSayWhatHappened) {
  const TemporaryFolder folder;
  TrainConfig config = toy_config();
  config.train.evaluate_every = 2;
  config.optimizer.schedule = "linear";
  TrainOptions options;
  options.folder = folder / "run";
  const TrainResult result = train(config, data(), options);
  const auto rows = rows_of(folder / "run");
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0]["epoch"], 1);
  EXPECT_EQ(rows[0]["step"], 13);  // 200 samples in batches of 16: the last is of 8
  EXPECT_TRUE(rows[0]["test_loss"].is_null());
  EXPECT_FALSE(rows[1]["test_accuracy"].is_null());
  EXPECT_FALSE(rows[2]["test_accuracy"].is_null());  // the last epoch in any case
  EXPECT_EQ(rows[2]["test_accuracy"], *result.trials[0].test_accuracy);
  EXPECT_NEAR(rows[0]["lr"].get<double>(), config.optimizer.lr * (1 - 12.0 / 39), 1e-12);
  for (const char* map : {"K", "Q", "V"}) {
    EXPECT_GT(rows[0][map]["norm"].get<double>(), 0);
    EXPECT_GT(rows[0][map]["sparsity"].get<double>(), 0);
    EXPECT_LT(rows[0][map]["sparsity"].get<double>(), 1);
  }
  EXPECT_EQ(result.parameters, 40 * 16 + 12 * 16 + 2 * (12 * 16 * 16 + 2 * 16) + 16);
  for (const char* name : {"config.json", "results.json", "checkpoint.safetensors", "final.safetensors",
                           "events/trial-0/events.out.tfevents.0.attmirror"})
    EXPECT_TRUE(std::filesystem::exists(folder / "run" / name)) << name;
}

TEST(Trainer, StopsAtTheTrainingAccuracy) {
  TrainConfig config = toy_config();
  config.optimizer.name = "adam";
  config.optimizer.lr = 3e-3;
  config.train.stop_train_accuracy = 0.9;
  config.train.epochs = 60;
  config.train.evaluate_every = 100;
  const TrainResult result = train(config, data());
  const TrialResult& trial = result.trials.at(0);
  EXPECT_EQ(trial.status, TrialStatus::reached_accuracy);
  EXPECT_LT(trial.epochs, 60);
  EXPECT_GE(trial.train_accuracy, 0.9);
  EXPECT_TRUE(trial.test_accuracy.has_value());  // evaluated at the end though it was not its turn
}

TEST(Trainer, TrialsAreIndependent) {
  const TemporaryFolder folder;
  TrainConfig config = toy_config();
  config.train.trials = 3;
  config.train.epochs = 2;
  TrainOptions options;
  options.folder = folder / "run";
  const TrainResult result = train(config, data(), options);
  ASSERT_EQ(result.trials.size(), 3u);
  EXPECT_NE(result.trials[0].train_loss, result.trials[1].train_loss);
  EXPECT_NE(result.trials[1].train_loss, result.trials[2].train_loss);
  std::vector<Safetensors> weights;
  for (int trial = 0; trial < 3; ++trial)
    weights.push_back(load_safetensors(folder / "run" / ("final-" + std::to_string(trial) + ".safetensors")));
  EXPECT_NE(weights[0].tensors, weights[1].tensors);
  EXPECT_NE(weights[1].tensors, weights[2].tensors);
  // A trial is what it would be alone.
  TrainConfig alone = config;
  alone.train.trials = 1;
  alone.train.init_seed = result.trials[2].init_seed;
  alone.train.order_seed = result.trials[2].order_seed;
  alone.train.dropout_seed = result.trials[2].dropout_seed;
  EXPECT_EQ(train(alone, data()).trials[0].train_loss, result.trials[2].train_loss);
  EXPECT_EQ(train(config, data()).trials[2].train_loss, result.trials[2].train_loss);
}

TEST(Trainer, DivergenceIsARowLikeAnyOther) {
  const TemporaryFolder folder;
  TrainConfig config = toy_config();
  config.optimizer.lr = 1e6;
  config.train.trials = 2;
  TrainOptions options;
  options.folder = folder / "run";
  const TrainResult result = train(config, data(), options);
  EXPECT_EQ(result.status, TrainStatus::completed);
  ASSERT_EQ(result.trials.size(), 2u);
  for (const TrialResult& trial : result.trials) {
    EXPECT_EQ(trial.status, TrialStatus::diverged);
    EXPECT_EQ(trial.epochs, 1);
  }
  EXPECT_TRUE(result.all_diverged());
  ASSERT_EQ(rows_of(folder / "run").size(), 2u);
  // What is not finite has no size and no sparsity, and 0 would be one.
  for (const nlohmann::json& row : rows_of(folder / "run"))
    for (const char* map : {"K", "Q", "V"})
      for (const char* measure : {"norm", "largest", "above_0.06", "sparsity"})
        EXPECT_TRUE(row[map][measure].is_null()) << map << " " << measure << " " << row[map];
  EXPECT_EQ(nlohmann::json::parse(read_text_file(folder / "run" / "results.json"))["status"], "diverged");
  // Finite, but far worse than guessing.
  config.optimizer.name = "gd";
  config.optimizer.lr = 3;
  config.train.divergence = 1.5;
  config.train.trials = 1;
  EXPECT_EQ(train(config, data()).trials[0].status, TrialStatus::diverged);
}

// Stopped after `stops` steps each time, and resumed until the end.
TrainResult in_pieces(const TrainConfig& config, const std::filesystem::path& folder, std::int64_t steps) {
  TrainOptions options;
  options.folder = folder;
  for (int piece = 0; piece < 1000; ++piece) {
    std::int64_t taken = 0;
    options.stop = StopRequest::make();
    options.on_progress = [&](const TrainProgress&) {
      if (++taken >= steps) options.stop.request();
    };
    const TrainResult result = train(config, data(), options);
    if (result.status == TrainStatus::completed) return result;
    options.existing = ExistingRun::resume;
  }
  throw std::runtime_error("it does not end");
}

TEST(Trainer, ResumedTrainingsHaveTheSameBits) {
  for (const char* name : {"md", "adamw", "muon-adamw"}) {
    const TemporaryFolder folder;
    TrainConfig config = toy_config();
    config.optimizer.name = name;
    if (std::string_view(name) != "adamw") config.optimizer.momentum = 0.9;
    config.optimizer.schedule = "cosine";
    config.train.trials = 2;
    config.train.epochs = 2;
    TrainOptions options;
    options.folder = folder / "whole";
    const TrainResult whole = train(config, data(), options);
    for (const std::int64_t steps : {1, 6, 13, 26}) {
      if (steps == 1 && config.optimizer.name != "md") continue;  // the longest: a checkpoint a step
      const auto run = folder / ("pieces" + std::to_string(steps));
      const TrainResult pieces = in_pieces(config, run, steps);
      ASSERT_EQ(pieces.trials.size(), 2u);
      EXPECT_EQ(pieces.trials[1].train_loss, whole.trials[1].train_loss) << name << " " << steps;
      EXPECT_EQ(pieces.trials[1].test_loss, whole.trials[1].test_loss) << name << " " << steps;
      EXPECT_EQ(rows_without_times(run), rows_without_times(folder / "whole")) << name << " " << steps;
      for (const char* file : {"final-0.safetensors", "final-1.safetensors"})
        EXPECT_EQ(read_file(run / file), read_file(folder / "whole" / file)) << name << " " << steps;
    }
  }
}

TEST(Trainer, AnEndedRunIsNotRunAgain) {
  const TemporaryFolder folder;
  TrainOptions options;
  options.folder = folder / "run";
  TrainConfig config = toy_config();
  config.train.epochs = 1;
  const TrainResult first = train(config, data(), options);
  options.existing = ExistingRun::resume;
  options.on_progress = [](const TrainProgress&) { FAIL() << "a step was taken"; };
  const TrainResult again = train(config, data(), options);
  EXPECT_EQ(again.status, TrainStatus::completed);
  EXPECT_EQ(again.trials.at(0).train_loss, first.trials.at(0).train_loss);
  EXPECT_EQ(again.parameters, first.parameters);
}

TEST(Trainer, TimeLimitLeavesACheckpoint) {
  const TemporaryFolder folder;
  TrainConfig config = toy_config();
  config.train.max_seconds = 1e-9;
  TrainOptions options;
  options.folder = folder / "run";
  const TrainResult result = train(config, data(), options);
  EXPECT_EQ(result.status, TrainStatus::time_limit);
  EXPECT_EQ(load_train_checkpoint(folder / "run" / "checkpoint.safetensors").step, 1);
  config.train.max_seconds = 0;  // may change between resumes
  options.existing = ExistingRun::resume;
  EXPECT_EQ(train(config, data(), options).status, TrainStatus::completed);
}

TEST(Trainer, WhatCannotBeResumedIsLeftAlone) {
  const TemporaryFolder folder;
  const auto run = folder / "run";
  TrainConfig config = toy_config();
  TrainOptions options;
  options.folder = run;
  std::int64_t taken = 0;
  options.stop = StopRequest::make();
  options.on_progress = [&](const TrainProgress&) {
    if (++taken == 15) options.stop.request();
  };
  train(config, data(), options);
  const auto checkpoint = read_file(run / "checkpoint.safetensors");
  const auto metrics = read_file(run / "metrics.jsonl");
  const auto refused = [&](std::initializer_list<std::string_view> words, const TrainConfig& with,
                           const TrainData& on) {
    expect_bad_input(words, [&] { train(with, on, options); });
    EXPECT_EQ(read_file(run / "metrics.jsonl"), metrics);
  };
  options.existing = ExistingRun::refuse;
  refused({"already holds a run", "--resume", "--overwrite"}, config, data());
  options.existing = ExistingRun::resume;
  TrainConfig other = config;
  other.optimizer.p = 1.5;
  refused({"cannot resume", "optimizer.p was 1.1 and is 1.5"}, other, data());
  TrainData changed = data();
  changed.train_texts->ids[1] = 11;
  refused({"data.train holds other rows"}, config, changed);
  changed = data();
  changed.test_texts->labels[0] ^= 1;
  refused({"data.test holds other rows"}, config, changed);
  EXPECT_EQ(read_file(run / "checkpoint.safetensors"), checkpoint);

  // One byte of the weights.
  std::vector<std::byte> damaged = checkpoint;
  damaged[damaged.size() - 100] ^= std::byte{1};
  write_file_atomically(run / "checkpoint.safetensors", damaged);
  refused({"checkpoint.safetensors", "is damaged"}, config, data());
  EXPECT_EQ(read_file(run / "checkpoint.safetensors"), damaged);
  write_file_atomically(run / "checkpoint.safetensors", std::span(checkpoint).first(checkpoint.size() / 2));
  refused({"checkpoint.safetensors"}, config, data());

  // A checkpoint of another configuration under this one's config.json.
  const TemporaryFolder elsewhere;
  TrainOptions fresh;
  fresh.folder = elsewhere / "run";
  TrainConfig seeded = config;
  seeded.train.order_seed = 7;
  train(seeded, data(), fresh);
  write_file_atomically(run / "checkpoint.safetensors",
                        read_file(elsewhere / "run" / "checkpoint.safetensors"));
  refused({"another run's checkpoint", "train.order_seed was 7 and is 0"}, config, data());

  // metrics.jsonl that lost what the checkpoint knows of.
  write_file_atomically(run / "checkpoint.safetensors", checkpoint);
  write_file_atomically(run / "metrics.jsonl", std::string_view());
  expect_bad_input({"metrics.jsonl has 0 bytes"}, [&] { train(config, data(), options); });
}

TEST(Trainer, ForceReplacesARunAndNothingElse) {
  const TemporaryFolder folder;
  const auto run = folder / "run";
  TrainConfig config = toy_config();
  config.train.epochs = 1;
  config.train.trials = 2;
  TrainOptions options;
  options.folder = run;
  train(config, data(), options);
  write_file_atomically(run / "notes.txt", std::string_view("mine"));
  config.train.trials = 1;
  options.existing = ExistingRun::replace;
  train(config, data(), options);
  EXPECT_FALSE(std::filesystem::exists(run / "final-1.safetensors"));
  EXPECT_FALSE(std::filesystem::exists(run / "events" / "trial-1"));
  EXPECT_TRUE(std::filesystem::exists(run / "notes.txt"));
  EXPECT_EQ(rows_of(run).size(), 1u);
  write_file_atomically(run / "config.json", std::string_view("{\"name\": \"somebody's\"}"));
  expect_bad_input({"config.json", "is not a configuration"}, [&] { train(config, data(), options); });
}

// A link inside the folder may lead to a file of somebody else; one that the run would append to, for instance.
TEST(Trainer, RefusesLinksAndRemovesLeftovers) {
  namespace fs = std::filesystem;
  const TemporaryFolder folder;
  const auto run = folder / "run";
  TrainConfig config = toy_config();
  config.train.epochs = 1;
  TrainOptions options;
  options.folder = run;
  train(config, data(), options);
  options.existing = ExistingRun::resume;
  for (const char* name : {"metrics.jsonl", "checkpoint.safetensors", "final.safetensors", "events"}) {
    fs::rename(run / name, folder / "kept");
    fs::create_symlink(folder / "kept", run / name);
    expect_bad_input({name, "is a symbolic link"}, [&] { train(config, data(), options); });
    fs::remove(run / name);
    fs::rename(folder / "kept", run / name);
  }
  for (const char* name : {".results.json.tmp-1-0", ".notes.txt.tmp-1-0"})
    write_file_atomically(run / name, std::string_view("half"));
  options.existing = ExistingRun::replace;
  train(config, data(), options);
  EXPECT_FALSE(fs::exists(run / ".results.json.tmp-1-0"));
  EXPECT_TRUE(fs::exists(run / ".notes.txt.tmp-1-0"));
}

// Files that are none of a run's, and runs that cannot be gone on with, are left alone.
TEST(Trainer, LeavesAloneWhatIsNotItsOwn) {
  namespace fs = std::filesystem;
  const TemporaryFolder folder;
  const auto run = folder / "run";
  fs::create_directories(run / "events");
  const std::vector<fs::path> strangers{run / "final-thesis.safetensors", run / "events" / "notes.txt"};
  for (const fs::path& file : strangers) write_file_atomically(file, std::string_view("mine"));
  TrainConfig config = toy_config();
  config.train.epochs = 1;
  TrainOptions options;
  options.folder = run;
  train(config, data(), options);
  options.existing = ExistingRun::replace;
  train(config, data(), options);
  for (const fs::path& file : strangers) EXPECT_TRUE(fs::exists(file)) << file;

  // What cannot be computed is refused before the old run is touched.
  const auto weights = read_file(run / "final.safetensors");
  TrainConfig impossible = config;
  impossible.model.attention = "fused";
  impossible.train.device = "cpu";
  expect_bad_input({"model.attention is \"fused\""}, [&] { train(impossible, data(), options); });
  EXPECT_EQ(read_file(run / "final.safetensors"), weights);

  // An ended run says so again, with results.json where it was lost; without its checkpoint it is not begun anew.
  options.existing = ExistingRun::resume;
  fs::remove(run / "results.json");
  train(config, data(), options);
  EXPECT_TRUE(fs::exists(run / "results.json"));
  fs::remove(run / "checkpoint.safetensors");
  expect_bad_input({"checkpoint.safetensors is missing", "--overwrite"},
                   [&] { train(config, data(), options); });
  EXPECT_EQ(read_file(run / "final.safetensors"), weights);
}

// Curves for TensorBoard can be lost without harm: the training goes on, and has the same end.
TEST(Trainer, GoesOnWithoutItsEventFile) {
  const TemporaryFolder folder;
  TrainConfig config = toy_config();
  config.train.epochs = 3;
  TrainOptions options;
  options.folder = folder / "whole";
  train(config, data(), options);
  options.folder = folder / "run";
  options.stop = StopRequest::make();
  options.on_epoch = [&](const EpochRow&) { options.stop.request(); };
  const TrainResult stopped = train(config, data(), options);
  ASSERT_EQ(stopped.status, TrainStatus::stopped);
  std::filesystem::remove_all(folder / "run" / "events");
  options.stop = {};
  options.on_epoch = {};
  options.existing = ExistingRun::resume;
  EXPECT_EQ(train(config, data(), options).status, TrainStatus::completed);
  EXPECT_EQ(read_file(folder / "run" / "final.safetensors"),
            read_file(folder / "whole" / "final.safetensors"));
}

// Before an epoch has ended there is nothing to say of its loss.
TEST(Trainer, NothingMeasuredIsNoNumber) {
  TrainConfig config = toy_config();
  TrainOptions options;
  options.stop = StopRequest::make();
  options.stop.request();
  const TrainResult stopped = train(config, data(), options);
  ASSERT_EQ(stopped.trials.size(), 1u);
  EXPECT_TRUE(std::isnan(stopped.trials[0].train_loss));
}

TEST(Trainer, DataMustFitTheConfiguration) {
  TrainConfig config = toy_config();
  config.data.length = 8;
  expect_bad_input({"data.train", "expected at most data.length, 8"}, [&] { train(config, data()); });
  config = toy_config();
  TrainData changed = data();
  changed.train_texts->labels[3] = 2;
  expect_bad_input({"data.train has the label 2"}, [&] { train(config, changed); });
  changed = data();
  changed.test_texts->vocabulary = 41;
  expect_bad_input({"different vocabularies"}, [&] { train(config, changed); });
  changed = data();
  changed.test_texts = TokenSet{};
  expect_bad_input({"data.test holds no rows"}, [&] { train(config, changed); });
  expect_bad_input({"hold no texts"}, [&] { train(config, TrainData{}); });
}

TEST(Trainer, AGpuThatIsNotThereIsASentence) {
  if (at::hasCUDA()) GTEST_SKIP() << "there is a GPU";
  TrainConfig config = toy_config();
  config.train.device = "cuda";
  expect_bad_input({"train.device is \"cuda\"", "finds no GPU"}, [&] { train(config, data()); });
  config.train.device = "auto";
  config.train.precision = "bf16";
  expect_bad_input({"train.precision is \"bf16\""}, [&] { train(config, data()); });
}

TEST(Trainer, MeanLossIsTheSumWithAnotherRate) {
  TrainConfig sum = toy_config(), mean = toy_config();
  sum.data.limit = mean.data.limit = 192;  // twelve full batches
  sum.train.epochs = mean.train.epochs = 1;
  sum.optimizer.name = mean.optimizer.name = "gd";
  sum.optimizer.lr = 1e-3;
  mean.optimizer.lr = 1e-3 * 16;
  mean.train.loss = "mean";
  EXPECT_NEAR(train(sum, data()).trials[0].train_loss, train(mean, data()).trials[0].train_loss, 1e-6);
}

TEST(Schedule, RisesAndFalls) {
  OptimizerConfig config;
  EXPECT_EQ(schedule_factor(config, 0, 10, 3), 1);
  EXPECT_EQ(schedule_factor(config, 29, 10, 3), 1);
  config.schedule = "linear";
  EXPECT_EQ(schedule_factor(config, 0, 10, 3), 1);
  EXPECT_NEAR(schedule_factor(config, 15, 10, 3), 0.5, 1e-15);
  EXPECT_GT(schedule_factor(config, 29, 10, 3), 0);
  config.schedule = "cosine";
  config.warmup = 0.5;
  EXPECT_NEAR(schedule_factor(config, 0, 10, 3), 1.0 / 6, 1e-15);
  EXPECT_LT(schedule_factor(config, 4, 10, 3), 1);
  EXPECT_EQ(schedule_factor(config, 5, 10, 3), 1);
  EXPECT_GT(schedule_factor(config, 29, 10, 3), 0);
  EXPECT_LT(schedule_factor(config, 29, 10, 3), 0.01);
  config.warmup = 100;  // more than the whole
  EXPECT_LT(schedule_factor(config, 29, 10, 3), 1.0001);
}

}  // namespace
}  // namespace attmirror::deep
