// Batches of a data set, in two halves: what a thread can do ahead, and what the device does when its turn comes. Internal.
#pragma once

#include <attmirror/deep/network.hpp>
#include <attmirror/deep/train_config.hpp>
#include <attmirror/deep/trainer.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace attmirror::torch {

// A batch on its way to the device.
struct PlannedBatch {
  std::vector<std::int64_t> samples;  // of this process
  std::int64_t first_sample = 0;      // its place in the batch that all processes share
  std::int64_t all_samples = 0;       // of that batch
  std::int64_t all_tokens = 0;
  std::optional<DropoutPlace> random = {};  // of dropout and augmentation; none for evaluation
  Batch batch = {};                         // texts are packed already
};

class BatchSource {
 public:
  virtual ~BatchSource() = default;
  virtual std::int64_t rows() const = 0;
  virtual std::int64_t length(std::int64_t row) const = 0;  // tokens
  virtual std::uint64_t fingerprint() const = 0;            // of the rows and their labels
  virtual void prepare(PlannedBatch& planned) const = 0;    // on any thread
  virtual Batch on_device(const PlannedBatch& planned) const = 0;

  // The part of process `rank` of `size` of a batch of these rows.
  PlannedBatch plan(std::span<const std::int64_t> rows, std::optional<DropoutPlace> random, std::int64_t rank,
                    std::int64_t size) const;
};

// Sources view the data, which must outlive them.
struct BatchSources {
  std::unique_ptr<BatchSource> train, test;
};
BatchSources batch_sources(const TrainConfig& config, const TrainData& data, ::at::Device device);

}  // namespace attmirror::torch
