#include "deep/matrix_steps.hpp"

#include "mirror/newton_schulz.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include <ATen/ATen.h>

namespace attmirror::deep {

namespace {

// One matrix of a step: d on its way to the direction, and where it goes.
struct MatrixStep {
  const StepBatch* batch = nullptr;
  at::Tensor target;     // the master, or the weights
  at::Tensor weights;    // undefined where they are the target
  at::Tensor d;          // [rows, columns], float32
  bool is_tall = false;  // d is stacked transposed, so that the Gram matrix is the smaller one

  at::Tensor rate() const {
    const GroupRule& rule = batch->rule;
    return rule.device_rate.defined() ? rule.device_rate.reshape({1})
                                      : at::full({1}, rule.step.rate, d.options());
  }
};

// What a step goes along before the polar factor: the gradient, or momentum as tensor_step() has it.
at::Tensor step_vector(const StepParameter& entry, const StepOptions& options) {
  at::Tensor d = entry.gradient.to(at::kFloat);
  const double factor = (options.maximize ? -1 : 1) / options.gradient_scale;
  if (factor != 1) d = d * factor;
  if (options.momentum == 0) return d;
  at::Tensor momentum = entry.state->momentum();
  momentum.mul_(options.momentum).add_(d);
  return options.nesterov ? at::add(d, momentum, options.momentum) : momentum;
}

// Numbers without the entries that would divide by zero: a gradient of zeros has no direction.
at::Tensor or_one(const at::Tensor& numbers) {
  return at::where(numbers == 0, at::ones_like(numbers), numbers);
}

// Stack [count, rows, columns], rows <= columns: of each matrix the polar factor, as newton_schulz() finds it.
at::Tensor polar_factors(at::Tensor x, std::int64_t iterations) {
  const NewtonSchulzOptions polynomial;
  // The largest entry first, so that the norm neither over- nor underflows.
  x = x / or_one(x.abs().amax({1, 2}, /*keepdim=*/true));
  x = x / or_one(at::norm(x, 2, at::IntArrayRef{1, 2}, /*keepdim=*/true));
  if (x.size(1) == 1) return x;  // a vector is its own polar factor, once it has length 1
  for (std::int64_t turn = 0; turn < iterations; ++turn) {
    const at::Tensor gram = at::bmm(x, x.transpose(1, 2));
    const at::Tensor inner = at::baddbmm(gram, gram, gram, polynomial.b, polynomial.c);
    x = at::baddbmm(x, inner, x, polynomial.a);
  }
  return x;
}

// Takes the steps of matrices that have the same shape once the tall ones are transposed.
void step_together(const std::vector<MatrixStep>& steps, std::int64_t iterations) {
  std::vector<at::Tensor> stacked, rates;
  for (const MatrixStep& step : steps) {
    stacked.push_back(step.is_tall ? step.d.t() : step.d);
    rates.push_back(step.rate());
  }
  const at::Tensor moves = polar_factors(at::stack(stacked), iterations) * at::cat(rates).view({-1, 1, 1});
  std::vector<at::Tensor> targets, differences;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const MatrixStep& step = steps[i];
    const at::Tensor move = moves[static_cast<std::int64_t>(i)];
    const double decay = step.batch->rule.step.weight_decay;
    if (decay != 0) step.target.mul_(1 - decay * rates[i].reshape({}));
    targets.push_back(step.target);
    differences.push_back((step.is_tall ? move.t() : move).reshape(step.target.sizes()));
  }
  at::_foreach_sub_(targets, differences);
  for (const MatrixStep& step : steps)
    if (step.weights.defined()) step.weights.copy_(step.target);
}

}  // namespace

bool takes_matrix_steps(const StepBatch& batch) {
  return batch.rule.newton_schulz > 0 && batch.rule.fused && batch.device.is_cuda() &&
         batch.element != StepElement::float64;
}

void matrix_steps(const std::vector<const StepBatch*>& batches) {
  // Iterations, rows, columns and the GPU.
  std::map<std::array<std::int64_t, 4>, std::vector<MatrixStep>> by_shape;
  for (const StepBatch* batch : batches)
    for (const StepParameter& entry : batch->parameters) {
      MatrixStep step;
      step.batch = batch;
      const bool has_master = entry.state->master().defined();
      step.target = has_master ? entry.state->master() : entry.weights;
      if (has_master) step.weights = entry.weights;
      const std::int64_t rows = entry.weights.dim() == 0 ? 1 : entry.weights.size(0),
                         columns = entry.weights.numel() / rows;
      step.d = step_vector(entry, batch->rule.step).reshape({rows, columns});
      step.is_tall = rows > columns;
      by_shape[{batch->rule.newton_schulz, std::min(rows, columns), std::max(rows, columns),
                batch->device.index()}]
          .push_back(std::move(step));
    }
  for (const auto& [key, steps] : by_shape) step_together(steps, key[0]);
}

}  // namespace attmirror::deep
