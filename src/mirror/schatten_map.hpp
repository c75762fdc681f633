// The Schatten-p geometry, for every 1 < p < infinity: the l_p geometry of the singular values, w = U diag(sigma) V^T.
//
//   psi(w) = (1/p) sum sigma_k^p    y = U diag(sigma^{p-1}) V^T      w from y by the power 1/(p-1)
//   norm   ||sigma||_p              dual norm ||sigma(g)||_q, q = p/(p-1)
//
// Near p = 1 it favours low rank as l_p favours zeros. p = 2 is gradient descent, at the price of a singular value
// decomposition a step. Singular values that cannot be told from rounding (SmallValues::drop) count as 0: a power
// below 1 would otherwise lift them, 1e-17 to 0.02 at p = 1.1.
//
// The map keeps the memory of the decompositions, for each shape of matrix it has met. So, unlike LpMap, one object
// serves one thread at a time, and the first call for a shape allocates; later ones do not, but for bregman().
#pragma once

#include "mirror/spectral.hpp"
#include <attmirror/mirror/lp_map.hpp>
#include <attmirror/mirror/mirror_map.hpp>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace attmirror {

class SchattenMap final : public MirrorMap {
 public:
  // Throws Error (bad input) unless 1 < p < infinity.
  explicit SchattenMap(double p);

  double p() const { return powers_.p(); }
  double q() const { return powers_.q(); }

  std::string name() const override;
  double potential(ConstMatrixView w) const override;
  void map(ConstMatrixView w, MatrixView y) const override;
  void inverse(ConstMatrixView y, MatrixView w) const override;
  double norm(ConstMatrixView w) const override;
  double dual_norm(ConstMatrixView g) const override;
  double steepest(ConstMatrixView g, MatrixView d) const override;

  // To an absolute error of about eps |a|^{p-1} |a - b|: the relative error is that of a - b, so that a distance of
  // 1e-9 |a| is known to 7 digits, though the divergence is then 1e-18 |a|^p.
  double bregman(ConstMatrixView a, ConstMatrixView b) const override;

  void step(ConstMatrixView g, double scale, MatrixView y, MatrixView w) const override;

 private:
  struct Workspace {
    Workspace(std::ptrdiff_t rows, std::ptrdiff_t cols);
    Svd svd;
    PaddedMatrix weights;
  };
  Workspace& decompose(ConstMatrixView a) const;

  LpMap powers_;
  LpMap euclid_{2};
  mutable std::vector<std::unique_ptr<Workspace>> workspaces_;
};

}  // namespace attmirror
