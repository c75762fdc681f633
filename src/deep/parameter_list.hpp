// The parameters of one step: looked at, brought into a common layout, and sorted into calls of a kernel. Internal.
//
// A kernel sees arrays, so weights, gradient and state of a parameter must lie in memory in the same order. Where the
// weights fill their memory without gaps, in whatever order (a transposed matrix, channels last), the others take
// that order. Weights with gaps (every second column of a matrix) are stood in for by a copy, which goes back after
// the step.
#pragma once

#include <attmirror/deep/fused_optimizer.hpp>

#include <cstddef>
#include <vector>

namespace attmirror::deep {

struct StepParameter {
  at::Tensor parameter;
  at::Tensor weights;   // the parameter, or a copy without gaps
  at::Tensor gradient;  // in the layout of the weights
  FusedParamState* state = nullptr;

  bool is_copy() const { return !weights.is_same(parameter); }
};

// What carries out a step.
enum class StepEngine { cpu, cuda, tensors };

// The parameters of one group with one type and device.
struct StepBatch {
  std::size_t group = 0;
  GroupRule rule;
  StepEngine engine = StepEngine::tensors;
  StepElement element = StepElement::float32;
  at::Device device = at::kCPU;
  std::vector<StepParameter> parameters;
};

// The type of masters and momentum for parameters of that type.
at::ScalarType state_type(StepElement element);

// Adds the parameters of a group that have gradients, without states. Writes to nothing. Throws Error (bad input)
// with the group and the index of a parameter that cannot be trained, or whose gradient does not fit.
void add_batches(std::size_t group, const std::vector<at::Tensor>& parameters, const GroupRule& rule,
                 std::vector<StepBatch>& batches);

// `tensor` with its numbers in the order in memory that `like` has: itself, or a copy. Both have the same shape.
at::Tensor in_layout_of(const at::Tensor& like, const at::Tensor& tensor);
bool has_layout_of(const at::Tensor& like, const at::Tensor& tensor);

}  // namespace attmirror::deep
