#include "descent/run_comparison.hpp"

#include "descent/attention_objective.hpp"
#include <attmirror/attention/tokens.hpp>
#include <attmirror/base/error.hpp>
#include <attmirror/mirror/direction.hpp>

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

namespace attmirror {

namespace {

ComparedRun compared_run(const RunToCompare& run, const std::vector<Norm>& norms) {
  ComparedRun result;
  result.selected = selected_tokens(*run.model, run.parameters);
  result.optimal = AttentionObjective(*run.model).optimal(run.parameters);
  const std::vector<Vector> scores = token_scores(*run.model, run.parameters);
  for (std::size_t j = 0; j < scores.size(); ++j)
    result.scores.push_back(scores[j][result.selected.tokens[j]]);
  const Matrix weights = attention_weights(run.parameters);
  const double margin = selection_margin(*run.model, result.selected, weights);
  for (const Norm& one : norms) result.margins.push_back(margin / norm(weights, one));
  return result;
}

}  // namespace

double ComparedRun::smallest_score() const { return *std::ranges::min_element(scores); }

double ComparedRun::mean_score() const {
  return std::accumulate(scores.begin(), scores.end(), 0.0) / static_cast<double>(scores.size());
}

RunComparison compare_runs(const RunToCompare& first, const RunToCompare& second) {
  if (first.model->data().fingerprint() != second.model->data().fingerprint())
    throw bad_input(
        fmt::format("the runs are on different data (fingerprints {:016x} and {:016x}): expected the same",
                    first.model->data().fingerprint(), second.model->data().fingerprint()));
  const Matrix a = attention_weights(first.parameters), b = attention_weights(second.parameters);
  if (a.rows() != b.rows() || a.cols() != b.cols())
    throw bad_input(fmt::format("the weights of the runs are {} x {} and {} x {}: expected the same shape",
                                a.rows(), a.cols(), b.rows(), b.cols()));
  RunComparison result;
  result.norms = {first.norm};
  if (second.norm != first.norm) result.norms.push_back(second.norm);
  result.runs = {compared_run(first, result.norms), compared_run(second, result.norms)};
  result.differences = selection_differences(result.runs[0].selected, result.runs[1].selected);
  const auto has_direction = [](const Matrix& w) { return !w.isZero(0) && w.allFinite(); };
  if (has_direction(a) && has_direction(b)) result.correlation = correlation(a, b);
  return result;
}

}  // namespace attmirror
