#include "margin/lp_pair.hpp"

#include "base/numbers.hpp"
#include "mirror/entries.hpp"

#include <algorithm>
#include <cmath>

namespace attmirror {

LpPair::LpPair(const ScaledConstraints& all)
    : constraints(all),
      W(all.rows(), all.cols()),
      U(W),
      best_W(W),
      lambda(at(all.count())),
      margins(lambda),
      best_lambda(lambda) {
  for (std::ptrdiff_t k = 0; k < all.count(); ++k) {
    const double c = all.bounds()[at(k)];
    largest_bound = std::max(largest_bound, std::fabs(c));
    if (all.is_equality(k) && c != 0) scalable = false;
    hard = hard || all.is_equality(k) || c == 0;
  }
}

void LpPair::judge(const LpMap& map) {
  const auto c = constraints.bounds();
  double scale = 1, worst = 0, bound_product = 0;
  for (std::ptrdiff_t k = 0; k < constraints.count(); ++k) {
    const double margin = margins[at(k)], bound = c[at(k)];
    bound_product += bound * lambda[at(k)];
    if (constraints.is_equality(k))
      worst = std::max(worst, std::fabs(margin - bound));
    else if (bound == 0 || !scalable)
      worst = std::max(worst, bound - margin);
    else if (!(margin * scale >= bound))
      scale = margin > 0 ? bound / margin : infinity;
  }
  const double size = max_abs(W.view());
  excess = scale - 1;
  violation = size > 0 && std::isfinite(size) ? worst / (size * scale) : infinity;
  const double dual_norm = map.dual_norm(U.view());
  const double norm = violation <= 10 * hard_tolerance ? scale * map.norm(W.view()) : infinity;
  const double dual = dual_norm > 0 ? bound_product / dual_norm : 0;
  if (norm < best_norm) {
    best_norm = norm;
    best_W = W;
  }
  if (dual > best_dual) {
    best_dual = dual;
    best_lambda = lambda;
  }
  gap = std::isfinite(best_norm) ? (best_norm - best_dual) / best_norm : infinity;
  current_gap = std::isfinite(norm) ? std::max((norm - dual) / norm, gap) : infinity;
}

void LpPair::forget_best() {
  best_norm = infinity;
  best_dual = 0;
}

void LpPair::return_to_best() {
  if (std::isfinite(best_norm)) W = best_W;
  if (best_dual > 0) lambda = best_lambda;
}

}  // namespace attmirror
