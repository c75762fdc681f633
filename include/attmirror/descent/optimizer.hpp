// The optimizers: how a gradient moves the weights. Options are plain structs.
//
//   MirrorDescent     y <- y - lr g,  w = (grad psi)^{-1}(y)      psi = (1/p) ||.||_p^p: l_p-AttGD of P1
//   GradientDescent   w <- w - lr g                               the same to the bit as p = 2
//   SteepestDescent   w <- w - lr d(g)                            d(g): steepest direction in a norm
//   Adam              w <- w - lr m / (sqrt(v) + eps)             m, v: averages of g and g^2
//   Lion              w <- w - lr sign(b1 m + (1 - b1) g)         m: average of g, which forgets more slowly
//   AdaGrad           w <- w - lr g / (sqrt(s) + eps)             s: sum of all g^2 so far
//
// With `normalized`, each block's g is divided by its own dual norm (||.||_q with q = p/(p-1) for l_p;
// Frobenius for gradient descent), and all blocks move together. docs/choosing-an-optimizer.md says which to
// choose.
//
// Each struct has its own validate(), geometry_norm() and make_rule(), the last two defined next to its rule
// in src/descent; without them it cannot be an Optimizer.
#pragma once

#include <attmirror/attention/gradient.hpp>
#include <attmirror/attention/loss.hpp>
#include <attmirror/descent/step_options.hpp>
#include <attmirror/mirror/lp_map.hpp>
#include <attmirror/mirror/norm.hpp>

#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

namespace attmirror {

class UpdateRule;

// The potential psi of mirror descent.
enum class Geometry {
  lp,                  // (1/p) sum |w_j|^p
  schatten,            // (1/p) sum sigma_j(w)^p: the l_p geometry of the singular values
  hyperbolic_entropy,  // between l_1 (small beta) and l_2 (large beta), on either side of 0
};

std::string_view to_string(Geometry geometry);  // "lp", "schatten", "entropy"
Geometry parse_geometry(std::string_view name);

// Mirror descent in a geometry of its choice: P1's l_p-AttGD for Geometry::lp.
struct MirrorDescent {
  double p = 2;     // of lp and schatten, 1 < p < infinity; near 1 gives sparse weights, or low rank
  double lr = 0.1;  // step size in the dual space; the papers' synthetic runs all use 0.1
  // Divide each block's gradient by its dual norm; this reaches the limit direction far sooner.
  bool normalized = false;
  EpsPolicy eps = EpsPolicy::exact;
  double eps_value = 0x1p-52;          // the papers' 2.22e-16; used by EpsPolicy::paper only
  std::optional<Jacobian> jacobian{};  // empty: as the eps policy says, safe for exact and textbook for paper
  PowerPath power_path = PowerPath::fast;  // `general` switches off the special cases of p, to check them
  Geometry geometry = Geometry::lp;
  double beta = 1;      // of the hyperbolic entropy: below this size, entries move as in gradient descent
  Momentum momentum{};  // of the gradient, in the dual space
  Schedule schedule{};  // polyak only for lp with p = 2

  void validate() const;                      // throws Error (bad input) naming the field and its value
  std::optional<Norm> geometry_norm() const;  // see geometry_norm() below
  // Requires valid options. The rule starts from `weights`, which hold all blocks, and moves those in `trained`.
  std::unique_ptr<UpdateRule> make_rule(std::span<const BlockShape> trained,
                                        const ParameterBlocks& weights) const;
};

// Gradient descent, plain or normalized by the Frobenius norm of the gradient.
struct GradientDescent {
  double lr = 0.1;
  bool normalized = false;
  EpsPolicy eps = EpsPolicy::exact;
  double eps_value = 0x1p-52;
  std::optional<Jacobian> jacobian{};
  Momentum momentum{};
  Schedule schedule{};

  void validate() const;
  std::optional<Norm> geometry_norm() const;
  std::unique_ptr<UpdateRule> make_rule(std::span<const BlockShape> trained,
                                        const ParameterBlocks& weights) const;
};

// Steepest descent in a norm: each step goes where that norm gains most.
struct SteepestDescent {
  Norm norm = Norm::l(std::numeric_limits<double>::infinity());  // sign descent
  double lr = 0.1;         // how far each step goes, in `norm`; times ||g||_* if it is not normalized
  bool normalized = true;  // true for all named methods
  EpsPolicy eps = EpsPolicy::exact;
  double eps_value = 0x1p-52;
  std::optional<Jacobian> jacobian{};
  Momentum momentum{};
  Schedule schedule{};
  Orthogonalization orthogonalization = Orthogonalization::exact;  // how the spectral direction is found

  void validate() const;
  std::optional<Norm> geometry_norm() const;
  std::unique_ptr<UpdateRule> make_rule(std::span<const BlockShape> trained,
                                        const ParameterBlocks& weights) const;
};

// Adam of Kingma and Ba 2015, by default without its eps.
struct Adam {
  double lr = 0.1;  // about how far an entry moves in a step as long as gradients keep their sign
  double beta1 = 0.9, beta2 = 0.999;
  EpsPolicy eps = EpsPolicy::exact;  // exact: eps = 0, and the moments never underflow
  double eps_value = 1e-8;           // of EpsPolicy::paper
  std::optional<Jacobian> jacobian{};
  Schedule schedule{};

  void validate() const;
  std::optional<Norm> geometry_norm() const;
  std::unique_ptr<UpdateRule> make_rule(std::span<const BlockShape> trained,
                                        const ParameterBlocks& weights) const;
};

// Chen and others 2023, "Symbolic discovery of optimization algorithms": sign descent along a mixture of the
// current gradient and a long average. With beta1 = beta2 it is Signum. A sign does not depend on the size of
// a gradient, so there is no eps.
struct Lion {
  double lr = 0.1;                     // how far each entry moves in a step
  double beta1 = 0.9;                  // of the mixture c = beta1 m + (1 - beta1) g, whose sign is the step
  double beta2 = 0.99;                 // of the average m <- beta2 m + (1 - beta2) g
  std::optional<Jacobian> jacobian{};  // empty: safe
  Schedule schedule{};                 // not polyak

  void validate() const;
  std::optional<Norm> geometry_norm() const;
  std::unique_ptr<UpdateRule> make_rule(std::span<const BlockShape> trained,
                                        const ParameterBlocks& weights) const;
};

// Duchi, Hazan and Singer 2011, "Adaptive subgradient methods for online learning and stochastic optimization",
// with a diagonal matrix: gradient descent in which each entry has its own step size, which can only fall.
struct AdaGrad {
  double lr = 0.1;                   // how far an entry moves in its first step
  EpsPolicy eps = EpsPolicy::exact;  // exact: eps = 0, and the sums never underflow
  double eps_value = 1e-10;          // of EpsPolicy::paper; PyTorch's
  std::optional<Jacobian> jacobian{};
  Schedule schedule{};  // not polyak

  void validate() const;
  std::optional<Norm> geometry_norm() const;
  std::unique_ptr<UpdateRule> make_rule(std::span<const BlockShape> trained,
                                        const ParameterBlocks& weights) const;
};

// Any of the optimizers.
using Optimizer = std::variant<MirrorDescent, GradientDescent, SteepestDescent, Adam, Lion, AdaGrad>;

// Steepest descent under its usual names.
SteepestDescent sign_descent(double lr = 0.1);        // l_inf
SteepestDescent coordinate_descent(double lr = 0.1);  // l_1: the largest entry of the gradient
SteepestDescent spectral_descent(double lr = 0.1);
SteepestDescent signum(double lr = 0.1, double beta = 0.9);  // sign descent along an average
// Spectral descent along an average, by Newton-Schulz iterations as published or exactly.
SteepestDescent muon(double lr = 0.1, double beta = 0.95,
                     Orthogonalization orthogonalization = Orthogonalization::newton_schulz);

void validate(const Optimizer& optimizer);
void validate(const Optimizer& optimizer, const Loss& loss);  // also: whether it can minimize such a loss

// "mirror descent, p = 3, lr = 0.1, normalized, eps exact": equal texts mean equal rules, so checkpoints
// store it.
std::string to_string(const Optimizer& optimizer);

// The command's word for the method: "md", "gd", "adam", "lion", "adagrad", "sign", "coordinate", "spectral", "signum",
// "muon", or "steepest" for a steepest descent that has no name.
std::string_view method_name(const Optimizer& optimizer);

// The Jacobian that the optimizer asks for, directly or through its eps policy; safe if it has neither. The
// two forms differ only where the eps floor is active: there the textbook form follows rounding errors and
// the safe one does not.
Jacobian jacobian_for(const Optimizer& optimizer);

// The norm whose margin the direction of the weights maximizes, as far as theory has an answer: l_p for mirror
// descent (Schatten-p, and l_1 for the entropy), Frobenius for gradient descent, its own norm for steepest descent,
// l_inf for Adam and Lion. Empty for AdaGrad, which maximizes the margin in no norm that is known before the run.
std::optional<Norm> geometry_norm(const Optimizer& optimizer);

// The norm in which records and results measure the weights: that of the geometry, otherwise Frobenius.
Norm measuring_norm(const Optimizer& optimizer);

// The p of the l_p potential for directional Bregman divergences: that of l_p mirror descent. All other
// optimizers have no such potential and give 2, for which the divergence is 1 - cosine.
double geometry_p(const Optimizer& optimizer);

}  // namespace attmirror
