// What both transformers say of their attention. Internal.
#pragma once

#include <attmirror/base/error.hpp>
#include <attmirror/deep/network.hpp>

#include <cmath>
#include <cstdint>
#include <vector>

#include <ATen/ATen.h>
#include <fmt/format.h>

namespace attmirror::torch {

// The maps of a block from its joint weight: Q, then K, then V.
inline void add_projections(std::vector<Projection>& result, std::int64_t block,
                            const ::at::Tensor& query_key_value) {
  const auto parts = query_key_value.detach().chunk(3, 0);
  result.push_back({block, 'K', parts[1]});
  result.push_back({block, 'Q', parts[0]});
  result.push_back({block, 'V', parts[2]});
}

// A batch whose attention can be shown: of one sample, and without dropout.
inline Batch shown_batch(const Batch& one) {
  if (one.sequences() != 1)
    throw bad_input(fmt::format("a batch of {} samples has no one attention map", one.sequences()));
  Batch batch = one;
  batch.dropout_keys = ::at::Tensor();
  return batch;
}

// softmax(Q K^T / sqrt(width)) of one sample's queries and keys [rows, heads, width]: [heads, rows, rows].
inline ::at::Tensor attention_probabilities(const ::at::Tensor& query, const ::at::Tensor& key) {
  const ::at::Tensor q = query.to(::at::kFloat), k = key.to(::at::kFloat);
  const ::at::Tensor scores = ::at::matmul(q.transpose(0, 1), k.permute({1, 2, 0}));
  return ::at::softmax(scores / std::sqrt(static_cast<double>(query.size(2))), -1);
}

}  // namespace attmirror::torch
