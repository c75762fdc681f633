// Each problem is solved four times: for the Frobenius norm and for the nuclear norm with a certificate, and for
// the nuclear norm as a less exact solver would leave it, at two accuracies. All on the same data, in batches over
// the threads.
#include "papers/rank_cells.hpp"

#include "papers/coordinate_ascent.hpp"
#include "papers/training_set.hpp"
#include <attmirror/attention/tokens.hpp>
#include <attmirror/data/generators.hpp>

#include <deque>

namespace attmirror::ranks {

namespace {

constexpr double rank_tolerance = 1e-4;            // of the largest singular value
constexpr double published_rank_tolerance = 1e-7;  // absolute
constexpr double early_gap = 1e-3, less_early_gap = 1e-4;

}  // namespace

Cell measure(const ExperimentContext& context, const ProblemShape& shape, std::int64_t d,
             std::uint64_t seeds) {
  std::deque<Dataset> sets;
  std::vector<MarginTask> frobenius_tasks, nuclear_tasks;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    const Dataset& data = sets.emplace_back(
        generate(SphereData{.samples = shape.n, .tokens = shape.T, .dim = d, .seed = seed}));
    const AttentionSvm problem{optimal_tokens(data)};
    frobenius_tasks.push_back({&data, problem, Norm::frobenius()});
    nuclear_tasks.push_back({&data, problem, Norm::nuclear()});
  }
  const std::vector<MarginSolution> frobenius = solve_all(context.part(0, 0.1), frobenius_tasks);
  const std::vector<MarginSolution> nuclear = solve_all(context.part(0.1, 0.5), nuclear_tasks);
  const std::vector<MarginSolution> early =
      solve_all(context.part(0.5, 0.7), nuclear_tasks, {.tol = early_gap});
  const std::vector<MarginSolution> less_early =
      solve_all(context.part(0.7, 1), nuclear_tasks, {.tol = less_early_gap});
  Cell cell;
  const auto noisy_rank = [](const MarginSolution& svm) {
    return svm.status == MarginStatus::infeasible
               ? 1.0
               : static_cast<double>((svm.singular_values.array() > published_rank_tolerance).count());
  };
  for (std::size_t s = 0; s < seeds; ++s) {
    Answer answer;
    cell.stopped +=
        (frobenius[s].status == MarginStatus::stopped) + (nuclear[s].status == MarginStatus::stopped);
    cell.disagreements += frobenius[s].status != nuclear[s].status;
    answer.feasible =
        frobenius[s].status == MarginStatus::certified && nuclear[s].status == MarginStatus::certified;
    answer.early_nuclear = {noisy_rank(early[s]), noisy_rank(less_early[s])};
    if (answer.feasible) {
      const Vector& values = nuclear[s].singular_values;
      const std::ptrdiff_t rank = relative_rank(values, rank_tolerance);
      answer.frobenius = static_cast<double>(relative_rank(frobenius[s].singular_values, rank_tolerance));
      answer.published_frobenius = noisy_rank(frobenius[s]);
      // Beyond, solutions are small.
      answer.found_by_ascent =
          d > 5 || coordinate_ascent_arrives(constraints(sets[s], frobenius_tasks[s].problem), 1e-7, 50'000);
      answer.nuclear = static_cast<double>(rank);
      answer.multiplicity = static_cast<double>(nuclear[s].dual_multiplicity);
      answer.last_kept = values[rank - 1] / values[0];
      answer.first_dropped = rank < values.size() ? values[rank] / values[0] : 0;
    }
    cell.answers.push_back(answer);
  }
  return cell;
}

Mean feasible_mean(const Cell& cell, double Answer::*what, std::size_t count) {
  std::vector<double> values;
  for (std::size_t s = 0; s < std::min(count, cell.answers.size()); ++s)
    if (cell.answers[s].feasible) values.push_back(cell.answers[s].*what);
  return mean_of(values);
}

Mean infeasible_share(const Cell& cell, std::size_t count) {
  count = std::min(count, cell.answers.size());
  std::ptrdiff_t infeasible = 0;
  for (std::size_t s = 0; s < count; ++s) infeasible += cell.answers[s].feasible ? 0 : 1;
  return share_of(infeasible, static_cast<std::ptrdiff_t>(count));
}

}  // namespace attmirror::ranks
