#include "descent/step_size.hpp"

#include <cmath>

namespace attmirror {

double StepSize::begin(const StepContext& context) {
  switch (schedule_.kind) {
    case ScheduleKind::constant:
      now_ = lr_;
      break;
    case ScheduleKind::power:
      now_ = lr_ * std::pow(static_cast<double>(context.step) + 1, -schedule_.exponent);
      break;
    case ScheduleKind::polyak:
      // Below the bound there is nothing left to gain.
      now_ = context.loss > schedule_.lower_bound ? lr_ * (context.loss - schedule_.lower_bound) : 0.0;
      sum_of_squares_ = 0;
      break;
  }
  return now_;
}

void StepSize::add_block(double dual_norm, double log_scale) {
  if (dual_norm == 0) return;
  if (sum_of_squares_ == 0) top_ = log_scale;
  if (log_scale > top_) {
    sum_of_squares_ *= std::exp(2 * (top_ - log_scale));
    top_ = log_scale;
  }
  sum_of_squares_ += dual_norm * dual_norm * std::exp(2 * (log_scale - top_));
}

double StepSize::factor(double dual_norm, double log_scale) const {
  if (wants_norms()) {
    if (sum_of_squares_ == 0 || now_ == 0) return 0;
    const double root = std::exp(0.5 * log_scale - top_);  // in two parts: the whole may overflow on the way
    return now_ / sum_of_squares_ * root * root;
  }
  if (normalized_ && eps_ == EpsPolicy::exact) return dual_norm == 0 ? 0.0 : now_ / dual_norm;
  const double scale = std::exp(log_scale);
  if (!normalized_) return now_ * scale;
  const double size = dual_norm * scale + eps_value_;
  return size == 0 ? 0.0 : now_ * scale / size;
}

double StepSize::length(double dual_norm, double log_scale) const {
  if (normalized_ && eps_ == EpsPolicy::exact) return dual_norm == 0 ? 0.0 : now_;
  return factor(dual_norm, log_scale) * dual_norm;
}

}  // namespace attmirror
