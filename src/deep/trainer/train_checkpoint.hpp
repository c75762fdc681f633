// All that a training needs to go on, as one safetensors file. Internal.
//
// Tensors: weights.NAME, and optimizer.NAME (the optimizer's archive as bytes). Metadata: `state`, JSON of the rest
// below, and `checksum` of everything: a flipped bit in a weight would go unnoticed otherwise.
#pragma once

#include <attmirror/data/array.hpp>
#include <attmirror/deep/trainer.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace attmirror::deep {

// Sums over the steps of an epoch so far.
struct EpochSums {
  double loss = 0;
  std::int64_t correct = 0, samples = 0, tokens = 0;
  double seconds = 0;
};

struct TrainCheckpoint {
  std::string config;  // to_json(TrainConfig)
  std::uint64_t train_fingerprint = 0, test_fingerprint = 0;
  std::vector<TrialResult> finished;  // trials
  TrialResult current;                // the trial under way; its status is `running`
  std::int64_t epoch = 0, step = 0;   // the next one: epoch of the trial, step of the epoch
  EpochSums sums;
  std::int64_t metrics_bytes = 0, events_bytes = 0;  // of metrics.jsonl and of the current trial's event file
  NamedArrays weights, optimizer;                    // empty before a trial's first step
};

void save_train_checkpoint(const std::filesystem::path& path, const TrainCheckpoint& checkpoint);

// Throws Error (bad input), naming the file: damaged, of another version, or no checkpoint at all.
TrainCheckpoint load_train_checkpoint(const std::filesystem::path& path);
TrainCheckpoint parse_train_checkpoint(std::span<const std::byte> file, const std::string& name);

}  // namespace attmirror::deep
