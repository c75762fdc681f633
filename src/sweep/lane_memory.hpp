// The memory of several runs side by side: entry e of all of them makes one vector of the kernels. Internal.
#pragma once

#include "sweep/lane_kernels.hpp"
#include <attmirror/attention/attention.hpp>
#include <attmirror/attention/gradient.hpp>

#include <cstddef>
#include <span>
#include <vector>

namespace attmirror {

// The kernels of the active instruction set.
const kernels::LaneTable& lane_table();

// A block of parameters in all lanes.
struct LaneBlock {
  Block name = Block::W;
  kernels::LaneShape shape{};
  double* weights = nullptr;
  // Of trained blocks only:
  double* dual = nullptr;       // y; the weights themselves where the rule has no dual image
  double* gradient = nullptr;   // times e^log_scale
  double* log_scale = nullptr;  // one entry
  double* terms = nullptr;      // for sums over the block; the padding stays 0
};

struct LaneMemory {
  std::ptrdiff_t width;
  kernels::LaneProblem problem;
  kernels::LanePoint point;
  kernels::LaneSums sums;
  kernels::LaneScratch scratch;
  std::vector<LaneBlock> blocks;  // those of the model in its order

  // `models` has one model per lane; they agree in all that lane_group() names, the first speaks for them. All
  // parameters are 0.
  enum class Rule { with_dual_image, weights_only };
  LaneMemory(std::span<const Attention* const> models, Jacobian jacobian, Rule rule);
  LaneMemory(const LaneMemory&) = delete;
  LaneMemory& operator=(const LaneMemory&) = delete;

  // Between one lane and a single run's memory. The scores of a fixed v follow from set_weights().
  void set_weights(std::ptrdiff_t lane, const Attention& model, const ParameterBlocks& from);
  void get_weights(std::ptrdiff_t lane, ParameterBlocks& into) const;
  void set_dual(std::ptrdiff_t lane, const ParameterBlocks& from);
  void get_gradient(std::ptrdiff_t lane, const LaneBlock& block, MatrixView into) const;

 private:
  AlignedVector memory_;
  double* scores_ = nullptr;  // problem.scores
};

}  // namespace attmirror
