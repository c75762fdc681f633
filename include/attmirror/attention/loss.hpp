// The losses ell(m) of a margin m = Y f with which attention is trained: strictly decreasing and smooth.
//
//   Logistic      log(1 + e^-m)    every paper
//   Exponential   e^-m
//   LinearLoss    -m               P2's comparison of losses
//   Sigmoid       1 / (1 + e^m)    bounded, and not convex
//   CustomLoss    a class of yours
//
// P1, P2 and P3 assume that on every bounded interval a loss is strictly decreasing and ell' is bounded and
// Lipschitz; they do not assume convexity. All four losses satisfy this. (P2's result on training v together
// with the attention is about the logistic loss.) The sigmoid loss lies between 0 and 1, so no query adds
// more than 1/N to the mean. Its |ell'|, at most 1/4, falls off on both sides of m = 0: a query far on the
// wrong side hardly pulls, and plain descent may take very long to win it back.
//
// Gradients are needed far beyond the point where ell' underflows (normalized training uses only their
// direction), so each loss also provides log|ell'|, which never underflows.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace attmirror {

// `word` is what parse_loss() reads.
struct Logistic {
  static constexpr std::string_view word = "logistic";
};
// The exponential loss, e^{-m} for a margin m.
struct Exponential {
  static constexpr std::string_view word = "exponential";
};
// The linear loss, -m for a margin m.
struct LinearLoss {
  static constexpr std::string_view word = "linear";
};
// The sigmoid loss, 1/(1 + e^m) for a margin m: bounded, and not convex.
struct Sigmoid {
  static constexpr std::string_view word = "sigmoid";
};

// A loss of your own: strictly decreasing and differentiable. It is called from several threads at once.
class CustomLoss {
 public:
  virtual ~CustomLoss() = default;
  virtual std::string name() const = 0;  // runs record it
  virtual double value(double margin) const = 0;
  virtual double log_abs_derivative(double margin) const = 0;  // log|ell'|, where ell' itself may underflow
};

// Any loss: one of those above, or your own.
using Loss = std::variant<Logistic, Exponential, LinearLoss, Sigmoid, std::shared_ptr<const CustomLoss>>;

std::string to_string(const Loss& loss);  // "logistic", ..., "custom:NAME"

// The words that parse_loss() reads, in the order of `Loss`.
const std::vector<std::string_view>& loss_names();

// Throws Error (bad input) for a word that is not one of loss_names().
Loss parse_loss(std::string_view name);

// ell(m), ell'(m) and log|ell'(m)|, each to a few units in the last place. The kernels of the training step
// have their own vector form of these three formulas; a test compares the two.
double loss_value(const Loss& loss, double margin);
double loss_derivative(const Loss& loss, double margin);
double log_abs_loss_derivative(const Loss& loss, double margin);

}  // namespace attmirror
