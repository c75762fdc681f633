#include "deep/tensor_step.hpp"

#include "mirror/make_step_plan.hpp"

#include <cmath>
#include <limits>

#include <ATen/ATen.h>

namespace attmirror::deep {

namespace {

// The exponents of a step: those of the fraction that a p like 1.1 stands for. p = 2 where there is no mirror image.
kernels::StepPlan plan_of(const GroupRule& rule) {
  StepOptions options = rule.step;
  if (rule.direction || options.rule == StepRule::sign) options.rule = StepRule::mirror, options.p = 2;
  return make_step_plan(options);
}

// ||d||_q as a tensor of one number, without over- or underflow of the powers.
at::Tensor dual_norm(const at::Tensor& d, double q) {
  const at::Tensor largest = d.abs().max();
  const at::Tensor unit = at::where(largest == 0, at::ones_like(largest), largest);
  return unit * (d / unit).abs().pow(q).sum().pow(1 / q);
}

// d / norm, and 0 where there is nothing to divide: a gradient of zeros has no direction.
at::Tensor divided(const at::Tensor& d, const at::Tensor& norm) {
  return at::where(norm == 0, at::zeros_like(d), d / norm);
}

double map_exponent(const StepOptions& options) {
  return options.rule == StepRule::mirror ? make_step_plan(options).map.value : 1;
}

at::Tensor steepest_direction(const at::Tensor& d, const GroupRule& rule) {
  if (rule.direction) return widened(rule.direction(d));
  if (rule.step.rule == StepRule::sign) return d.sign();
  const kernels::StepPlan plan = plan_of(rule);
  return signed_power(divided(d, dual_norm(d, plan.dual.value)), plan.inverse.value);
}

}  // namespace

at::Tensor signed_power(const at::Tensor& x, double exponent) {
  return exponent == 1 ? x : x.sign() * x.abs().pow(exponent);
}

at::Tensor widened(const at::Tensor& x) {
  return x.to(x.device().is_cpu() || x.device().is_cuda() ? at::kDouble : at::kFloat);
}

void tensor_step(const at::Tensor& weights, const at::Tensor& gradient, const at::Tensor& master,
                 const at::Tensor& momentum, const GroupRule& rule) {
  const StepOptions& options = rule.step;
  at::Tensor d = widened(gradient) / options.gradient_scale;
  if (options.maximize) d = -d;
  if (options.momentum > 0) {
    momentum.copy_(options.momentum * widened(momentum) + d);
    const at::Tensor m = widened(momentum);
    d = options.nesterov ? d + options.momentum * m : m;
  }

  const bool is_mirror = options.rule == StepRule::mirror && !rule.direction;
  const kernels::StepPlan plan = plan_of(rule);
  if (!is_mirror)
    d = steepest_direction(d, rule);
  else if (options.normalized)
    d = divided(d, dual_norm(d, plan.dual.value));

  const double map = is_mirror ? plan.map.value : 1, inverse = is_mirror ? plan.inverse.value : 1;
  const at::Tensor w = widened(weights);
  at::Tensor y = master.defined() ? widened(master) : signed_power(w, map);
  if (rule.device_rate.defined()) {
    const at::Tensor rate = widened(rule.device_rate);
    const at::Tensor kept = (-options.weight_decay * rate).log1p().mul(map).exp();
    y = (options.weight_decay == 0 ? y : kept * y) - rate * d;
  } else {
    y = (is_mirror ? plan.keep_image : plan.keep) * y - options.rate * d;
  }
  if (master.defined()) {
    master.copy_(y);
    y = widened(master);
  }
  at::Tensor moved = signed_power(y, inverse);
  // What is not pushed does not move, not even by rounding there and back.
  if (options.weight_decay == 0 || (plan.keep == 1 && !rule.device_rate.defined()))
    moved = at::where(d == 0, w, moved);
  weights.copy_(moved);
}

void tensor_fill_master(const at::Tensor& weights, const at::Tensor& master, const StepOptions& options) {
  master.copy_(signed_power(widened(weights), map_exponent(options)));
}

bool is_master_of(const at::Tensor& weights, const at::Tensor& master, const StepOptions& options) {
  const double inverse = options.rule == StepRule::mirror ? make_step_plan(options).inverse.value : 1;
  const at::Tensor expected = widened(signed_power(widened(master), inverse).to(weights.scalar_type()));
  const at::Tensor w = widened(weights);
  const bool is_half = weights.scalar_type() == at::kHalf;
  const bool is_brief = is_half || weights.scalar_type() == at::kBFloat16;
  const bool is_double = weights.scalar_type() == at::kDouble;
  // One unit in the last place of the weights, and what the rounding of the master (2 units of its own) makes of them.
  const double unit = is_half ? std::ldexp(1.0, -10) : std::ldexp(1.0, is_brief ? -7 : is_double ? -52 : -23);
  const double state_unit = std::ldexp(1.0, is_double ? -52 : -23);
  const double relative = unit + 4 * std::max(1.0, inverse) * state_unit;
  const double absolute =
      is_half ? std::ldexp(1.0, -23) : 4 * double{std::numeric_limits<float>::denorm_min()};
  const at::Tensor near = (w - expected).abs() <= relative * w.abs() + absolute;
  // A weight that has never moved need not come back from its image, which may be 0 or infinite (p = 10, 1e-6).
  const at::Tensor y = widened(master);
  const at::Tensor image = widened(signed_power(w, map_exponent(options)).to(master.scalar_type()));
  const at::Tensor untouched = (y == image) | ((y - image).abs() <= 4 * state_unit * image.abs() + absolute);
  return (near | untouched | (w == expected) | (w.isnan() & expected.isnan())).all().item<bool>();
}

}  // namespace attmirror::deep
