// The update rules, one file each, as make_rule() makes them. All take validated options, the shapes of the blocks that
// they move and all blocks of weights.
#pragma once

#include <attmirror/descent/update_rule.hpp>
#include <attmirror/mirror/mirror_map.hpp>

#include <memory>
#include <span>
#include <vector>

namespace attmirror {

std::unique_ptr<UpdateRule> make_mirror_descent_rule(const MirrorDescent& options,
                                                     std::span<const BlockShape> trained,
                                                     const ParameterBlocks& weights);
std::unique_ptr<UpdateRule> make_gradient_descent_rule(const GradientDescent& options,
                                                       std::span<const BlockShape> trained,
                                                       const ParameterBlocks& weights);
std::unique_ptr<UpdateRule> make_steepest_descent_rule(const SteepestDescent& options,
                                                       std::span<const BlockShape> trained,
                                                       const ParameterBlocks& weights);
std::unique_ptr<UpdateRule> make_adam_rule(const Adam& options, std::span<const BlockShape> trained,
                                           const ParameterBlocks& weights);

// The geometry of mirror descent.
std::unique_ptr<MirrorMap> make_map(const MirrorDescent& options);

// Where the trained blocks lie among all blocks of the model.
class TrainedBlocks {
 public:
  TrainedBlocks(std::span<const BlockShape> trained, const ParameterBlocks& weights) {
    for (const BlockShape& block : trained) positions_.push_back(weights.find(block.name));
  }
  std::ptrdiff_t count() const { return static_cast<std::ptrdiff_t>(positions_.size()); }
  MatrixView of(ParameterBlocks& weights, std::ptrdiff_t b) const {
    return weights.view(positions_[static_cast<std::size_t>(b)]);
  }
  ConstMatrixView of(const ParameterBlocks& weights, std::ptrdiff_t b) const {
    return weights.view(positions_[static_cast<std::size_t>(b)]);
  }

 private:
  std::vector<std::ptrdiff_t> positions_;
};

}  // namespace attmirror
