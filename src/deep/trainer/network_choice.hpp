// The network that a configuration asks for, and the device and arithmetic it gets. Internal.
#pragma once

#include <attmirror/deep/network.hpp>
#include <attmirror/deep/train_config.hpp>
#include <attmirror/deep/trainer.hpp>

#include <cstdint>
#include <memory>

namespace attmirror::deep {

struct Machine {
  at::Device device = at::kCPU;
  at::ScalarType compute = at::kFloat;
};

// Throws Error (bad input) for a GPU that is not there. `local_rank` chooses among several for "auto" and "cuda".
Machine chosen_machine(const LoopConfig& config, std::int64_t local_rank);

// On the device, with the initial weights of `seed`. Throws Error (bad input) where it does not fit the data.
std::shared_ptr<Network> make_network(const TrainConfig& config, const TrainData& data, std::uint64_t seed,
                                      const Machine& machine);

// Of all K, all Q and all V, and of all parameters. Waits for a GPU once.
struct WeightMeasures {
  double norm = 0;  // NaN or infinite where a weight is
  std::vector<EpochRow::MapMeasures> maps;
};
WeightMeasures measured_weights(const Network& network);

}  // namespace attmirror::deep
