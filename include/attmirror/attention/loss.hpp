// The losses ell(m) of a margin m = Y f that attention is trained with: strictly decreasing and smooth.
//
//   Logistic      log(1 + e^-m)    every paper
//   Exponential   e^-m
//   Linear        -m               P2's comparison of losses
//   CustomLoss    a class of yours
//
// Gradients are needed far beyond the point where ell' underflows (normalised training only uses their
// direction), so each loss also gives log|ell'|, which never does.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <variant>

namespace attmirror {

struct Logistic {};
struct Exponential {};
struct Linear {};

// A loss of your own: strictly decreasing and differentiable. It is called from several threads at once.
class CustomLoss {
 public:
  virtual ~CustomLoss() = default;
  virtual std::string name() const = 0;  // runs record it
  virtual double value(double margin) const = 0;
  virtual double log_abs_derivative(double margin) const = 0;  // log|ell'|, where ell' itself may underflow
};

using Loss = std::variant<Logistic, Exponential, Linear, std::shared_ptr<const CustomLoss>>;

std::string to_string(const Loss& loss);  // "logistic", ..., "custom:NAME"

// Reads "logistic", "exponential" or "linear"; throws Error (bad input) for another word.
Loss parse_loss(std::string_view name);

// ell(m), ell'(m) and log|ell'(m)|, each to a few units in the last place. The kernels of the training step
// have their own vector form of the same three formulas; a test holds the two together.
double loss_value(const Loss& loss, double margin);
double loss_derivative(const Loss& loss, double margin);
double log_abs_loss_derivative(const Loss& loss, double margin);

}  // namespace attmirror
