// The random numbers of a block that starts from normal or uniform. Internal.
#pragma once

#include "base/random.hpp"
#include <attmirror/base/matrix.hpp>
#include <attmirror/descent/initialization.hpp>

namespace attmirror {

// Entry (i, j) is random number i * cols + j of the block's own stream: N(0, std^2), or uniform within 1/sqrt(dim).
void fill_random(Eigen::Ref<Matrix> block, const Initialization& init, const CounterRandom& random,
                 std::ptrdiff_t dim);
void fill_random(Eigen::Ref<Matrix> block, const Initialization& init, RandomStream stream,
                 std::ptrdiff_t dim);

}  // namespace attmirror
