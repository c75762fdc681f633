// Looking at the clock now and then, without paying for it at every step.
//
// Reading the clock costs as much as a tenth of a small step, so it is read every so many steps: as many as take about
// a millisecond.
#pragma once

#include "base/stopwatch.hpp"

#include <algorithm>
#include <cstdint>

namespace attmirror {

class PulseTimer {
 public:
  // Called once a step: whether it is time to look.
  bool due() {
    if (--countdown_ > 0) return false;
    const double elapsed = seconds_since(last_look_);
    if (elapsed < 0.5e-3)
      interval_ = std::min<std::int64_t>(2 * interval_, 1 << 16);
    else if (elapsed > 2e-3)
      interval_ = std::max<std::int64_t>(interval_ / 2, 1);
    countdown_ = interval_;
    last_look_ = Clock::now();
    return true;
  }

  // Asked when due(): whether a tenth of a second has passed since the last pulse; then the next tenth begins.
  bool pulse() {
    if (seconds_since(last_pulse_) < 0.1) return false;
    last_pulse_ = Clock::now();
    return true;
  }

 private:
  std::int64_t interval_ = 1, countdown_ = 1;
  Clock::time_point last_look_ = Clock::now(), last_pulse_ = Clock::now();
};

}  // namespace attmirror
