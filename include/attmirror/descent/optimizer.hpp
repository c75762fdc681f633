// The optimizers: how a gradient moves the weights. Options are plain structs.
//
//   MirrorDescent     y <- y - lr g,  w = (grad psi)^{-1}(y)      psi = (1/p) ||.||_p^p: l_p-AttGD of P1
//   GradientDescent   w <- w - lr g                               the same to the bit as p = 2
//   SteepestDescent   w <- w - lr d(g)                            d(g): steepest direction in a norm
//   Adam              w <- w - lr m / (sqrt(v) + eps)             m, v: averages of g and g^2
//
// With `normalized`, each block's g is divided by its own dual norm (||.||_q with q = p/(p-1) for l_p;
// Frobenius for gradient descent), and all blocks move together. docs/optimizers.md says which to choose.
#pragma once

#include <attmirror/attention/gradient.hpp>
#include <attmirror/attention/loss.hpp>
#include <attmirror/descent/step_options.hpp>
#include <attmirror/mirror/lp_map.hpp>
#include <attmirror/mirror/norm.hpp>
#include <attmirror/mirror/steepest.hpp>

#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace attmirror {

// The potential psi of mirror descent.
enum class Geometry {
  lp,                  // (1/p) sum |w_j|^p
  schatten,            // (1/p) sum sigma_j(w)^p: the l_p geometry of the singular values
  hyperbolic_entropy,  // between l_1 (small beta) and l_2 (large beta), on either side of 0
};

std::string_view to_string(Geometry geometry);  // "lp", "schatten", "entropy"
Geometry parse_geometry(std::string_view name);

struct MirrorDescent {
  double p = 2;     // of lp and schatten, 1 < p < infinity; near 1 gives sparse weights, or low rank
  double lr = 0.1;  // step size in the dual space; the papers' synthetic runs all use 0.1
  bool normalized =
      false;  // divide each block's gradient by its dual norm; reaches the limit direction far sooner
  EpsPolicy eps = EpsPolicy::exact;
  double eps_value = 0x1p-52;          // the papers' 2.22e-16; used by EpsPolicy::paper only
  std::optional<Jacobian> jacobian{};  // empty: as the eps policy says, safe for exact and textbook for paper
  PowerPath power_path = PowerPath::fast;  // `general` switches the special cases of p off, to check them
  Geometry geometry = Geometry::lp;
  double beta = 1;      // of the hyperbolic entropy: the size below which entries move as in gradient descent
  Momentum momentum{};  // of the gradient, in the dual space
  Schedule schedule{};  // polyak for lp with p = 2 only

  void validate() const;  // throws Error (bad input) naming the field and its value
};

struct GradientDescent {
  double lr = 0.1;
  bool normalized = false;
  EpsPolicy eps = EpsPolicy::exact;
  double eps_value = 0x1p-52;
  std::optional<Jacobian> jacobian{};
  Momentum momentum{};
  Schedule schedule{};

  void validate() const;
};

struct SteepestDescent {
  Norm norm = Norm::l(std::numeric_limits<double>::infinity());  // sign descent
  double lr = 0.1;         // how far each step goes, in `norm`; times ||g||_* where it is not normalised
  bool normalized = true;  // the named methods all are
  EpsPolicy eps = EpsPolicy::exact;
  double eps_value = 0x1p-52;
  std::optional<Jacobian> jacobian{};
  Momentum momentum{};
  Schedule schedule{};
  Orthogonalization orthogonalization = Orthogonalization::exact;  // how the spectral direction is found

  void validate() const;
};

struct Adam {
  double lr = 0.1;  // about how far an entry goes in a step while gradients keep their sign
  double beta1 = 0.9, beta2 = 0.999;
  EpsPolicy eps = EpsPolicy::exact;  // exact: eps = 0, and the moments never underflow
  double eps_value = 1e-8;           // of EpsPolicy::paper
  std::optional<Jacobian> jacobian{};
  Schedule schedule{};

  void validate() const;
};

using Optimizer = std::variant<MirrorDescent, GradientDescent, SteepestDescent, Adam>;

// Steepest descent under the names it goes by.
SteepestDescent sign_descent(double lr = 0.1);        // l_inf
SteepestDescent coordinate_descent(double lr = 0.1);  // l_1: the largest entry of the gradient
SteepestDescent spectral_descent(double lr = 0.1);
SteepestDescent signum(double lr = 0.1, double beta = 0.9);  // sign descent along an average
// Spectral descent along an average, by Newton-Schulz iterations as published or exactly.
SteepestDescent muon(double lr = 0.1, double beta = 0.95,
                     Orthogonalization orthogonalization = Orthogonalization::newton_schulz);

void validate(const Optimizer& optimizer);
void validate(const Optimizer& optimizer, const Loss& loss);  // besides, whether it can minimise such a loss

// "mirror descent, p = 3, lr = 0.1, normalized, eps exact": equal texts mean equal rules, so checkpoints
// carry it.
std::string to_string(const Optimizer& optimizer);

// The command's word for the method: "md", "gd", "adam", "sign", "coordinate", "spectral", "signum", "muon", or
// "steepest" for a steepest descent that has no name.
std::string_view method_name(const Optimizer& optimizer);

// The Jacobian that the optimizer asks for, itself or by its eps policy. The two forms part ways only where the
// eps floor is active: there the textbook form follows rounding errors, and the safe one does not.
Jacobian jacobian_for(const Optimizer& optimizer);

// The norm in which the weights of this optimizer are measured, and whose margin its direction maximises where
// theory says so: l_p for mirror descent (Schatten-p, and l_1 for the entropy), Frobenius for gradient
// descent, that of steepest descent, l_inf for Adam.
Norm geometry_norm(const Optimizer& optimizer);

// The p of the l_p potential that directional Bregman divergences are taken in: that of l_p mirror descent.
// Optimizers without such a potential (all others) give 2, for which the divergence is 1 - cosine.
double geometry_p(const Optimizer& optimizer);

}  // namespace attmirror
