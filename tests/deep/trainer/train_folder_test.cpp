// Checkpoints that a thread writes behind the training.
#include "deep/trainer/train_folder.hpp"

#include "support/files.hpp"
#include <attmirror/base/error.hpp>

#include <gtest/gtest.h>

namespace attmirror::deep {
namespace {

using test::TemporaryFolder;

TrainCheckpoint checkpoint_at(std::int64_t step) {
  TrainCheckpoint checkpoint;
  checkpoint.config = to_json(TrainConfig{});
  checkpoint.step = step;
  checkpoint.weights.emplace("head", Array({2, 2}, std::vector<float>{1, 2, 3, 4}));
  return checkpoint;
}

TEST(TrainFolder, TheLastCheckpointBehindIsThereAtTheEnd) {
  const TemporaryFolder temporary;
  TrainFolder folder(temporary / "run");
  folder.begin(to_json(TrainConfig{}), std::nullopt);
  folder.begin_trial(0);
  for (std::int64_t step = 1; step <= 20; ++step) folder.save(checkpoint_at(step), TrainFolder::Save::behind);
  folder.finish("{}");
  EXPECT_EQ(load_train_checkpoint(folder.checkpoint_path()).step, 20);
}

TEST(TrainFolder, OneThatIsWrittenNowIsNotOvertaken) {
  const TemporaryFolder temporary;
  TrainFolder folder(temporary / "run");
  folder.begin(to_json(TrainConfig{}), std::nullopt);
  folder.begin_trial(0);
  for (std::int64_t step = 1; step <= 20; ++step) {
    folder.save(checkpoint_at(2 * step), TrainFolder::Save::behind);
    folder.save(checkpoint_at(2 * step + 1), TrainFolder::Save::now);
    ASSERT_EQ(load_train_checkpoint(folder.checkpoint_path()).step, 2 * step + 1);
  }
}

// What a thread could not write is told by the next call that writes.
TEST(TrainFolder, AFailureBehindIsNotLost) {
  const TemporaryFolder temporary;
  TrainFolder folder(temporary / "run");
  folder.begin(to_json(TrainConfig{}), std::nullopt);
  folder.begin_trial(0);
  std::filesystem::create_directory(folder.checkpoint_path());  // a file cannot take its place
  EXPECT_NO_THROW(folder.save(checkpoint_at(1), TrainFolder::Save::behind));
  EXPECT_THROW(folder.save(checkpoint_at(2), TrainFolder::Save::behind), Error);
  EXPECT_NO_THROW(folder.save(checkpoint_at(3), TrainFolder::Save::behind));
  EXPECT_THROW(folder.finish("{}"), Error);
  EXPECT_FALSE(std::filesystem::exists(temporary / "run/results.json"));
}

}  // namespace
}  // namespace attmirror::deep
