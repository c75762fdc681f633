// The folder of `attmirror deep train`, for those who look at it: without LibTorch, and while the training goes on.
//
//   config.json     the configuration, by tables
//   metrics.jsonl   a line per trial and epoch
//   results.json    how it ended; not there before
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace attmirror {

// A line of metrics.jsonl. Numbers that it lacks, or that were not finite, are NaN.
struct TrainingEpoch {
  std::int64_t trial = 0, epoch = 0, step = 0;
  double train_loss = 0, train_accuracy = 0;  // while the weights moved, with dropout
  double test_loss = 0, test_accuracy = 0;    // NaN between evaluations
  double seconds = 0;                         // of the trial so far
  // Measures of the weights: "weight_norm", and for each map "K.norm", "K.largest", "K.above_0.06", "K.sparsity".
  std::map<std::string, double> weights = {};
};

struct TrainingTrial {
  std::int64_t trial = 0;
  std::string status;                 // "completed", "reached accuracy", "diverged", or "running"
  std::vector<TrainingEpoch> epochs;  // by epoch, each once

  // NaN, and epoch 0, where nothing was evaluated.
  std::pair<double, std::int64_t> best_test_accuracy() const;
  double last_test_accuracy() const;
};

struct TrainingFolder {
  std::filesystem::path path;
  std::string status;  // "completed", "stopped", "time limit", "diverged"; "unfinished" without results.json
  std::vector<std::pair<std::string, std::string>>
      configuration;                  // ("optimizer.p", "1.1"), in the file's order
  std::vector<TrainingTrial> trials;  // by number

  // The value of a key; empty where there is none.
  std::string value(const std::string& key) const;
  // "md p = 1.1, lr = 0.0008" and "encoder, 3 blocks, 3 heads, width 384".
  std::string optimizer_text() const;
  std::string model_text() const;
};

// A last line without an end is being written, and left out. Throws Error (bad input), naming file and line.
TrainingFolder load_training(const std::filesystem::path& path);

}  // namespace attmirror
