// What the update rules have in common: how tiny gradients are treated, what the rule remembers from earlier
// gradients, and how the step size changes over time.
//
// Each reads and writes a short text ("ema:0.95", "power:0.5"), which the command line accepts and
// config.json records.
#pragma once

#include <string>
#include <string_view>

namespace attmirror {

// What happens when gradients become very small.
enum class EpsPolicy {
  exact,  // the safe Jacobian and a gradient scaled in the log domain: normalized steps never freeze
  paper,  // g / (||g|| + eps) with the textbook Jacobian, as in published code: freezes near ||g|| = eps
};

std::string_view to_string(EpsPolicy policy);
EpsPolicy parse_eps_policy(std::string_view name);

// How past gradients take part in a step.
enum class MomentumKind {
  none,
  heavy_ball,  // M <- beta M + g: steps become up to 1/(1 - beta) times as long
  ema,         // M <- beta M + (1 - beta) g: an average, of the size of a gradient
};

// M starts at 0 and replaces g before anything else is done with it, including normalization. It is stored
// with its own logarithmic scale per block, so it is as exact at 1e-3000 as at 1.
struct Momentum {
  MomentumKind kind = MomentumKind::none;
  double beta = 0.9;  // weight of the past; 0.9 remembers about ten steps

  void validate() const;  // throws Error (bad input) naming the field and its value
};

std::string to_string(const Momentum& momentum);  // "none", "heavy-ball:0.9", "ema:0.95"
Momentum parse_momentum(std::string_view text);   // the same; a word alone has the default beta

// How the step size changes with time.
enum class ScheduleKind {
  constant,
  power,   // lr_t = lr (t + 1)^-exponent, t the number of steps taken so far
  polyak,  // lr_t = lr (L - L*) / sum over blocks of ||g||_*^2: the step to the loss's tangent at L*
};

// A step size over time, as a multiple of lr.
struct Schedule {
  ScheduleKind kind = ScheduleKind::constant;
  double exponent = 0.5;   // of `power`; 1/2 is the classical choice for normalized steps
  double lower_bound = 0;  // L* of `polyak`; 0 for losses that separable data drive to 0

  void validate() const;
};

std::string to_string(const Schedule& schedule);  // "constant", "power:0.5", "polyak:0.1"
Schedule parse_schedule(std::string_view text);   // the same; a word alone has the defaults

}  // namespace attmirror
