#include "deep/archive_fields.hpp"
#include <attmirror/deep/grad_scaler.hpp>

#include <algorithm>
#include <cmath>

namespace attmirror::deep {

void GradScalerOptions::validate() const {
  if (!(initial_scale > 0) || !std::isfinite(initial_scale))
    throw bad_input(
        c10::str("initial_scale is ", initial_scale, ": expected a finite number greater than 0"));
  if (!(growth_factor > 1) || !std::isfinite(growth_factor))
    throw bad_input(
        c10::str("growth_factor is ", growth_factor, ": expected a finite number greater than 1"));
  if (!(backoff_factor > 0 && backoff_factor < 1))
    throw bad_input(c10::str("backoff_factor is ", backoff_factor, ": expected a number between 0 and 1"));
  if (growth_interval < 1)
    throw bad_input(c10::str("growth_interval is ", growth_interval, ": expected a whole number from 1"));
}

GradScaler::GradScaler(GradScalerOptions options) : options_(options), scale_(options.initial_scale) {
  options_.validate();
}

void GradScaler::step(FusedOptimizer& optimizer) {
  optimizer.step_scaled(scale_);
  stepped_ = true;
  overflowed_ |= optimizer.last_step_skipped();
}

void GradScaler::update() {
  if (!stepped_) throw bad_input("update() of a GradScaler comes after a step(), and there was none");
  if (overflowed_) {
    // Losses that are NaN at every scale must not drive it to 0, from where there is no way back.
    scale_ = std::max(scale_ * options_.backoff_factor, std::ldexp(1.0, -126));
    good_steps_ = 0;
  } else if (++good_steps_ == options_.growth_interval) {
    // Beyond the range of float a scale is of no use: the loss itself would overflow.
    if (scale_ * options_.growth_factor <= std::ldexp(1.0, 126)) scale_ *= options_.growth_factor;
    good_steps_ = 0;
  }
  stepped_ = overflowed_ = false;
}

void GradScaler::save(torch::serialize::OutputArchive& archive) const {
  write_field(archive, "scale", scale_);
  write_field(archive, "good_steps", good_steps_);
  write_field(archive, "growth_factor", options_.growth_factor);
  write_field(archive, "backoff_factor", options_.backoff_factor);
  write_field(archive, "growth_interval", options_.growth_interval);
}

void GradScaler::load(torch::serialize::InputArchive& archive) {
  GradScalerOptions options;
  options.initial_scale = read_field<double>(archive, "scale");
  options.growth_factor = read_field<double>(archive, "growth_factor");
  options.backoff_factor = read_field<double>(archive, "backoff_factor");
  options.growth_interval = read_field<std::int64_t>(archive, "growth_interval");
  options.validate();
  const auto good_steps = read_field<std::int64_t>(archive, "good_steps");
  if (good_steps < 0 || good_steps >= options.growth_interval)
    throw bad_input(c10::str("the archive's good_steps is ", good_steps,
                             ": expected 0 or more, and less than ", options.growth_interval));
  options_ = options;
  scale_ = options.initial_scale;
  good_steps_ = good_steps;
  stepped_ = overflowed_ = false;
}

torch::serialize::OutputArchive& operator<<(torch::serialize::OutputArchive& archive,
                                            const GradScaler& scaler) {
  scaler.save(archive);
  return archive;
}

torch::serialize::InputArchive& operator>>(torch::serialize::InputArchive& archive, GradScaler& scaler) {
  scaler.load(archive);
  return archive;
}

}  // namespace attmirror::deep
