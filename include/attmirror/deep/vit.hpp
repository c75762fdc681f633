// P1's network for images: a vision transformer with norms before each part.
//
//   x_0 = class token, x_1.. = a linear map of each patch (channels x patch x patch numbers);  x <- dropout(x + position)
//   per block:  x <- x + dropout(O softmax(Q K^T / sqrt(head_width)) V)(norm x);  x <- x + dropout(B dropout(gelu(A norm x)))
//   logits = head norm(x_0)
//
// Q, K, V have no biases; the other linear maps and the norms do. Class token and positions start from N(0, 1), linear
// maps of n inputs (and their biases) from U(-1/sqrt n, 1/sqrt n), norms from 1 and 0.
#pragma once

#include <attmirror/deep/network.hpp>
#include <attmirror/deep/packed_attention.hpp>

#include <cstdint>
#include <vector>

namespace attmirror::torch {

struct VitOptions {
  std::int64_t image = 48;  // height and width that images are resized to
  std::int64_t patch = 4;
  std::int64_t channels = 3;
  std::int64_t classes = 10;
  std::int64_t width = 512;
  std::int64_t blocks = 6;
  std::int64_t heads = 8;
  std::int64_t head_width = 64;
  std::int64_t hidden = 512;  // of the MLP
  double dropout = 0.1;
  AttentionKind attention = AttentionKind::automatic;

  void validate() const;  // throws Error (bad input)
};

class VisionTransformer : public Network {
 public:
  // As EncoderClassifier: initial weights are a function of `seed`, arithmetic is that of `compute`.
  VisionTransformer(const VitOptions& options, std::uint64_t seed, ::at::ScalarType compute = ::at::kFloat);

  ::at::Tensor logits(const Batch& batch) override;
  std::vector<::at::Tensor> attention_maps(const Batch& one) override;
  std::vector<Projection> projections() const override;
  std::int64_t classes() const override { return options_.classes; }
  std::string kind() const override { return "vit"; }
  double training_flops(std::span<const std::int64_t> lengths) const override;

  const VitOptions& options() const { return options_; }

 private:
  struct Block;
  VitOptions options_;
  ::at::ScalarType compute_;
  std::vector<Block> blocks_;
};

}  // namespace attmirror::torch
