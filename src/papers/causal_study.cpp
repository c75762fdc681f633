#include "papers/causal_study.hpp"

#include <attmirror/attention/tokens.hpp>
#include <attmirror/descent/regularization_path.hpp>
#include <attmirror/margin/max_margin.hpp>
#include <attmirror/margin/support.hpp>
#include <attmirror/mirror/direction.hpp>

namespace attmirror::causal {

namespace {

// The same tokens with the last of each sequence as the only query, and its part of a selection.
Dataset last_query_data(std::uint64_t seed) {
  SphereData sizes = causal_sizes;
  sizes.seed = seed;
  sizes.query_from = SphereData::QueryFrom::last_token;
  return generate(sizes);
}
Selection last_query_tokens(const Selection& tokens) {
  Selection last;
  const auto each = static_cast<std::size_t>(causal_sizes.tokens);
  for (std::size_t j = each - 1; j < tokens.tokens.size(); j += each) last.tokens.push_back(tokens.tokens[j]);
  return last;
}

}  // namespace

Dataset causal_data(std::uint64_t seed, bool causal) {
  SphereData sizes = causal_sizes;
  sizes.seed = seed;
  return causal ? with_causal_mask(generate(sizes)) : generate(sizes);
}

LayerRun measure_run(const DescentRun& run, const Attention& model, const Layer& layer, std::uint64_t seed) {
  const Dataset& data = model.data();
  const Norm norm = layer.norm();
  const MarginSolution svm = max_margin(data, run.selected, norm);
  LayerRun one{.certified = svm.status == MarginStatus::certified, .saturated = run.max_softmax > .99};
  one.global = one.saturated && run.selected == optimal_tokens(data);
  if (!one.certified) return one;
  one.local =
      one.saturated && local_optimality(data, run.selected, constraints(data, AttentionSvm{run.selected}),
                                        svm.support, token_scores(model, run.last()))
                           .holds;
  for (const Record& record : run.records) {
    const Matrix weights = combined_weights(record.parameters);
    one.distance.push_back(weights.isZero(0) ? 1 : 1 - correlation(svm.W, weights));
  }
  const Matrix last = combined_weights(run.last());
  const auto distance_to = [&](const Dataset& other, const Selection& tokens) {
    const MarginSolution solution = max_margin(other, tokens, norm);
    return solution.status == MarginStatus::certified ? 1 - correlation(solution.W, last) : std::nan("");
  };
  one.to_last_query = distance_to(last_query_data(seed), last_query_tokens(run.selected));
  if (layer.causal) one.to_no_mask = distance_to(causal_data(seed, false), run.selected);
  return one;
}

LayerPath measure_path(const Layer& layer, std::uint64_t seed, const std::vector<double>& radii) {
  const Dataset data = causal_data(seed, layer.causal);
  const Attention model(data, layer.parameterization());
  const Selection optimal = optimal_tokens(data);
  const MarginSolution svm = max_margin(data, optimal, layer.norm());
  LayerPath result;
  PathCurve& curve = result.curve;
  curve.certified = svm.status == MarginStatus::certified;
  if (!curve.certified) return result;
  Parameters start;
  start.W = svm.W;
  const RegularizationPath path = regularization_path(model, {.norm = layer.norm(),
                                                              .radii = radii,
                                                              .starts = 0,
                                                              .given = {start},
                                                              .tol = path_tolerance,
                                                              .max_evaluations = 20'000});
  count_points(path, curve);
  for (const PathPoint& point : path.points)
    curve.distance.push_back(1 - selection_margin(data, optimal, combined_weights(point.parameters)) *
                                     svm.norm / point.radius);
  curve.optimal = path.points.back().selected == optimal;
  result.angle = 1 - correlation(svm.W, combined_weights(path.points.back().parameters));
  return result;
}

}  // namespace attmirror::causal
