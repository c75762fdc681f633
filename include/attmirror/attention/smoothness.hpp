// How fast the gradient of the loss can change: a constant L with
//
//   |grad L(W) - grad L(W')|_F <= L |W - W'|_F    for all W, W'
//
// on given data, and with it the step size 1/L below which plain gradient descent never raises the loss. With M1 >=
// |ell'| and M0 a Lipschitz constant of ell', over all margins that the data can have (P2, P3),
//
//   L = (1/N) sum_j |z_j|^2 ( M0 |v|^2 |X_i|^4 + 3 M1 |v| |X_i|^3 )
//
// over the N queries j, each on its sequence i, with spectral norms |X_i|; for a prompt |A| stands for |z_j|.
#pragma once

#include <attmirror/attention/attention.hpp>

#include <optional>

namespace attmirror {

// Bounds on a loss: |ell'| <= first, and ell' is Lipschitz with the constant `second`.
struct LossBounds {
  double first = 0, second = 0;
};

// The bounds for margins between -largest and largest; only those of the exponential loss depend on it. Nothing for a
// custom loss.
std::optional<LossBounds> loss_bounds(const Loss& loss, double largest);

// L for W and for prompts with a fixed v and a linear head; the logits' 1/sqrt(d) and the penalty are counted. Nothing
// where there is no such constant: K and Q multiply each other, a trained v multiplies the attention, and the
// derivatives of other heads and of custom losses are not known.
std::optional<double> gradient_lipschitz(const Attention& model);

}  // namespace attmirror
