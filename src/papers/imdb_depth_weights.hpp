// Weights of K, Q and V in p1-imdb-depth: how many are large, the largest, and Hoyer sparsity. Internal.
//
// P1 counts weights above 0.06 in size, over all blocks, of one network of each optimizer at the end of its training.
// But weights grow as long as a network is trained, and optimizers take more or fewer epochs. So the same numbers are
// also taken at equal training accuracy.
#pragma once

#include "papers/imdb_depth.hpp"

#include <array>
#include <optional>
#include <vector>

namespace attmirror {

// Over the seeds of a group, by map: K, Q, V.
struct WeightSummary {
  std::array<SampleSummary, 3> above;    // how many exceed 0.06 in size, over all blocks
  std::array<SampleSummary, 3> largest;  // in size
  std::array<SampleSummary, 3> sparsity;
  SampleSummary mean_sparsity;  // of the three
};
// After the last epoch.
WeightSummary weights_at_end(const TrainingGroup& group);

// At equal training accuracy: the highest, in steps of 0.1 %, that every training of a size reached which came to its
// end and did not collapse. A training is looked at after its first epoch at or above it.
struct EqualAccuracy {
  struct Group {
    const TrainingGroup* group;
    SampleSummary epoch;
    WeightSummary weights;
  };
  double accuracy = 0;        // a share
  std::vector<Group> groups;  // of the size, in the order of rows

  // Null: it has no such training.
  const Group* of(const TrainingGroup* group) const;
};
// Nothing unless two optimizers have such a training.
std::optional<EqualAccuracy> equal_accuracy(const DepthStudy& study, int blocks);

// By optimizer and size, at the end and at equal training accuracy, with P1's numbers.
Table depth_weights_table(const DepthStudy& study);

}  // namespace attmirror
