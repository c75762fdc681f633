// One line on the terminal that says how far a run is: "train   42%  840/2000  1.23k steps/s  0:01 left".
//
// The library never prints; the command makes a Progress on its standard error and calls update() from the
// callback of the training loop. When the stream is not a terminal (a log file, a pipe), or the user asked
// for quiet, nothing at all is written: logs are not filled with redrawn lines.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>

namespace attmirror {

struct ProgressOptions {
  std::string label = "run";   // what is under way; the first word of the line
  std::int64_t total = 0;      // steps in all; 0 when not known, and then there is no percentage
  std::int64_t first = 0;      // where a resumed run begins: steps before it do not count in the speed
  std::string unit = "steps";  // what is counted; empty: a share of the work, shown as a percentage alone
  bool quiet = false;          // --quiet

  // Throws Error (bad input) for a negative count.
  void validate() const;
};

// The line for `done` steps after `seconds`; no line feed. A function of its arguments only.
std::string format_progress(const ProgressOptions& options, std::int64_t done, double seconds);

// "0:07", "12:34", "1:02:03", "3 days"; "-" for what is not a finite, positive time.
std::string format_duration(double seconds);

class Progress {
 public:
  Progress(std::FILE* stream, ProgressOptions options);
  ~Progress();  // finish()
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  bool visible() const { return visible_; }

  // Redraws the line if the last time was more than a tenth of a second ago: cheap enough to call at every step.
  void update(std::int64_t done);

  // What is under way now.
  void relabel(std::string label) { options_.label = std::move(label); }

  // Removes the line, so that what is printed next starts on a clean one. Nothing is drawn afterwards.
  void finish();

 private:
  using Clock = std::chrono::steady_clock;
  std::FILE* stream_;
  ProgressOptions options_;
  bool visible_;
  bool drawn_ = false;
  Clock::time_point start_, last_draw_;
};

}  // namespace attmirror
