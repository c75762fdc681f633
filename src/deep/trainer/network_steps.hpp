// What a training does with its batches: steps of the optimizers, and the loss on the test set; by all processes
// together. When that happens, and what becomes of it, is said in trainer.cpp. Internal.
#pragma once

#include "deep/step_graphs.hpp"
#include "deep/trainer/batch_source.hpp"
#include "deep/trainer/network_choice.hpp"
#include "deep/trainer/optimizer_set.hpp"
#include "deep/trainer/processes.hpp"
#include "deep/trainer/train_checkpoint.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include <torch/types.h>

namespace attmirror::deep {

// Batches that are made while the device computes.
inline constexpr std::size_t batches_ahead = 4;
// How often a GPU is waited for where several processes must agree on what they see.
inline constexpr std::int64_t steps_between_looks = 32;

// Different shapes of batches whose work is recorded, in training and for each set that is measured; what is done with
// more is started kernel by kernel.
inline constexpr std::size_t most_recorded_shapes = 128;

// Loss and hits, summed where they are computed, and always in the same place: recorded steps know it.
class DeviceSums {
 public:
  explicit DeviceSums(at::Device device);

  void start(const EpochSums& from);
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
  at::Tensor loss;  // summed over the batch of all processes; undefined after a recorded step
  // Of any of several processes; none after a step at which a GPU was not asked.
  std::optional<PauseWishes> wishes = {};
};

class NetworkSteps {
 public:
  // All must outlive it. `on_note` is told, once, why work is not recorded where it could have been. Throws Error
  // (bad input) where train.graphs is "on" and cannot be.
  NetworkSteps(const TrainConfig& config, const BatchSources& sources, const Machine& machine,
               Processes& processes, std::function<void(const std::string&)> on_note);

  // Before the first step of another network, optimizer or sums: what was recorded is forgotten.
  void begin_trial(OptimizerSet& optimizers);

  // Forward, backward, step `step` of the epoch; adds to `sums`. Several processes tell each other their wishes.
  StepResult train_on(const PlannedBatch& planned, std::int64_t step, Network& network,
                      OptimizerSet& optimizers, PauseWishes wishes, DeviceSums& sums);

  // Mean loss and accuracy on the rows of a source, which must live until the next begin_trial().
  std::pair<double, double> evaluate(Network& network, const BatchSource& source);

  // Shapes of batches whose steps or evaluations are recorded, in this trial.
  std::size_t recordings() const { return graphs_ ? graphs_->size() : 0; }

 private:
  struct Computed {
    at::Tensor loss, hits;  // undefined in a process that had no sample of the batch
  };
  // What is done with batches of one kind, by their shape: the first of a shape is run, the second recorded, the rest
  // are repeated.
  using Shape = std::pair<std::int64_t, std::int64_t>;  // samples, rows
  struct ShapeWork {
    PlannedBatch sent;  // always in the same memory
    std::optional<std::size_t> recorded = {};
  };
  struct RecordedWork {
    const char* what;      // in messages
    bool records = false;  // in this trial
    std::map<Shape, ShapeWork> shapes = {};
  };
  using Work = std::function<void(const PlannedBatch& sent)>;

  Computed computed_on(const PlannedBatch& sent, Network& network) const;
  void train_recorded(const PlannedBatch& planned, Network& network, OptimizerSet& optimizers,
                      DeviceSums& sums);
  // True where nothing was called: the GPU repeats what was recorded before.
  bool repeats(RecordedWork& recorded, const PlannedBatch& planned, const Work& work);
  void stop_recording(RecordedWork& recorded, const std::string& why);
  std::optional<PauseWishes> add_up(Network& network, Computed& computed, PauseWishes wishes,
                                    std::int64_t step) const;

  const TrainConfig& config_;
  const BatchSources& sources_;
  const Machine& machine_;
  Processes& processes_;
  std::function<void(const std::string&)> on_note_;
  std::optional<StepGraphs> graphs_;
  RecordedWork trained_{"steps"};
  bool records_evaluations_ = false;  // of sources that were not evaluated before
  // By source: a recorded evaluation knows where its images are, and how long its longest text is.
  std::map<const BatchSource*, RecordedWork> evaluated_;
  DeviceSums evaluated_sums_;
};

}  // namespace attmirror::deep
