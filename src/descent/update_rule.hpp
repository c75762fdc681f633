// An update rule at work: what the training loop calls once a step, and what a checkpoint must hold of it.
#pragma once

#include <attmirror/attention/gradient.hpp>
#include <attmirror/descent/optimizer.hpp>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace attmirror {

// What a rule may want to know of the run besides the gradient.
struct StepContext {
  std::int64_t step = 0;  // steps taken so far
  double loss = 0;        // at the weights that the gradient was taken at
};

// Its state belongs to one run.
class UpdateRule {
 public:
  virtual ~UpdateRule() = default;

  // Moves the trained blocks of `weights` by one step. `gradient` has the trained blocks in the same order.
  // Allocates nothing.
  virtual void step(const Gradient& gradient, const StepContext& context, ParameterBlocks& weights) = 0;

  // The rule's own memory in the shape of the trained blocks (the dual image y of mirror descent, momentum;
  // empty for plain gradient descent), and as plain numbers (logarithmic scales). Whoever puts back the values
  // of both, and the weights, has the rule as it was, to the bit.
  virtual std::vector<std::pair<std::string, ParameterBlocks*>> state() { return {}; }
  virtual std::vector<std::pair<std::string, std::span<double>>> numbers() { return {}; }
};

// The rule starts from `weights`, which hold all blocks of `model`. Throws Error (bad input) for options that
// are wrong, or wrong for this model: Polyak's step with the linear loss, which has no lower bound.
std::unique_ptr<UpdateRule> make_rule(const Optimizer& optimizer, const Attention& model,
                                      const ParameterBlocks& weights);

// The same for any model: the shapes of the blocks to move, in the order of the gradient's, and all blocks.
std::unique_ptr<UpdateRule> make_rule(const Optimizer& optimizer, const std::vector<BlockShape>& trained,
                                      const ParameterBlocks& weights);

}  // namespace attmirror
