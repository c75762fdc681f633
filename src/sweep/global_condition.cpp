#include "sweep/attractor_choices.hpp"
#include <attmirror/attention/tokens.hpp>
#include <attmirror/sweep/attractors.hpp>

#include <algorithm>

namespace attmirror {

GlobalCondition global_condition(const Attention& model) {
  const AttractorChoices choices(model);
  const Dataset& data = model.data();
  GlobalCondition result;
  result.applies = !std::holds_alternative<KQ>(model.parameterization());
  result.unique_best = result.equal_scores = true;
  Selection best;
  for (std::ptrdiff_t j = 0; j < data.total_queries(); ++j) {
    std::int64_t tops = 0, first = -1;
    for (std::ptrdiff_t t = 0; t < data.length(data.sequence_of(j)); ++t)
      if (choices.level(j, t) == choices.top_level(j)) {
        ++tops;
        if (first < 0) first = t;
      }
    best.tokens.push_back(first);
    // A query with a single token has nothing to decide.
    const bool single = data.attended_length(j) == 1;
    result.unique_best = result.unique_best && tops == 1;
    result.equal_scores = result.equal_scores && (choices.top_level(j) == 1 || single);
  }
  AttractorChoice choice = choices.of(best);
  if (!choices.has_constraints(choice)) return result;
  const MarginConstraints all = choices.constraints(choice);
  const MarginSolution solution = max_margin(all, Norm::frobenius());
  result.feasible = solution.status == MarginStatus::certified;
  // <a z^T, a' z'^T> = (a^T a') (z^T z'), each as a cosine.
  const auto left = all.left().eigen(), right = all.right().eigen();
  const auto cosine = [](const auto& a, const auto& b) {
    const double sizes = a.norm() * b.norm();
    return sizes > 0 ? a.dot(b) / sizes : 0.0;
  };
  for (std::ptrdiff_t g = 0; g < all.groups(); ++g)
    for (std::ptrdiff_t h = 0; h < g; ++h) {
      const double queries = cosine(right.row(g), right.row(h));
      for (std::ptrdiff_t k = all.first(g); k < all.first(g + 1); ++k)
        for (std::ptrdiff_t l = all.first(h); l < all.first(h + 1); ++l) {
          const double product = queries * cosine(left.row(k), left.row(l));
          if (product >= result.least_cosine) continue;
          result.least_cosine = product;
          result.first = all.origins()[static_cast<std::size_t>(l)];
          result.second = all.origins()[static_cast<std::size_t>(k)];
        }
    }
  return result;
}

}  // namespace attmirror
