#include "mirror/make_step_plan.hpp"

#include <attmirror/base/error.hpp>
#include <attmirror/mirror/lp_map.hpp>

#include <cmath>

#include <fmt/format.h>

namespace attmirror {

using kernels::StepPlan;
using kernels::StepPower;

std::string_view to_string(StepElement element) {
  switch (element) {
    case StepElement::float32:
      return "float32";
    case StepElement::bfloat16:
      return "bfloat16";
    case StepElement::float16:
      return "float16";
    case StepElement::float64:
      return "float64";
  }
  return "unknown";
}

std::size_t size_of(StepElement element) {
  switch (element) {
    case StepElement::float32:
      return 4;
    case StepElement::bfloat16:
    case StepElement::float16:
      return 2;
    case StepElement::float64:
      return 8;
  }
  return 0;
}

std::string_view to_string(StepRule rule) {
  switch (rule) {
    case StepRule::mirror:
      return "mirror";
    case StepRule::steepest:
      return "steepest";
    case StepRule::sign:
      return "sign";
  }
  return "unknown";
}

std::string_view to_string(StepArithmetic arithmetic) {
  return arithmetic == StepArithmetic::fast ? "fast" : "exact";
}

void StepOptions::validate() const {
  if (rule != StepRule::mirror && rule != StepRule::steepest && rule != StepRule::sign)
    throw bad_input(fmt::format("rule is {}: expected mirror, steepest or sign", static_cast<int>(rule)));
  if (rule != StepRule::sign) validate_p(p);
  if (!(rate >= 0) || !std::isfinite(rate))
    throw bad_input(fmt::format("rate is {}: expected a finite number, 0 or more", rate));
  if (!(momentum >= 0 && momentum < 1))
    throw bad_input(fmt::format("momentum is {}: expected a number from 0 to 1, without 1", momentum));
  if (nesterov && momentum == 0)
    throw bad_input("nesterov needs a momentum greater than 0, and momentum is 0");
  if (!(weight_decay >= 0) || !(rate * weight_decay < 1))
    throw bad_input(
        fmt::format("weight_decay is {} at a rate of {}: expected 0 or more, and rate * weight_decay below 1",
                    weight_decay, rate));
  if (normalized && rule != StepRule::mirror)
    throw bad_input(fmt::format("normalized is for the mirror rule, and the rule is {}", to_string(rule)));
  if (!(gradient_scale > 0) || !std::isfinite(gradient_scale))
    throw bad_input(
        fmt::format("gradient_scale is {}: expected a finite number greater than 0", gradient_scale));
}

StepPlan make_step_plan(const StepOptions& options) {
  StepPlan plan;
  if (options.rule != StepRule::sign) {
    // LpMap knows the fractions that doubles like 1.1 stand for.
    const LpMap map(options.p);
    const auto sum = [](const LpMap::Exponent& exponent) {
      return kernels::Sum{exponent.value, exponent.rest};
    };
    plan.map = sum(map.map_exponent());
    plan.inverse = sum(map.inverse_exponent());
    plan.dual = sum(map.dual_exponent());
    plan.power = options.p == 2     ? StepPower::two
                 : options.p == 3   ? StepPower::three
                 : options.p == 1.5 ? StepPower::three_halves
                 : options.p == 1.1 ? StepPower::eleven_tenths
                                    : StepPower::general;
  }
  plan.rate = options.rate;
  plan.unscale = (options.maximize ? -1 : 1) / options.gradient_scale;
  plan.momentum = options.momentum;
  plan.nesterov = options.nesterov;
  plan.weight_decay = options.weight_decay;
  const double decay = options.rate * options.weight_decay;
  plan.keep = 1 - decay;
  plan.keep_image = decay == 0 ? 1 : std::exp(std::log1p(-decay) * plan.map.value);
  return plan;
}

namespace {

// Calls check(tensor, index) for all that are not empty.
template <class Check>
void for_each_tensor(std::span<const StepTensor> tensors, Check&& check) {
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].size < 0)
      throw bad_input(fmt::format("tensors[{}].size is {}: expected 0 or more", i, tensors[i].size));
    if (tensors[i].size > 0) check(tensors[i], i);
  }
}

void require_pointer(const void* pointer, std::size_t tensor, std::string_view field) {
  if (pointer == nullptr) throw bad_input(fmt::format("tensors[{}].{} is null", tensor, field));
}

}  // namespace

void validate_tensors(std::span<const StepTensor> tensors, const StepOptions& options) {
  for_each_tensor(tensors, [&](const StepTensor& tensor, std::size_t i) {
    require_pointer(tensor.weights, i, "weights");
    require_pointer(tensor.gradient, i, "gradient");
    if (options.momentum > 0 && tensor.momentum == nullptr)
      throw bad_input(
          fmt::format("tensors[{}].momentum is null, and options.momentum is {}", i, options.momentum));
  });
}

void validate_gradients(std::span<const StepTensor> tensors) {
  for_each_tensor(tensors, [](const StepTensor& tensor, std::size_t i) {
    require_pointer(tensor.gradient, i, "gradient");
  });
}

void validate_masters(std::span<const StepTensor> tensors) {
  for_each_tensor(tensors, [](const StepTensor& tensor, std::size_t i) {
    require_pointer(tensor.weights, i, "weights");
    require_pointer(tensor.master, i, "master");
  });
}

void DualNorm::add(const kernels::NormPart& part) {
  if (!(part.largest > 0) && !std::isnan(part.largest)) return;  // all zeros, or empty
  if (std::isinf(part.largest) || std::isnan(part.largest) || std::isnan(total_.largest) ||
      std::isinf(total_.largest)) {
    total_.largest += part.largest;  // infinite, or NaN once there is one
    return;
  }
  if (part.largest > total_.largest) {
    total_.sum = total_.sum * std::pow(total_.largest / part.largest, q_) + part.sum;
    total_.largest = part.largest;
  } else {
    total_.sum += part.sum * std::pow(part.largest / total_.largest, q_);
  }
}

double DualNorm::value() const {
  return total_.sum > 0 ? total_.largest * std::pow(total_.sum, 1 / q_) : total_.largest;
}

bool DualNorm::is_finite() const { return std::isfinite(total_.largest); }

}  // namespace attmirror
