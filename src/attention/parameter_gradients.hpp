// From the rows r_j = X^T dL/da_j of a block of queries to the gradients of the parameters, for the kernels that are
// compiled once per instruction set:
//
//   W       dL/dW = sum_j r_j z_j^T
//   (K,Q)   dL/dK = sum_j r_j (Q^T z_j)^T,   dL/dQ = sum_j z_j (K^T r_j)^T
//
// stored transposed where the parameters are. The weights that the safe form leaves out of r_j or puts into it
// (attention_steps.hpp) are relative to a common scale that is kept as a logarithm and rises with the blocks.
#pragma once

#include "attention/attention_steps.hpp"

namespace attmirror::ATTMIRROR_ISA {
namespace {

// What is wanted of the attention's parameters, and what its sums are.
[[gnu::always_inline]] inline bool wants_attention(const Sums& sums) {
  return sums.W != nullptr || sums.K != nullptr || sums.Q != nullptr || sums.direction != nullptr;
}

// Harmless numbers behind the last query of a block, for form_weights().
[[gnu::always_inline]] inline void pad_queries(const PerQuery& per, std::ptrdiff_t count,
                                               std::ptrdiff_t padded_count) {
  for (std::ptrdiff_t i = count; i < padded_count; ++i) {
    per.sum[i] = 1;
    per.gap[i] = 0;
  }
}

// Raises the common scale of the attention's gradient to what the block needs and forms the weights of its queries.
// False: the block has no gradient.
bool form_attention_weights(const Problem& problem, const PerQuery& per, Sums& sums, double inverse_count,
                            std::ptrdiff_t count, std::ptrdiff_t padded_count) {
  const double largest = wants_attention(sums) ? max_exponent(per.log_slope, per.gap, count) : -infinity;
  if (largest == -infinity) return false;
  sums.largest = max(largest, sums.largest);
  raise_scale(largest, sums.log_scale,
              {Part{sums.W, problem.dim * problem.stride}, Part{sums.K, problem.rank * problem.stride},
               Part{sums.Q, problem.dim * problem.rank_stride}, Part{sums.direction, problem.stride}});
  form_weights(per.log_slope, per.gap, per.sum, sums.log_scale, inverse_count, per.weight, padded_count);
  return true;
}

// The same for v.
void form_decoder_weights(const Problem& problem, const PerQuery& per, Sums& sums, double inverse_count,
                          std::ptrdiff_t count, std::ptrdiff_t padded_count) {
  raise_scale(max_exponent(per.log_slope, nullptr, count), sums.log_scale_v, {Part{sums.v, problem.stride}});
  form_weights(per.log_slope, nullptr, per.sum, sums.log_scale_v, inverse_count, per.weight_v, padded_count);
}

// From the rows r_j of the block to the gradients of W, K and Q: sum_j z_j r_j^T and its likes.
template <class Ahead>
void add_parameter_gradients(const Problem& problem, const Point& at, const Scratch& scratch, Sums& sums,
                             std::ptrdiff_t first, std::ptrdiff_t count, Ahead& ahead) {
  const std::ptrdiff_t stride = problem.stride, rank_stride = problem.rank_stride;
  const double* z = problem.queries + first * stride;
  if (sums.W != nullptr) add_outer_products(z, stride, scratch.r, sums.W, stride, problem.dim, count, ahead);
  if (sums.K != nullptr)
    add_outer_products(scratch.low, rank_stride, scratch.r, sums.K, stride, problem.rank, count, ahead);
  if (sums.Q != nullptr) {
    multiply_by_transposed(scratch.r, at.K, scratch.low_r, rank_stride, stride, count, problem.rank);
    for (std::ptrdiff_t i = 0; i < count; ++i)
      for (std::ptrdiff_t j = problem.rank; j < rank_stride; ++j) scratch.low_r[i * rank_stride + j] = 0;
    add_outer_products(z, stride, scratch.low_r, sums.Q, rank_stride, problem.dim, count, ahead);
  }
}

}  // namespace
}  // namespace attmirror::ATTMIRROR_ISA
