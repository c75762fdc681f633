// Running averages of gradients, at any magnitude.
//
// A block's gradient is stored numbers G times e^s, and s falls without bound as training goes on. An average
// of such gradients needs a scale of its own: A e^a. To add G e^s to it is to add e^{s - a} G to A, as long as
// that factor and A itself stay within what doubles hold; when one of them leaves that range, A is scaled anew
// (by powers of two where it is our choice, so that no digit is lost). While gradients have s = 0 nothing is
// ever scaled, and the average is what plain arithmetic gives, to the bit.
#pragma once

#include <attmirror/attention/gradient.hpp>

#include <initializer_list>
#include <vector>

namespace attmirror {

// A block of a gradient, or of what takes its place: values times e^log_scale.
struct ScaledBlock {
  ConstMatrixView values;
  double log_scale = 0;
};

inline ScaledBlock scaled_block(const Gradient& gradient, std::ptrdiff_t b) {
  return {gradient.blocks.view(b), gradient.log_scale[static_cast<std::size_t>(b)]};
}

// The factor e^{s - a} that brings a gradient to the scale `a` of an average, after `a` was moved to s where
// the average is still 0, or where the gradient is so much larger that the factor might overflow. `average`
// lists the arrays that share the scale.
double align_scale(const ScaledBlock& gradient, double& a, std::initializer_list<MatrixView> average);

// Scales the average anew when its largest entry has drifted far from 1.
void recenter(double& a, std::initializer_list<MatrixView> average);

}  // namespace attmirror
