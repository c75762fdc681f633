// The losses ell(m) of a margin m = Y f that attention is trained with: strictly decreasing and smooth.
//
//   Logistic      log(1 + e^-m)    every paper
//   Exponential   e^-m
//   Linear        -m               P2's comparison of losses
//
// Gradients are needed far beyond the point where ell' underflows (normalised training only uses their
// direction), so each loss also gives log|ell'|, which never does.
#pragma once

#include <string_view>
#include <variant>

namespace attmirror {

struct Logistic {};
struct Exponential {};
struct Linear {};
using Loss = std::variant<Logistic, Exponential, Linear>;

std::string_view to_string(const Loss& loss);

// Reads "logistic", "exponential" or "linear"; throws Error (bad input) for another word.
Loss parse_loss(std::string_view name);

// ell(m), ell'(m) and log|ell'(m)|, each to a few units in the last place. The kernels of the training step
// have their own vector form of the same three formulas; a test holds the two together.
double loss_value(const Loss& loss, double margin);
double loss_derivative(const Loss& loss, double margin);
double log_abs_loss_derivative(const Loss& loss, double margin);

}  // namespace attmirror
