#include "base/numbers.hpp"
#include "pages/reported_run.hpp"
#include "pages/shown_names.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace attmirror {

namespace {

const Comparison* last_comparison(const ReportedRun& run) {
  return run.measured && !run.measured->trace.empty() ? &run.measured->trace.back().second : nullptr;
}

double last_metric(const ReportedRun& run, std::string_view name) {
  if (run.saved.records.empty()) return nan_value;
  for (const Metric& metric : run.saved.records.back().metrics)
    if (metric.name == name) return metric.value;
  return nan_value;
}

}  // namespace

std::string status_of(const SavedRun& run) {
  return run.result ? std::string(to_string(run.result->status)) : "unfinished";
}

bool went_wrong(const ReportedRun& run) {
  return !run.saved.result || run.saved.result->status == RunStatus::diverged;
}

// "After 2000 steps attention puts 99.9 % of its weight on one token of each query, ..."
std::string run_conclusion(const ReportedRun& run) {
  const SavedRun& saved = run.saved;
  if (!saved.result)
    return fmt::format("The run is unfinished: {} of {} steps are done.", saved.step, saved.config.steps);
  if (saved.result->status == RunStatus::diverged)
    return fmt::format("The run diverged after {} steps: a smaller learning rate may help.", saved.step);
  if (!is_attention_run(saved.config)) {
    std::string text =
        fmt::format("After {} steps the loss is {}", saved.step, short_number(saved.result->loss));
    if (const double accuracy = last_metric(run, "accuracy"); std::isfinite(accuracy))
      text += fmt::format(", and {} of the training sentences are predicted correctly", percent(accuracy));
    return text + ".";
  }
  std::string text = fmt::format("After {} steps attention puts {} of its weight on one token of each query",
                                 saved.step, percent(saved.result->max_softmax));
  if (saved.result->optimal)
    text += saved.result->globally_optimal() ? ", the best one for every query" : ", not always the best one";
  if (const Comparison* last = last_comparison(run))
    text += fmt::format("; its margin is {} of the largest possible in {}, the norm that theory predicts",
                        percent(last->margin_ratio), norm_name(run.measured->solution->kind));
  return text + ".";
}

// The same of several: what went wrong first, then the range.
std::string runs_conclusion(const std::vector<ReportedRun>& runs) {
  std::vector<std::string> wrong;
  std::size_t judged = 0, best = 0, compared = 0;
  double low = infinity, high = 0;
  const ReportedRun* lowest = nullptr;
  for (const ReportedRun& run : runs) {
    if (went_wrong(run)) {
      wrong.push_back(fmt::format("{} ({})", run.name, status_of(run.saved)));
      continue;
    }
    if (run.saved.result->optimal) {
      ++judged;
      best += run.saved.result->globally_optimal() ? 1 : 0;
    }
    if (const Comparison* last = last_comparison(run); last && std::isfinite(last->margin_ratio)) {
      ++compared;
      high = std::max(high, last->margin_ratio);
      if (last->margin_ratio < low) lowest = &run;
      low = std::min(low, last->margin_ratio);
    }
  }
  std::string text = wrong.empty()
                         ? fmt::format("{} runs ran to their end",
                                       runs.size() == 2 ? "Both" : fmt::format("All {}", runs.size()))
                         : fmt::format("{} did not run to the end: {}", count_of(wrong.size(), "run"),
                                       fmt::join(wrong, ", "));
  if (judged > 0) text += fmt::format("; {} of {} select the best token for every query", best, judged);
  if (compared > 1)
    text +=
        fmt::format("; their margins are {} to {} of the largest possible in their own norms, lowest for {}",
                    percent(low), percent(high), lowest->name);
  else if (runs.size() > 1 && judged == 0)
    for (const ReportedRun& run : runs)
      if (const double accuracy = last_metric(run, "accuracy");
          std::isfinite(accuracy) && &run == &runs.back())
        text += fmt::format("; in the end {} of the training sentences are predicted correctly",
                            percent(accuracy));
  return text + ".";
}

}  // namespace attmirror
