// Dropout whose every decision has an address: (seed, step, sample, place, which dropout of the network, column).
//
// The usual dropout draws from a generator, so what it drops depends on what was drawn before: on the batch's order, on
// the number of processes, on where a training was stopped. Here a row has a key (network.hpp), and whether an element
// stays is a hash of key, site and column. Nothing is stored: the backward pass computes the same bits again. Internal.
#pragma once

#include <cstdint>

#include <torch/types.h>

namespace attmirror::deep {

struct Dropout {
  double probability = 0;
  at::Tensor keys;         // int64 [rows]; undefined: nothing is dropped
  std::uint32_t site = 0;  // which of the network's dropouts

  bool active() const { return keys.defined() && probability > 0; }
};

// x [rows, width]: each element 0 with the probability, otherwise x / (1 - probability).
at::Tensor dropped(const at::Tensor& x, const Dropout& dropout);

// norm(x + dropped(branch)) weight, of each row: mean 0 and variance 1 (eps 1e-5), times `weight` [width]. One pass
// over memory on a GPU.
at::Tensor residual_norm(const at::Tensor& x, const at::Tensor& branch, const at::Tensor& weight,
                         const Dropout& dropout);

}  // namespace attmirror::deep
