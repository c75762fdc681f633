#include "deep/parameter_list.hpp"

#include <attmirror/base/error.hpp>

#include <algorithm>
#include <ostream>

#include <ATen/ATen.h>
#include <ATen/MemoryOverlap.h>
#include <c10/util/StringUtil.h>

namespace attmirror::deep {

namespace {

// A parameter by its place; becomes text only in a complaint.
struct Place {
  std::size_t group, index;
};
std::ostream& operator<<(std::ostream& out, const Place& place) {
  return out << "parameter " << place.index << " of group " << place.group;
}

StepElement element_of(const at::Tensor& parameter, const Place& where) {
  if (parameter.layout() != c10::kStrided)
    throw bad_input(c10::str(where, " is sparse: expected a dense tensor"));
  switch (parameter.scalar_type()) {
    case at::kFloat:
      return StepElement::float32;
    case at::kBFloat16:
      return StepElement::bfloat16;
    case at::kHalf:
      return StepElement::float16;
    case at::kDouble:
      return StepElement::float64;
    default:
      throw bad_input(c10::str(where, " is of type ", parameter.scalar_type(),
                               ": expected Float, Double, BFloat16 or Half"));
  }
}

// The type of a parameter that can be trained with this gradient; throws otherwise.
StepElement checked(const at::Tensor& parameter, const at::Tensor& gradient, const Place& where) {
  const StepElement element = element_of(parameter, where);
  if (parameter.is_inference())
    throw bad_input(c10::str(where, " was made in inference mode, and such tensors are not trained"));
  if (at::has_internal_overlap(parameter) == at::MemOverlap::Yes)
    throw bad_input(
        c10::str(where, " has several entries in one place of memory (expanded): clone() it first"));
  if (gradient.layout() != c10::kStrided)
    throw bad_input(c10::str("the gradient of ", where, " is sparse: expected a dense one"));
  if (gradient.scalar_type() != parameter.scalar_type())
    throw bad_input(c10::str("the gradient of ", where, " is of type ", gradient.scalar_type(),
                             ", and the parameter of type ", parameter.scalar_type()));
  if (gradient.device() != parameter.device())
    throw bad_input(c10::str("the gradient of ", where, " is on ", gradient.device(),
                             ", and the parameter on ", parameter.device()));
  if (gradient.sizes() != parameter.sizes())
    throw bad_input(c10::str("the gradient of ", where, " has shape ", gradient.sizes(),
                             ", and the parameter ", parameter.sizes()));
  return element;
}

StepEngine choose_engine(const GroupRule& rule, const at::Device& device) {
  if (!rule.fused || rule.direction) return StepEngine::tensors;
  if (device.is_cpu()) return StepEngine::cpu;
#if ATTMIRROR_HAS_CUDA
  if (device.is_cuda()) return StepEngine::cuda;
#endif
  TORCH_WARN_ONCE("attmirror has no kernel for ", device,
                  " in this build: its steps are made of tensor operations, which are many times slower");
  return StepEngine::tensors;
}

}  // namespace

at::ScalarType state_type(StepElement element) {
  return element == StepElement::float64 ? at::kDouble : at::kFloat;
}

bool has_layout_of(const at::Tensor& like, const at::Tensor& tensor) {
  return tensor.sizes() == like.sizes() &&
         ((like.is_contiguous() && tensor.is_contiguous()) || tensor.strides() == like.strides());
}

at::Tensor in_layout_of(const at::Tensor& like, const at::Tensor& tensor) {
  if (has_layout_of(like, tensor) && !tensor.is_neg()) return tensor;
  at::Tensor result = at::empty_strided(like.sizes(), like.strides(), tensor.options());
  result.copy_(tensor);
  return result;
}

void add_batches(std::size_t group, const std::vector<at::Tensor>& parameters, const GroupRule& rule,
                 std::vector<StepBatch>& batches) {
  const std::size_t first = batches.size();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const at::Tensor& parameter = parameters[i];
    if (!parameter.defined()) throw bad_input(c10::str(Place{group, i}, " is an undefined tensor"));
    const at::Tensor& gradient = parameter.grad();
    if (!gradient.defined()) continue;
    const StepElement element = checked(parameter, gradient, {group, i});
    if (parameter.numel() == 0) continue;

    auto batch = std::find_if(batches.begin() + static_cast<std::ptrdiff_t>(first), batches.end(),
                              [&](const StepBatch& candidate) {
                                return candidate.element == element && candidate.device == parameter.device();
                              });
    if (batch == batches.end()) {
      batches.push_back(
          {group, rule, choose_engine(rule, parameter.device()), element, parameter.device(), {}});
      batch = batches.end() - 1;
    }
    StepParameter entry;
    entry.parameter = parameter;
    entry.weights = parameter.is_non_overlapping_and_dense() ? parameter : parameter.contiguous();
    entry.gradient = in_layout_of(entry.weights, gradient);
    batch->parameters.push_back(std::move(entry));
  }
}

}  // namespace attmirror::deep
