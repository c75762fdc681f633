// P1's network for images: a vision transformer with a norm before each part.
//
//   x_0 = class token, x_1.. = a linear map of each patch (channels x patch x patch numbers);  x <- dropout(x +
//                                                                                              position)
//   per block:  x <- x + dropout(O softmax(Q K^T / sqrt(head_width)) V) of norm(x);
//               x <- x + dropout(B dropout(gelu(A norm(x))))
//   logits = head norm(x_0)
//
// Q, K, V have no biases; the other linear maps and the norms do. Class token and positions start from N(0, 1),
// linear maps of n inputs (and their biases) from U(-1/sqrt n, 1/sqrt n), norms from 1 and 0. Attention probabilities
// are not dropped.
//
// Batches have rows as for packed texts: an image is a sample of `tokens()` rows, the class token first, then
// the patches line by line.
#pragma once

#include <attmirror/deep/transformer.hpp>

#include <cstdint>
#include <optional>
#include <vector>

namespace attmirror::deep {

// The sizes of a vision transformer.
struct VitOptions {
  std::int64_t image = 48;  // height and width that images are resized to
  std::int64_t patch = 4;   // a divisor of image
  std::int64_t channels = 3;
  std::int64_t classes = 10;
  std::int64_t width = 512;  // of a token
  std::int64_t blocks = 6;
  std::int64_t heads = 8;        // at most 4096
  std::int64_t head_width = 64;  // heads * head_width need not be width
  std::int64_t hidden = 512;     // of the MLP
  double dropout = 0.1;
  AttentionKind attention = AttentionKind::automatic;
  LastBlock last_block = LastBlock::first_token;

  std::int64_t patches() const { return (image / patch) * (image / patch); }
  std::int64_t tokens() const { return patches() + 1; }
  std::int64_t patch_numbers() const { return channels * patch * patch; }

  double parameters() const;  // the number of trained numbers

  // Throws Error (bad input): "patch is 5: expected a divisor of image, 48".
  void validate() const;
};

// P1's network for images, which classifies by its class token.
class VisionTransformer : public Transformer {
 public:
  // As in EncoderClassifier, initial weights are a function of `seed` (0 without one), and arithmetic is in
  // `compute`. If that is bfloat16, x itself stays in float32: blocks add to it, and small additions would be lost.
  VisionTransformer(const VitOptions& options, std::optional<std::uint64_t> seed,
                    at::ScalarType compute = at::kFloat);

  std::int64_t classes() const override { return options_.classes; }
  std::string kind() const override { return "vit"; }
  double training_flops(std::span<const std::int64_t> lengths) const override;

  const VitOptions& options() const { return options_; }

 private:
  static AttentionShape shape_of(const VitOptions& options);
  Affine add_norm(const std::string& name);
  at::Tensor norm(const at::Tensor& x, const Affine& map) const;

  // Throws Error (bad input) for images of another size and for batches with another number of tokens.
  void check(const Batch& batch) const override;
  std::int64_t longest(const Batch&) const override { return options_.tokens(); }
  at::Tensor embedded(const Batch& batch) const override;
  at::Tensor first_rows(const at::Tensor& rows, const Batch& batch) const override;
  at::Tensor answer(const at::Tensor& first, const Batch& batch) const override;
  Rows entered(const Block& first, const at::Tensor& x) const override;
  AttentionDropout attention_dropout(std::int64_t block, const at::Tensor& keys,
                                     const Batch& batch) const override;
  Rows after_attention(const Block& block, std::int64_t index, const at::Tensor& x, const at::Tensor& mixed,
                       const at::Tensor& keys, const Block* next) const override;

  VitOptions options_;
  at::Tensor class_token_, position_embedding_;
  Affine patch_embedding_, head_norm_, head_;
};

}  // namespace attmirror::deep
