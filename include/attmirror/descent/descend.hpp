// The training loop: evaluate, record, stop or step.
//
//   DescentRun run = descend(model, MirrorDescent{.p = 1.1, .lr = 0.1, .normalized = true}, {.steps = 2'000});
//
// The loop allocates nothing per step, keeps only the records that its schedule asks for, and has the same
// bits for any number of threads and no matter how often it was stopped and resumed (on one instruction set).
#pragma once

#include <attmirror/base/stop.hpp>
#include <attmirror/data/selection.hpp>
#include <attmirror/descent/initialization.hpp>
#include <attmirror/descent/objective.hpp>
#include <attmirror/descent/optimizer.hpp>
#include <attmirror/descent/record.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace attmirror {

// How long a run lasts, where it starts, what it records.
struct DescentOptions {
  std::int64_t steps = 1000;  // stop after this many
  double saturation = 0;      // stop once the mean largest softmax probability reaches this; 0 = never
  // Stop after this much time, including that of earlier parts of a resumed run; 0 = never.
  double max_seconds = 0;
  RecordSchedule record = RecordSchedule::log_spaced();  // a few dozen records for any length of run
  Keep keep = Keep::parameters;
  Initialization init{};
  int threads = 1;                      // 0 = as many as the machine has; small problems gain nothing
  DataPath path = DataPath::automatic;  // how gradients go through the data; choose another only to compare
  // float32: half the bytes to read; exact if the tokens are floats.
  TokenStorage storage = TokenStorage::float64;

  void validate() const;
};

// How a run ended.
enum class RunStatus {
  completed,    // all steps taken
  saturated,    // the softmax reached `saturation`
  out_of_time,  // `max_seconds` have passed
  interrupted,  // `stop` was requested
  diverged,     // loss or weights are no longer finite; `steps` says when
};

std::string_view to_string(RunStatus status);

// What a run reached.
struct DescentRun {
  RunStatus status = RunStatus::completed;
  std::int64_t steps = 0;
  double loss = 0, max_softmax = 0;
  double norm = 0;     // of W, K Q^T or p, in measuring_norm(optimizer)
  double seconds = 0;  // of all parts of a resumed run
  Selection selected;  // argmax of the softmax at the last weights; empty when diverged
  std::vector<Record> records;
  Parameters final_parameters;

  const Parameters& last() const { return final_parameters; }
};

// A short name, for files that have no other Run (GoogleTest has one).
using Run = DescentRun;

std::string summary(const DescentRun& run);  // one line

// Everything that a run needs to continue as if it had never stopped. descent/checkpoint.hpp saves and loads it.
struct Checkpoint {
  std::string model, rule;  // descriptions; resuming with different ones is refused
  std::uint64_t data_fingerprint = 0;
  std::int64_t step = 0;
  double seconds = 0;
  Parameters weights;                       // all blocks
  std::map<std::string, Parameters> state;  // of the rule, by name
  std::map<std::string, std::vector<double>> numbers;
  std::vector<Record> records;
};

class Descent;

// What is called while a run is under way.
struct DescentCallbacks {
  std::function<void(const Record&)> on_record{};
  // Called about ten times a second, between steps: for progress bars and checkpoints.
  std::function<void(const Descent&)> on_pulse{};
  // Checked between steps. A run that ends this way is `interrupted`, and its checkpoint continues from there.
  StopRequest stop{};
};

// A run in progress. Most users need only descend().
class Descent {
 public:
  // The model or objective must outlive it.
  Descent(const Objective& objective, const Optimizer& optimizer, const DescentOptions& options);
  Descent(const Objective& objective, const Optimizer& optimizer, const DescentOptions& options,
          const Checkpoint& checkpoint);
  Descent(const Attention& model, const Optimizer& optimizer, const DescentOptions& options);
  Descent(const Attention& model, const Optimizer& optimizer, const DescentOptions& options,
          const Checkpoint& checkpoint);
  ~Descent();

  DescentRun run(const DescentCallbacks& callbacks = {});

  std::int64_t step() const;  // taken so far
  double loss() const;        // as last evaluated; NaN before the first step
  double seconds() const;
  Checkpoint checkpoint() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Trains: evaluates, records and steps until the options say stop.
DescentRun descend(const Objective& objective, const Optimizer& optimizer, const DescentOptions& options = {},
                   const DescentCallbacks& callbacks = {});
DescentRun descend(const Attention& model, const Optimizer& optimizer, const DescentOptions& options = {},
                   const DescentCallbacks& callbacks = {});

// The norm of W, of K Q^T or of p.
double attention_norm(const Parameters& parameters, const Norm& norm);
double attention_norm(const Parameters& parameters, double p);  // l_p, 1 < p < infinity

}  // namespace attmirror
