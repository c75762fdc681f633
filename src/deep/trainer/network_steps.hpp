// What a training does with its batches: steps of the optimizers, and the loss on the test set; by all processes
// together. When that happens, and what becomes of it, is said in trainer.cpp. Internal.
#pragma once

#include "deep/trainer/batch_source.hpp"
#include "deep/trainer/network_choice.hpp"
#include "deep/trainer/optimizer_set.hpp"
#include "deep/trainer/processes.hpp"
#include "deep/trainer/train_checkpoint.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include <torch/types.h>

namespace attmirror::deep {

// Batches that are made while the device computes.
inline constexpr std::size_t batches_ahead = 4;
// How often a GPU is waited for where several processes must agree on what they see.
inline constexpr std::int64_t steps_between_looks = 32;

// Loss and hits, summed where they are computed.
class DeviceSums {
 public:
  DeviceSums(at::Device device, const EpochSums& start);

  void add(const at::Tensor& loss, const at::Tensor& correct_count);
  double loss() const { return loss_.item<double>(); }  // waits for a GPU
  std::int64_t correct() const { return correct_.item<std::int64_t>(); }

 private:
  at::Tensor loss_, correct_;
};

// Why a process would have the training pause before its next step.
struct PauseWishes {
  bool stop = false, late = false;
};

struct StepResult {
  at::Tensor loss;  // summed over the batch of all processes
  // Of any of several processes; none after a step at which a GPU was not asked.
  std::optional<PauseWishes> wishes = {};
};

class NetworkSteps {
 public:
  // All must outlive it.
  NetworkSteps(const TrainConfig& config, const BatchSources& sources, const Machine& machine,
               Processes& processes)
      : config_(config), sources_(sources), machine_(machine), processes_(processes) {}

  // Forward, backward, step `step` of the epoch; adds to `sums`. Several processes tell each other their wishes.
  StepResult train_on(const PlannedBatch& planned, std::int64_t step, Network& network,
                      OptimizerSet& optimizers, PauseWishes wishes, DeviceSums& sums) const;

  // Mean loss and accuracy on the test set.
  std::pair<double, double> evaluate(Network& network) const;

 private:
  struct Computed {
    at::Tensor loss, hits;  // undefined in a process that had no sample of the batch
  };
  std::optional<PauseWishes> add_up(Network& network, Computed& computed, PauseWishes wishes,
                                    std::int64_t step) const;

  const TrainConfig& config_;
  const BatchSources& sources_;
  const Machine& machine_;
  Processes& processes_;
};

}  // namespace attmirror::deep
