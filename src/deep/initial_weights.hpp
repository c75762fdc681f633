// Initial weights as functions of a seed: number i of parameter k. Without a seed they are 0, for weights that are
// loaded in a moment: the normal numbers of a vocabulary take half a second. Internal.
#pragma once

#include <cstdint>
#include <optional>

#include <torch/types.h>

namespace attmirror::deep {

// Fills parameters one after another; each call is for the next.
class InitialWeights {
 public:
  explicit InitialWeights(std::optional<std::uint64_t> seed) : seed_(seed) {}

  at::Tensor normal(at::IntArrayRef shape, double deviation = 1);  // N(0, deviation^2)
  at::Tensor linear(at::IntArrayRef shape, std::int64_t inputs);   // U(-1/sqrt(inputs), 1/sqrt(inputs))

 private:
  std::optional<std::uint64_t> seed_;
  std::uint64_t parameter_ = 0;
};

}  // namespace attmirror::deep
