// The direction in which a linear function grows fastest, when length is measured in a given norm:
//
//   d = argmax { <g, d> : ||d|| <= 1 },   <g, d> = ||g||_*, the dual norm
//
//   l_p, 1 < p < inf   sign(g) (|g| / ||g||_q)^{q-1}         p = 2: g / ||g||_2
//   l_1                the entry of largest |g|, with its sign   one coordinate moves
//   l_inf              sign(g)                               sign descent, Adam's limit
//   Schatten-p         the same on singular values: sum_k (sigma_k / ||sigma||_q)^{q-1} u_k v_k^T
//   nuclear            u_1 v_1^T                             a step of rank one
//   spectral           sum_k u_k v_k^T over sigma_k > 0      Muon
//
// Where there are several (ties of l_1, sign(0), the kernel of g in the spectral norm) the one with the most zeros is
// taken: first in storage order, 0, and 0.
#pragma once

#include "mirror/newton_schulz.hpp"
#include "mirror/spectral.hpp"
#include <attmirror/base/matrix.hpp>
#include <attmirror/mirror/lp_map.hpp>
#include <attmirror/mirror/norm.hpp>

#include <cstddef>
#include <optional>

namespace attmirror {

class SteepestDirection {
 public:
  // For matrices of this shape; the constructor allocates, nothing else does. One object serves one thread.
  SteepestDirection(Norm norm, std::ptrdiff_t rows, std::ptrdiff_t cols,
                    Orthogonalization how = Orthogonalization::exact);

  const Norm& norm() const { return norm_; }

  // Writes d and returns ||g||_*; d = 0 and 0 for g = 0. Newton-Schulz returns the <g, d> of its d instead, which is
  // near ||g||_*. `d` may be `g`. Neither very large nor very small entries matter. If an entry is not finite, all of
  // d is NaN and the result is infinity or NaN. Throws Error (bad input) for another shape.
  double find(ConstMatrixView g, MatrixView d);

 private:
  double find_scaled(ConstMatrixView g, MatrixView d);
  double find_spectral(ConstMatrixView g, MatrixView d);

  Norm norm_;
  std::ptrdiff_t rows_, cols_;
  std::optional<LpMap> powers_;  // 1 < p < infinity, of entries or singular values
  std::optional<Svd> svd_;
  std::optional<NewtonSchulz> newton_schulz_;
  PaddedMatrix scaled_, weights_;
};

}  // namespace attmirror
