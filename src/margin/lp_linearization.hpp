// What makes the l_p problem nonlinear, replaced by a line for each entry.
//
// At the optimum U = B^T lambda and W are tied entrywise by u = psi'(w) = sign(w)|w|^{p-1}, or w = phi(u) =
// sign(u)|u|^{q-1}, while everything else is linear. A Newton step replaces the curve by a line w = offset + D
// u. Which?
//
// p < 2: the tangent at (phi(u), u). D = (q-1)|u|^{q-2} vanishes at 0, where phi is smooth (psi' is not).
// p > 2: the chord through (w, psi'(w)) and (phi(u), u), of the W and the lambda that we have. The tangent at w alone
//        overshoots where w is far too small, the one at u is infinitely steep at 0; the chord is right for both points
//        and needs half the steps at p = 50.
//
// Slopes are bounded, from below for p < 2 and from above for p > 2: near 0 the line is far from the curve, and B D B^T
// would be singular to working precision. That changes the speed only. The bound loosens as the gap falls.
//
// Powers of W and U leave the range of a double for large p and q. Everything here is in a unit in which both
// points of every entry lie in [-1, 1]; with it lambda gets a scale too (any positive multiple of lambda proves the
// same bound, and one multiple fits: <U, phi(U)> = c^T lambda).
#pragma once

#include <attmirror/base/matrix.hpp>
#include <attmirror/mirror/lp_map.hpp>

namespace attmirror {

class LpLinearization {
 public:
  LpLinearization(std::ptrdiff_t rows, std::ptrdiff_t cols)
      : weights_(rows, cols),
        image_(rows, cols),
        slopes_(rows, cols),
        offset_(rows, cols),
        dual_(rows, cols) {}

  // Forms the lines at W, U = B^T lambda and c^T lambda > 0. `bound` in (0, 1) limits the slopes relative to that at
  // the largest entry. Returns unit(), or 0 where W or U is not finite or there is no positive scale.
  double form(const LpMap& map, ConstMatrixView W, ConstMatrixView U, double bound_product, double bound);

  double unit() const { return unit_; }                          // W = unit() * weights()
  double multiplier_scale() const { return multiplier_scale_; }  // U * multiplier_scale() = dual()
  ConstMatrixView weights() const { return weights_.view(); }
  ConstMatrixView dual() const { return dual_.view(); }
  ConstMatrixView slopes() const { return slopes_.view(); }  // D
  ConstMatrixView offset() const { return offset_.view(); }

 private:
  double unit_ = 0, multiplier_scale_ = 0;
  PaddedMatrix weights_, image_, slopes_, offset_, dual_;
};

}  // namespace attmirror
