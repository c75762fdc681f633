// What a run keeps along the way: at which steps, and what about each.
#pragma once

#include <attmirror/attention/parameters.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace attmirror {

// The steps to record. The schedule never depends on how long the run will be, so a run that is continued
// later has recorded the same steps as one that was not stopped. (The last step of a run is recorded as
// well.)
class RecordSchedule {
 public:
  static RecordSchedule none();
  static RecordSchedule every(std::int64_t steps);  // 0, k, 2k, ...
  static RecordSchedule log_spaced(
      int per_decade = 10);  // 0, 1, 2, ..., then the rounded 10^(j / per_decade)
  static RecordSchedule at(std::vector<std::int64_t> steps);

  // Reads "none", "every:100", "log", "log:20" or "0,10,100"; throws Error (bad input).
  static RecordSchedule parse(std::string_view text);

  // The first recorded step >= `step`, or -1.
  std::int64_t next(std::int64_t step) const;

  // How many steps <= `steps` are recorded: what a run of that length will keep.
  std::int64_t count(std::int64_t steps) const;

  std::string to_string() const;  // what parse() reads

 private:
  enum class Kind { none, every, log_spaced, list };
  Kind kind_ = Kind::none;
  std::int64_t every_ = 0;
  int per_decade_ = 0;
  std::vector<std::int64_t> list_;
};

// Whether records contain the weights or only the metrics.
enum class Keep { metrics, parameters };

// A number that a model adds to its records, such as the accuracy of its predictions.
struct Metric {
  std::string name;
  double value = 0;
};

// The state of a run at one step.
struct Record {
  std::int64_t step = 0;          // steps taken so far
  double loss = 0;                // at the weights after `step` steps
  double max_softmax = 0;         // mean over sequences of the largest attention probability
  double norm = 0;                // of the attention weights, in the geometry of the run
  bool scheduled = true;          // false for the last step of a run if the schedule does not ask for it
  Parameters parameters;          // empty for Keep::metrics
  std::vector<Metric> metrics{};  // by name; the same names in every record of a run
};

}  // namespace attmirror
