// The two kinds of work that most experiments consist of, spread over the context's threads, with progress. Internal.
#pragma once

#include <attmirror/margin/max_margin.hpp>
#include <attmirror/papers/experiment.hpp>
#include <attmirror/sweep/many.hpp>

#include <span>
#include <vector>

namespace attmirror {

// Throws Interrupted when the user asked to stop.
std::vector<DescentRun> train_all(const ExperimentContext& context, std::span<const DescentTask> tasks);
std::vector<MarginSolution> solve_all(const ExperimentContext& context, std::span<const MarginTask> tasks,
                                      MarginOptions options = {});

// Calls work(i) for i = 0 to count - 1 on the threads. The results must not depend on the order.
void for_all(const ExperimentContext& context, std::ptrdiff_t count,
             const std::function<void(std::ptrdiff_t)>& work);

// Mean, standard deviation (n - 1) and standard error of what is finite.
struct Mean {
  double value = 0, deviation = 0, error = 0;
  std::ptrdiff_t count = 0;
  bool is_share = false;
};
Mean mean_of(std::span<const double> values);
// The same for a share of `count` runs: the standard error is the binomial one, never below that of one run in `count`.
Mean share_of(std::ptrdiff_t hits, std::ptrdiff_t count);

}  // namespace attmirror
