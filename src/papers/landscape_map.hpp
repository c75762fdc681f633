// The map of basins that the experiment on landscapes draws. Internal.
#pragma once

#include <attmirror/base/figure.hpp>
#include <attmirror/base/matrix.hpp>
#include <attmirror/papers/experiment.hpp>

#include <cstdint>

namespace attmirror {

// Starts in the plane of the best tokens' solution and that of the strongest other one, colored by where they end.
Figure basin_map(const ExperimentContext& context);

// A square matrix of Frobenius norm 1 in a random direction.
Matrix unit_noise(std::ptrdiff_t dim, std::uint64_t seed);

}  // namespace attmirror
