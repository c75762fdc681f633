#include "deep/tensor_step.hpp"

#include <cmath>
#include <limits>

#include <ATen/ATen.h>

namespace attmirror::torch {

namespace {

// ||d||_q as a tensor of one number, without over- or underflow of the powers.
::at::Tensor dual_norm(const ::at::Tensor& d, double q) {
  const ::at::Tensor largest = d.abs().max();
  const ::at::Tensor unit = ::at::where(largest == 0, ::at::ones_like(largest), largest);
  return unit * (d / unit).abs().pow(q).sum().pow(1 / q);
}

// d / norm, and 0 where there is nothing to divide: a gradient of zeros has no direction.
::at::Tensor divided(const ::at::Tensor& d, const ::at::Tensor& norm) {
  return ::at::where(norm == 0, ::at::zeros_like(d), d / norm);
}

::at::Tensor steepest_direction(const ::at::Tensor& d, const GroupRule& rule) {
  if (rule.direction) return widened(rule.direction(d));
  if (rule.step.rule == StepRule::sign) return d.sign();
  const double p = rule.step.p;
  return signed_power(divided(d, dual_norm(d, p / (p - 1))), 1 / (p - 1));
}

}  // namespace

::at::Tensor signed_power(const ::at::Tensor& x, double exponent) {
  return exponent == 1 ? x : x.sign() * x.abs().pow(exponent);
}

::at::Tensor widened(const ::at::Tensor& x) {
  return x.to(x.device().is_cpu() || x.device().is_cuda() ? ::at::kDouble : ::at::kFloat);
}

void tensor_step(const ::at::Tensor& weights, const ::at::Tensor& gradient, const ::at::Tensor& master,
                 const ::at::Tensor& momentum, const GroupRule& rule) {
  const StepOptions& options = rule.step;
  ::at::Tensor d = widened(gradient) / options.gradient_scale;
  if (options.momentum > 0) {
    momentum.copy_(options.momentum * widened(momentum) + d);
    const ::at::Tensor m = widened(momentum);
    d = options.nesterov ? d + options.momentum * m : m;
  }

  const bool is_mirror = options.rule == StepRule::mirror && !rule.direction;
  const double p = is_mirror ? options.p : 2;
  if (!is_mirror)
    d = steepest_direction(d, rule);
  else if (options.normalized)
    d = divided(d, dual_norm(d, p / (p - 1)));

  const double decay = options.rate * options.weight_decay;
  const double keep = decay == 0 ? 1 : std::exp(std::log1p(-decay) * (p - 1));
  const ::at::Tensor w = widened(weights);
  ::at::Tensor y = keep * (master.defined() ? widened(master) : signed_power(w, p - 1)) - options.rate * d;
  if (master.defined()) {
    master.copy_(y);
    y = widened(master);
  }
  ::at::Tensor moved = signed_power(y, 1 / (p - 1));
  // What is not pushed does not move, not even by rounding there and back.
  if (decay == 0) moved = ::at::where(d == 0, w, moved);
  weights.copy_(moved);
}

void tensor_fill_master(const ::at::Tensor& weights, const ::at::Tensor& master, const StepOptions& options) {
  master.copy_(signed_power(widened(weights), options.rule == StepRule::mirror ? options.p - 1 : 1));
}

bool master_rounds_to(const ::at::Tensor& weights, const ::at::Tensor& master, const StepOptions& options) {
  const double inverse = options.rule == StepRule::mirror ? 1 / (options.p - 1) : 1;
  const ::at::Tensor expected = widened(signed_power(widened(master), inverse).to(weights.scalar_type()));
  const ::at::Tensor w = widened(weights);
  const bool is_half = weights.scalar_type() == ::at::kHalf;
  const bool is_brief = is_half || weights.scalar_type() == ::at::kBFloat16;
  const bool is_double = weights.scalar_type() == ::at::kDouble;
  // One unit in the last place of the weights, and what the rounding of the master (2 units of its own) makes of them.
  const double unit = is_half ? std::ldexp(1.0, -10) : std::ldexp(1.0, is_brief ? -7 : is_double ? -52 : -23);
  const double state_unit = std::ldexp(1.0, is_double ? -52 : -23);
  const double relative = unit + 4 * std::max(1.0, inverse) * state_unit;
  const double absolute =
      is_half ? std::ldexp(1.0, -23) : 4 * double{std::numeric_limits<float>::denorm_min()};
  const ::at::Tensor near = (w - expected).abs() <= relative * w.abs() + absolute;
  return (near | (w == expected) | (w.isnan() & expected.isnan())).all().item<bool>();
}

}  // namespace attmirror::torch
