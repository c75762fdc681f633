// The hyperbolic entropy (Ghai, Hazan and Singer, "Exponentiated gradient meets gradient descent", 2020): an entropy
// for weights of both signs.
//
//   psi(w) = sum w asinh(w / beta) - sqrt(w^2 + beta^2) + beta
//   y = asinh(w / beta)      w = beta sinh(y)
//
// Where |w| is far below beta, psi is w^2 / (2 beta): gradient descent with steps of beta. Far above, it is |w|
// log|w|: weights are multiplied by e^{-eta g}, and descent favours sparse weights, as p near 1 does. The norm that
// goes with it is l_1, the dual norm l_inf.
#pragma once

#include <attmirror/mirror/mirror_map.hpp>

#include <string>

namespace attmirror {

class HyperbolicEntropyMap final : public MirrorMap {
 public:
  // Throws Error (bad input) unless 0 < beta < infinity.
  explicit HyperbolicEntropyMap(double beta);

  double beta() const { return beta_; }

  std::string name() const override;
  double potential(ConstMatrixView w) const override;
  void map(ConstMatrixView w, MatrixView y) const override;
  void inverse(ConstMatrixView y, MatrixView w) const override;
  double norm(ConstMatrixView w) const override;
  double dual_norm(ConstMatrixView g) const override;
  double steepest(ConstMatrixView g, MatrixView d) const override;
  double bregman(ConstMatrixView a, ConstMatrixView b) const override;
  void step(ConstMatrixView g, double scale, MatrixView y, MatrixView w) const override;

 private:
  double beta_;
};

// Throws Error (bad input) naming beta unless 0 < beta < infinity.
void validate_beta(double beta);

}  // namespace attmirror
