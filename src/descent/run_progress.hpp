// What a training loop does with each value of the loss, whatever engine computed it: notice that the run has diverged,
// record, and decide whether the run ends here. descend() follows one run by it, the lanes of room `sweep` several.
#pragma once

#include <attmirror/descent/descend.hpp>

#include <cstdint>
#include <optional>
#include <vector>

namespace attmirror {

// What comes from outside: somebody asks to stop, a limit of time is over.
enum class Request { none, stop, time_over };

// Whether to record, and as what, and how the run ends if it ends here.
struct Decision {
  enum class Keep { nothing, scheduled_record, last_record };
  Keep keep = Keep::nothing;
  std::optional<RunStatus> status{};
};

class RunProgress {
 public:
  // Takes checked options. The objective must outlive it.
  RunProgress(const Objective& objective, const Optimizer& optimizer, const DescentOptions& options);

  std::int64_t step = 0;        // taken so far
  Evaluation value;             // at the weights after them; the loss is NaN before the first
  std::vector<Record> records;  // so far

  // To be called before the first step, and after `step` was set by hand.
  void begin();

  // Whether the schedule, the steps or the saturation make the run want more of these weights than to move on.
  bool is_event() const { return step == next_record_ || step >= options_.steps || saturated(); }

  // What to do at `step`, of which `value` has just been set. Once a step.
  Decision decide(Request request);
  // Both take the weights after `step` steps.
  const Record& record(const Decision& decision, const ParameterBlocks& weights,
                       std::vector<Metric> metrics = {});
  DescentRun finish(RunStatus status, const ParameterBlocks& weights, double seconds) const;

  const Objective& objective() const { return *objective_; }
  const Optimizer& optimizer() const { return optimizer_; }
  const DescentOptions& options() const { return options_; }

 private:
  bool saturated() const { return options_.saturation > 0 && value.max_softmax >= options_.saturation; }

  const Objective* objective_;
  Optimizer optimizer_;
  DescentOptions options_;
  std::int64_t next_record_ = 0;
};

}  // namespace attmirror
