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

// A weight, and a bias or none.
struct Affine {
  at::Tensor weight, bias = {};
};
// What is added to x: rows, and a bias that they lack still, or none.
struct Branch {
  at::Tensor rows, bias = {};
};
// Two readers of a norm: one of the norms, the other of the sum that they are the norm of, or of the norms as well.
struct NormedRows {
  at::Tensor passed, normed;
};

// norm(x + dropped(branch)) weight, of each row: mean 0 and variance 1 (eps 1e-5), times `weight` [width]; for two
// readers. One pass over memory on a GPU.
NormedRows residual_norm(const at::Tensor& x, const at::Tensor& branch, const at::Tensor& weight,
                         const Dropout& dropout);

// The sum x + dropped(branch), and its norm with weight and bias in the type `type` (in which the branch is): a network
// whose norms stand before its maps goes on with both. Without a branch (undefined) the sum is x.
NormedRows sum_and_norm(const at::Tensor& x, const Branch& branch, const Affine& norm, const Dropout& dropout,
                        at::ScalarType type);
// Whether that is one pass, in which a bias costs nothing: otherwise it should be in the rows already.
bool takes_branch_bias(const at::Tensor& x, at::ScalarType type);

// dropped(gelu(x + bias)). The bias may be undefined where x has it already, and must be unless takes_gelu_bias() of
// what x is a map of.
at::Tensor dropped_gelu(const at::Tensor& x, const at::Tensor& bias, const Dropout& dropout);
bool takes_gelu_bias(const at::Tensor& mapped, std::int64_t width);

// gelu(x), on a GPU by a kernel of ours.
at::Tensor plain_gelu(const at::Tensor& x);

}  // namespace attmirror::deep
