// What the update rules have in common. Each is a file of its own, NAME_rule.cpp, which defines make_rule() and
// geometry_norm() of its options (descent/optimizer.hpp); nothing else names the rule.
#pragma once

#include "descent/update_rule.hpp"
#include <attmirror/mirror/mirror_map.hpp>

#include <memory>
#include <span>
#include <vector>

namespace attmirror {

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
