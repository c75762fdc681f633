// What takes the place of the gradient under momentum: M <- beta M + weight g, with weight 1 (heavy ball) or
// 1 - beta (average), kept as numbers times e^scale per block (descent/scaled_blocks.hpp).
#pragma once

#include "descent/scaled_blocks.hpp"
#include "descent/update_rule.hpp"
#include <attmirror/descent/step_options.hpp>

namespace attmirror {

class MomentumBuffer {
 public:
  MomentumBuffer(const Momentum& options, std::span<const BlockShape> trained);

  // Takes in block b of this step's gradient and gives what the rule steps along: M, or the gradient itself
  // where there is no momentum. Once per block and step.
  ScaledBlock add(const Gradient& gradient, std::ptrdiff_t b);

  // Of the rule that owns it, for checkpoints; both empty without momentum.
  std::vector<std::pair<std::string, ParameterBlocks*>> state();
  std::vector<std::pair<std::string, std::span<double>>> numbers();

 private:
  Momentum options_;
  ParameterBlocks average_;
  std::vector<double> log_scale_;
};

}  // namespace attmirror
