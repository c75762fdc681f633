// The update rules: how a gradient moves the weights. Options are plain structs; `UpdateRule` is what the loop calls.
//
//   MirrorDescent    y <- y - lr g,  w = (grad psi)^{-1}(y),  psi = (1/p) ||.||_p^p     l_p-AttGD of P1
//   GradientDescent  w <- w - lr g                                                     the same to the bit as p = 2
//
// With `normalized`, each block's g is divided by its own dual norm (||.||_q with q = p/(p-1); Frobenius for
// gradient descent), and all blocks move together.
#pragma once

#include <attmirror/attention/gradient.hpp>
#include <attmirror/mirror/lp_map.hpp>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace attmirror {

// What happens when gradients become very small.
enum class EpsPolicy {
  exact,  // the safe Jacobian and a gradient scaled in the log domain: normalised steps never freeze
  paper,  // g / (||g|| + eps) with the textbook Jacobian, as the published code: freezes near ||g|| = eps
};

std::string_view to_string(EpsPolicy policy);
EpsPolicy parse_eps_policy(std::string_view name);

struct MirrorDescent {
  double p = 2;     // the geometry, 1 < p < infinity; near 1 gives sparse weights
  double lr = 0.1;  // step size; the papers' synthetic runs all use 0.1
  bool normalized =
      false;  // divide each block's gradient by its dual norm; reaches the limit direction far sooner
  EpsPolicy eps = EpsPolicy::exact;
  double eps_value = 0x1p-52;          // the papers' 2.22e-16; used by EpsPolicy::paper only
  std::optional<Jacobian> jacobian{};  // empty: as the eps policy says, safe for exact and textbook for paper
  PowerPath power_path = PowerPath::fast;  // `general` switches the special cases of p off, to check them

  void validate() const;  // throws Error (bad input) naming the field and its value
};

struct GradientDescent {
  double lr = 0.1;
  bool normalized = false;
  EpsPolicy eps = EpsPolicy::exact;
  double eps_value = 0x1p-52;
  std::optional<Jacobian> jacobian{};

  void validate() const;
};

using Optimizer = std::variant<MirrorDescent, GradientDescent>;

void validate(const Optimizer& optimizer);

// "mirror descent, p = 3, lr = 0.1, normalized, eps exact": equal texts mean equal rules, so checkpoints
// carry it.
std::string to_string(const Optimizer& optimizer);

// The Jacobian that the optimizer asks for, itself or by its eps policy. The two forms part ways only where the
// eps floor is active: there the textbook form follows rounding errors, and the safe one does not.
Jacobian jacobian_for(const Optimizer& optimizer);

// The geometry in which the weights of this optimizer are measured: l_p, or l_2 for gradient descent.
double geometry_p(const Optimizer& optimizer);

// A rule at work: its state belongs to one run.
class UpdateRule {
 public:
  virtual ~UpdateRule() = default;

  // Moves the trained blocks of `weights` by one step. `gradient` has the trained blocks in the same order.
  virtual void step(const Gradient& gradient, ParameterBlocks& weights) = 0;

  // The rule's own memory (the dual image y of mirror descent; empty for gradient descent), for checkpoints.
  virtual std::vector<std::pair<std::string, ParameterBlocks*>> state() = 0;
};

// The rule starts from `weights`, which hold all blocks of `model`.
std::unique_ptr<UpdateRule> make_rule(const Optimizer& optimizer, const Attention& model,
                                      const ParameterBlocks& weights);

}  // namespace attmirror
