// Spectral steps (Muon) for all matrices of a GPU at once. Internal.
//
// tensor_step() takes one matrix at a time, in double: about 70 kernels a matrix, each too small for a GPU. Here
// matrices of one shape, or of its transpose, are stacked, and every operation of Newton and Schulz is one batched
// product, in float32. Results agree with tensor_step() up to the rounding of float32.
#pragma once

#include "deep/parameter_list.hpp"

#include <vector>

namespace attmirror::deep {

// Whether the step of a batch can be taken together with others: Newton-Schulz directions of matrices on a GPU, not
// in float64. `fused` off asks for tensor_step().
bool takes_matrix_steps(const StepBatch& batch);

// The steps of all of these, whose states are prepared.
void matrix_steps(const std::vector<const StepBatch*>& batches);

}  // namespace attmirror::deep
