#include <attmirror/descent/comparison.hpp>
#include <attmirror/mirror/direction.hpp>

namespace attmirror {

Comparison compare(const Attention& model, const Matrix& solution, const Matrix& weights,
                   const Selection& tokens, const Measure& measure) {
  Comparison result;
  if (weights.isZero(0) || !weights.allFinite()) return result;
  result.directional_bregman = directional_bregman(solution, weights, measure.p);
  result.correlation = correlation(solution, weights);
  // Both margins are measured: a solution that was stored at another scale than margin 1 gives the same ratio. One
  // that does not separate the selected tokens has none.
  const double best = selection_margin(model, tokens, solution) / norm(solution, measure.norm);
  if (best > 0)
    result.margin_ratio = selection_margin(model, tokens, weights) / norm(weights, measure.norm) / best;
  return result;
}

}  // namespace attmirror
