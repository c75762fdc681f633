// Adam's step of one number, for the GPU's kernel and for the tests that compare it with LibTorch's on the CPU.
//
//   g <- g + weight_decay w (Adam), or w <- (1 - rate weight_decay) w (AdamW)
//   m <- b1 m + (1 - b1) g,   v <- b2 v + (1 - b2) g^2
//   w <- w - rate / (1 - b1^t)  m / (sqrt(v) / sqrt(1 - b2^t) + eps)
//
// Internal.
#pragma once

#include "mirror/host_device.hpp"

#include <cmath>

namespace attmirror {

struct AdamNumbers {
  double rate = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
  bool decoupled = false;  // AdamW
};

// What all numbers of step t have in common.
struct AdamConstants {
  float beta1, new1;  // new1 = 1 - beta1
  float beta2, new2;
  float length;     // rate / (1 - beta1^t)
  float unbias;     // 1 / sqrt(1 - beta2^t)
  float eps, keep;  // keep = 1 - rate weight_decay; 1 for Adam
  float l2;         // the weight decay of Adam, 0 for AdamW
};

ATTMIRROR_HOST_DEVICE inline AdamConstants adam_constants(const AdamNumbers& numbers, double rate, double t) {
  AdamConstants k;
  k.beta1 = static_cast<float>(numbers.beta1);
  k.new1 = static_cast<float>(1 - numbers.beta1);
  k.beta2 = static_cast<float>(numbers.beta2);
  k.new2 = static_cast<float>(1 - numbers.beta2);
  k.length = static_cast<float>(rate / (1 - pow(numbers.beta1, t)));
  k.unbias = static_cast<float>(1 / sqrt(1 - pow(numbers.beta2, t)));
  k.eps = static_cast<float>(numbers.eps);
  k.keep = numbers.decoupled ? static_cast<float>(1 - rate * numbers.weight_decay) : 1.0f;
  k.l2 = numbers.decoupled ? 0.0f : static_cast<float>(numbers.weight_decay);
  return k;
}

ATTMIRROR_HOST_DEVICE inline void adam_element(float& w, float& m, float& v, float g,
                                               const AdamConstants& k) {
  g = fmaf(k.l2, w, g);
  w *= k.keep;
  m = fmaf(k.beta1, m, k.new1 * g);
  v = fmaf(k.beta2, v, k.new2 * (g * g));
  w = fmaf(-k.length, m / fmaf(sqrtf(v), k.unbias, k.eps), w);
}

}  // namespace attmirror
