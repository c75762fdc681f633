// The folder of a training that this process writes. Internal.
//
// config.json and results.json, the checkpoint and weights are replaced as a whole. metrics.jsonl and the event files
// grow; a checkpoint knows how long they were, and on a resume what came after is cut off: it will come again.
#pragma once

#include "base/result_folder.hpp"
#include "deep/trainer/train_checkpoint.hpp"
#include <attmirror/deep/trainer.hpp>

#include <cstdint>
#include <filesystem>
#include <future>
#include <optional>
#include <string>
#include <string_view>

namespace attmirror::deep {

// A file that is appended to, from a known length on.
class AppendedFile {
 public:
  // Keeps the first `bytes` of what is there. Throws Error (bad input) if there are fewer.
  AppendedFile(std::filesystem::path path, std::int64_t bytes);
  ~AppendedFile();
  AppendedFile(const AppendedFile&) = delete;
  AppendedFile& operator=(const AppendedFile&) = delete;

  void append(std::string_view text);
  void sync();  // to the disk
  std::int64_t bytes() const { return bytes_; }

 private:
  std::filesystem::path path_;
  int file_ = -1;
  std::int64_t bytes_ = 0;
};

class TrainFolder {
 public:
  // Makes the folder if it is not there and takes a lock on it; see ResultFolder.
  explicit TrainFolder(std::filesystem::path path);

  bool holds_run() const { return files_.holds_result(); }

  // Starts the files anew, or goes on with those of a checkpoint; what a killed process left half-written is removed.
  void begin(const std::string& config, const std::optional<TrainCheckpoint>& checkpoint);

  void begin_trial(std::int64_t trial);  // its event file, if it is not that of the checkpoint
  void append(const EpochRow& row);
  // With the lengths of the files. `behind` returns while a thread is still writing, so that a GPU need not wait for a
  // disk; if that fails, the next call of append(), save() or finish() throws. A killed process leaves the last
  // checkpoint that was complete.
  enum class Save { now, behind };
  void save(TrainCheckpoint checkpoint, Save when);
  void finish(const std::string& results);

  std::filesystem::path checkpoint_path() const { return path_ / "checkpoint.safetensors"; }
  std::filesystem::path config_path() const { return path_ / "config.json"; }
  std::filesystem::path final_path(std::int64_t trial, std::int64_t trials) const;
  std::filesystem::path epoch_path(std::int64_t epoch, std::int64_t trial, std::int64_t trials) const;

 private:
  std::filesystem::path events_path(std::int64_t trial) const;
  void remove_run();
  void remove_later_events(std::int64_t first_trial);
  void remove_events(const std::filesystem::path& file);
  void wait_for_save();

  ResultFolder files_;
  std::filesystem::path path_;
  std::optional<AppendedFile> metrics_, events_;
  std::int64_t events_trial_ = -1;
  std::future<void>
      saving_;  // a checkpoint behind the training; the last member, so that it ends before the lock does
};

// The checkpoint of a folder, for a run with this configuration and these data; none where the run was killed before
// its first. Reads only: any process may call it. Throws Error (bad input) where it is damaged or another run's, and
// where config.json is.
std::optional<TrainCheckpoint> resumable_checkpoint(const std::filesystem::path& folder,
                                                    const TrainConfig& config,
                                                    std::uint64_t train_fingerprint,
                                                    std::uint64_t test_fingerprint);

}  // namespace attmirror::deep
