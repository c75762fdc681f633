#include "base/progress.hpp"

#include <attmirror/base/error.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

namespace attmirror {
namespace {

constexpr std::chrono::milliseconds redraw_interval{100};

// Three digits; steps per second reach from 0.01 to millions.
std::string format_speed(double speed) {
  if (speed >= 999.5e3) return fmt::format("{:.3g}M", speed / 1e6);
  if (speed >= 999.5) return fmt::format("{:.3g}k", speed / 1e3);
  return fmt::format("{:.3g}", speed);
}

}  // namespace

void ProgressOptions::validate() const {
  if (total < 0) throw bad_input(fmt::format("total is {}: expected 0 or more", total));
  if (first < 0) throw bad_input(fmt::format("first is {}: expected 0 or more", first));
}

std::string format_duration(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return "-";
  if (seconds >= 2 * 86400.0) return fmt::format("{:.0f} days", seconds / 86400.0);
  const auto whole = static_cast<std::int64_t>(std::llround(seconds));
  const std::int64_t hours = whole / 3600, minutes = whole / 60 % 60;
  if (hours > 0) return fmt::format("{}:{:02}:{:02}", hours, minutes, whole % 60);
  return fmt::format("{}:{:02}", minutes, whole % 60);
}

std::string format_progress(const ProgressOptions& options, std::int64_t done, double seconds) {
  std::string line = options.label;
  if (options.total > 0) {
    const std::int64_t shown = std::clamp<std::int64_t>(done, 0, options.total);
    // Rounded down: 100% means that nothing is left.
    line += fmt::format("  {:3.0f}%",
                        std::floor(100.0 * static_cast<double>(shown) / static_cast<double>(options.total)));
    if (!options.unit.empty()) line += fmt::format("  {}/{}", shown, options.total);
  } else {
    line += fmt::format("  {} {}", done, options.unit);
  }
  const double speed = static_cast<double>(done - options.first) / seconds;
  if (!(seconds > 0) || !(speed > 0)) return line;
  if (!options.unit.empty()) line += fmt::format("  {} {}/s", format_speed(speed), options.unit);
  if (options.total > 0) {
    line += fmt::format("  {} left",
                        format_duration(std::max(0.0, static_cast<double>(options.total - done) / speed)));
  }
  return line;
}

Progress::Progress(std::FILE* stream, ProgressOptions options)
    : stream_(stream),
      options_(std::move(options)),
      visible_(stream != nullptr && !options_.quiet && ::isatty(::fileno(stream)) == 1),
      start_(Clock::now()),
      last_draw_(start_ - redraw_interval) {
  options_.validate();
}

Progress::~Progress() { finish(); }

void Progress::update(std::int64_t done) {
  if (!visible_) return;
  const Clock::time_point now = Clock::now();
  if (now - last_draw_ < redraw_interval) return;
  last_draw_ = now;
  const double seconds = std::chrono::duration<double>(now - start_).count();
  // "\x1b[K" clears what a longer line left behind. A terminal that has gone away is no reason to stop a run.
  std::fputs(fmt::format("\r{}\x1b[K", format_progress(options_, done, seconds)).c_str(), stream_);
  std::fflush(stream_);
  drawn_ = true;
}

void Progress::finish() {
  if (drawn_) {
    std::fputs("\r\x1b[K", stream_);
    std::fflush(stream_);
  }
  drawn_ = visible_ = false;
}

}  // namespace attmirror
