// The certified largest margins behind a table of shares. Runs of many optimizers on many data sets select
// the same tokens again and again, so problems are gathered first and each is solved once.
#include <attmirror/attention/tokens.hpp>
#include <attmirror/sweep/which_margin.hpp>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <tuple>
#include <utility>

namespace attmirror {

namespace {

MarginProblem problem_of(const TrainedWeights& row) {
  if (const auto* prompt = std::get_if<Prompt>(&row.model->parameterization()))
    return PromptSvm{row.selected, prompt->key_weights};
  return AttentionSvm{row.selected};
}

// Rows with equal keys have the same problems. Models on one dataset share them unless prompts see it through
// key weights, of which each model has its own.
using ProblemKey = std::tuple<const Dataset*, const Attention*, std::vector<std::int64_t>>;

ProblemKey key_of(const TrainedWeights& row) {
  const bool prompt = std::holds_alternative<Prompt>(row.model->parameterization());
  return {&row.model->data(), prompt ? row.model : nullptr, row.selected.tokens};
}

std::vector<MarginSolution> solve(std::span<const MarginTask> tasks, const MarginWork& work) {
  MarginOptions options;
  options.threads = work.threads;
  options.stop = work.stop;
  // In pieces, so that there is progress in between; long enough that the threads end at about the same time.
  constexpr std::size_t piece = 512;
  std::vector<MarginSolution> solutions;
  solutions.reserve(tasks.size());
  for (std::size_t first = 0; first < tasks.size(); first += piece) {
    if (work.on_progress) work.on_progress(static_cast<double>(first) / static_cast<double>(tasks.size()));
    std::ranges::move(max_margins(tasks.subspan(first, std::min(piece, tasks.size() - first)), options),
                      std::back_inserter(solutions));
  }
  return solutions;
}

}  // namespace

MarginShares margin_shares(std::span<const TrainedWeights> weights, std::span<const Norm> norms,
                           const MarginWork& work) {
  std::map<ProblemKey, std::size_t> places;  // of a problem's first solution
  std::vector<MarginTask> tasks;
  for (const TrainedWeights& row : weights) {
    if (row.selected.tokens.empty() || !places.emplace(key_of(row), tasks.size()).second) continue;
    for (const Norm& norm : norms)
      tasks.push_back({.data = &row.model->data(), .problem = problem_of(row), .norm = norm});
  }
  const std::vector<MarginSolution> solutions = solve(tasks, work);

  MarginShares result;
  result.problems = static_cast<std::int64_t>(solutions.size());
  for (const MarginSolution& solution : solutions) {
    const bool certified = solution.status == MarginStatus::certified;
    result.uncertified += certified ? 0 : 1;
    if (certified) result.worst_gap = std::max(result.worst_gap, std::abs(solution.gap));
  }
  for (const TrainedWeights& row : weights) {
    std::vector<MarginShare>& shares = result.rows.emplace_back(norms.size());
    if (row.selected.tokens.empty()) continue;
    const Matrix W = attention_weights(row.weights);
    const double margin = W.size() > 0 ? selection_margin(*row.model, row.selected, W) : std::nan("");
    const std::size_t first = places.at(key_of(row));
    for (std::size_t c = 0; c < norms.size(); ++c) {
      const MarginSolution& solution = solutions[first + c];
      shares[c].status = solution.status;
      if (solution.status != MarginStatus::certified) continue;
      shares[c].largest_norm = solution.norm;
      shares[c].gap = solution.gap;
      shares[c].share = margin / norm(W, norms[c]) * solution.norm;
    }
  }
  return result;
}

}  // namespace attmirror
