// From options and a gradient's size to the length of a step.
//
// A block's gradient is stored numbers G times e^s. What a rule needs is the factor f with f G = the step to
// subtract, without forming e^s where that would underflow:
//
//   normalised, exact    f = lr_t / ||G||                       free of s
//   normalised, paper    f = lr_t e^s / (||G|| e^s + eps)
//   plain                f = lr_t e^s
//
// Polyak's step lr_t = lr (L - L*) / sum_b ||g_b||_*^2 is common to all blocks. With S = sum_b ||G_b||^2
// e^{2 (s_b - top)} and top the largest s_b, f = lr (L - L*) / S e^{s_b - 2 top}: representable as long as the
// step is, although the squares are far below the smallest double.
#pragma once

#include "descent/update_rule.hpp"
#include <attmirror/descent/step_options.hpp>

namespace attmirror {

class StepSize {
 public:
  // Of any options that have lr and a schedule.
  template <class Options>
  explicit StepSize(const Options& options) : lr_(options.lr), schedule_(options.schedule) {
    if constexpr (requires { options.normalized; }) normalized_ = options.normalized;
    if constexpr (requires { options.eps; }) {
      eps_ = options.eps;
      eps_value_ = options.eps_value;
    }
  }

  // Once a step, before all else. Returns lr_t, but for Polyak, whose lr_t only factor() knows.
  double begin(const StepContext& context);

  // Polyak's step wants the dual norms of all blocks, after begin() and before factor().
  bool wants_norms() const { return schedule_.kind == ScheduleKind::polyak; }
  void add_block(double dual_norm, double log_scale);

  bool normalized() const { return normalized_; }

  // f for one block. `dual_norm` is ||G||; only normalised steps use it. A zero gradient moves nothing.
  double factor(double dual_norm, double log_scale) const;

  // f ||G||: how far to go along a direction of norm 1.
  double length(double dual_norm, double log_scale) const;

 private:
  double lr_;
  bool normalized_ = false;
  EpsPolicy eps_ = EpsPolicy::exact;
  double eps_value_ = 0;
  Schedule schedule_;
  double now_ = 0;                       // lr_t; lr (L - L*) for Polyak
  double top_ = 0, sum_of_squares_ = 0;  // of Polyak
};

}  // namespace attmirror
