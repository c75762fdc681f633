#include "deep/trainer/train_checkpoint.hpp"

#include "base/atomic_file.hpp"
#include "support/files.hpp"
#include <attmirror/data/safetensors.hpp>

#include <cmath>

#include <gtest/gtest.h>

namespace attmirror::deep {
namespace {

using test::TemporaryFolder;

TrainCheckpoint example() {
  TrainCheckpoint checkpoint;
  checkpoint.config = to_json(TrainConfig{});
  checkpoint.train_fingerprint = ~std::uint64_t{0};
  checkpoint.test_fingerprint = 17;
  TrialResult finished;
  finished.status = TrialStatus::diverged;
  finished.train_loss = NAN;
  finished.init_seed = ~std::uint64_t{0} - 1;
  checkpoint.finished = {finished};
  checkpoint.current.trial = 1;
  checkpoint.current.test_accuracy = 0.1 + 0.2;
  checkpoint.epoch = 3;
  checkpoint.step = 14;
  checkpoint.sums = {1.0 / 3, 7, 9, 11, 0.1};
  checkpoint.metrics_bytes = 100;
  checkpoint.events_bytes = 200;
  checkpoint.weights.emplace("head", Array({2, 2}, std::vector<float>{1, -2, 0.5f, 3e-30f}));
  checkpoint.optimizer.emplace("mirror_descent",
                               Array(DType::uint8, {5}, std::vector<std::byte>(5, std::byte{9})));
  return checkpoint;
}

TEST(TrainCheckpointFile, KeepsEveryBit) {
  const TemporaryFolder folder;
  const TrainCheckpoint saved = example();
  save_train_checkpoint(folder / "c.safetensors", saved);
  const TrainCheckpoint loaded = load_train_checkpoint(folder / "c.safetensors");
  EXPECT_EQ(loaded.config, saved.config);
  EXPECT_EQ(loaded.train_fingerprint, saved.train_fingerprint);
  EXPECT_EQ(loaded.test_fingerprint, saved.test_fingerprint);
  ASSERT_EQ(loaded.finished.size(), 1u);
  EXPECT_EQ(loaded.finished[0].status, TrialStatus::diverged);
  EXPECT_TRUE(std::isnan(loaded.finished[0].train_loss));
  EXPECT_EQ(loaded.finished[0].init_seed, saved.finished[0].init_seed);
  EXPECT_EQ(loaded.finished[0].test_accuracy, std::nullopt);
  EXPECT_EQ(loaded.current.trial, 1);
  EXPECT_EQ(loaded.current.status, TrialStatus::running);
  EXPECT_EQ(loaded.current.test_accuracy, saved.current.test_accuracy);
  EXPECT_EQ(loaded.epoch, 3);
  EXPECT_EQ(loaded.step, 14);
  EXPECT_EQ(loaded.sums.loss, saved.sums.loss);
  EXPECT_EQ(loaded.sums.correct, 7);
  EXPECT_EQ(loaded.sums.samples, 9);
  EXPECT_EQ(loaded.sums.tokens, 11);
  EXPECT_EQ(loaded.sums.seconds, 0.1);
  EXPECT_EQ(loaded.metrics_bytes, 100);
  EXPECT_EQ(loaded.events_bytes, 200);
  EXPECT_EQ(loaded.weights, saved.weights);
  EXPECT_EQ(loaded.optimizer, saved.optimizer);
}

TEST(TrainCheckpointFile, EveryChangedByteIsNoticed) {
  const TemporaryFolder folder;
  const auto path = folder / "c.safetensors";
  save_train_checkpoint(path, example());
  const std::vector<std::byte> whole = read_file(path);
  for (std::size_t at = 0; at < whole.size(); ++at)
    for (const std::byte change : {std::byte{0x01}, std::byte{0x80}}) {
      std::vector<std::byte> damaged = whole;
      damaged[at] ^= change;
      try {
        parse_train_checkpoint(damaged, path.string());
        ADD_FAILURE() << "byte " << at << " of " << whole.size() << " was changed";
      } catch (const Error& error) {
        ASSERT_EQ(error.kind(), ErrorKind::bad_input) << error.what();
        ASSERT_NE(std::string_view(error.what()).find(path.string()), std::string_view::npos) << error.what();
      }
    }
}

TEST(TrainCheckpointFile, EveryTruncationIsNoticed) {
  const TemporaryFolder folder;
  const auto path = folder / "c.safetensors";
  save_train_checkpoint(path, example());
  const std::vector<std::byte> whole = read_file(path);
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_THROW(parse_train_checkpoint(std::span(whole).first(size), "c"), Error) << size;
}

TEST(TrainCheckpointFile, SaysWhatItIsNot) {
  const TemporaryFolder folder;
  const auto path = folder / "c.safetensors";
  const auto message = [&](const Safetensors& content) -> std::string {
    save_safetensors(path, content);
    try {
      load_train_checkpoint(path);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(message({}).find("is not a checkpoint of attmirror deep train"), std::string::npos);
  save_train_checkpoint(path, example());
  Safetensors content = load_safetensors(path);
  content.metadata["format_version"] = "2";
  EXPECT_NE(message(content).find("format_version is \"2\": this version of attmirror reads 1"),
            std::string::npos);
  content.metadata["format_version"] = "1";
  content.tensors.erase("weights.head");
  EXPECT_NE(message(content).find("is damaged"), std::string::npos);
}

}  // namespace
}  // namespace attmirror::deep
