// P1's network for sentiment: a transformer encoder with a norm after each part, which answers yes or no from
// its first token.
//
//   x = token_embedding[id] + position_embedding[place]
//   per block:  x <- norm(x + dropout(O softmax(Q K^T / sqrt(head_width)) V));  x <- norm(x + dropout(B gelu(A x)))
//   logit = head . x_0
//
// There are no biases, not even in the norms. Embeddings start from N(0, 1), linear maps of n inputs from
// U(-1/sqrt n, 1/sqrt n), norms from 1: PyTorch's defaults, from which P1 starts.
//
// The answer depends on one token. So in the last block only that token is a query: keys and values are
// needed for all tokens, queries and everything after them only for the first. Nothing that the answer
// depends on is left out; `last_block` switches this off.
#pragma once

#include <attmirror/deep/transformer.hpp>

#include <cstdint>
#include <optional>
#include <vector>

namespace attmirror::deep {

// The sizes of an encoder for texts.
struct EncoderOptions {
  std::int64_t vocabulary = 30522;  // bert-base-uncased
  std::int64_t length = 512;        // positions that have an embedding; longer texts are cut before
  std::int64_t width = 384;         // of a token
  std::int64_t blocks = 3;
  std::int64_t heads = 3;   // a divisor of width, at most 4096
  std::int64_t hidden = 0;  // of the MLP; 0: four times the width
  double dropout = 0.2;     // of attention probabilities and of what each part adds
  // Standard deviation of the initial embeddings. P1 uses PyTorch's 1. Mirror descent with p near 1 changes
  // weights in proportion to their size, and learns short texts faster if the embeddings are small compared
  // with what attention adds to them: 0.1.
  double embedding_deviation = 1;
  AttentionKind attention = AttentionKind::automatic;
  LastBlock last_block = LastBlock::first_token;

  double parameters() const;  // the number of trained numbers

  // Throws Error (bad input): "heads is 5: expected a divisor of width, 384".
  void validate() const;
};

// P1's network for texts: an encoder that classifies by its first token.
class EncoderClassifier : public Transformer {
 public:
  // Initial weights are a function of `seed` alone; without a seed they are 0, for code that loads weights.
  // Parameters are float32 on the CPU; to() moves them. Arithmetic is in `compute`: on a GPU kBFloat16 takes
  // half the time, with sums, norms, losses and the parameters themselves in float32.
  EncoderClassifier(const EncoderOptions& options, std::optional<std::uint64_t> seed,
                    at::ScalarType compute = at::kFloat);

  std::int64_t classes() const override { return 2; }
  std::string kind() const override { return "encoder"; }
  double training_flops(std::span<const std::int64_t> lengths) const override;

  const EncoderOptions& options() const { return options_; }

 private:
  static AttentionShape shape_of(const EncoderOptions& options);
  at::Tensor embedded(const Batch& batch) const override;
  at::Tensor first_rows(const at::Tensor& rows, const Batch& batch) const override;
  at::Tensor answer(const at::Tensor& first, const Batch& batch) const override;
  Rows entered(const Block&, const at::Tensor& x) const override { return {x, x}; }
  AttentionDropout attention_dropout(std::int64_t block, const at::Tensor& keys,
                                     const Batch& batch) const override;
  Rows after_attention(const Block& block, std::int64_t index, const at::Tensor& x, const at::Tensor& mixed,
                       const at::Tensor& keys, const Block* next) const override;

  EncoderOptions options_;
  at::Tensor token_embedding_, position_embedding_;
  Affine head_;
};

}  // namespace attmirror::deep
