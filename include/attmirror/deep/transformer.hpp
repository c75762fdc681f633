// What P1's two networks have in common: a transformer that answers from its first token.
//
//   x = embedding;  per block: attention, then an MLP, both added to x;  answer = head of x_0
//
// The walk through the blocks, attention with its maps, and the names of parameters are here. A network
// defines its embedding and its head, where its norms are, and what it drops.
#pragma once

#include <attmirror/deep/network.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace attmirror::deep {

// Three ways to the same attention:
//   plain   tensor operations, sample by sample: the reference for the others
//   packed  our own loops over samples and heads on the CPU
//   fused   LibTorch's flash attention with variable lengths, on GPUs in bfloat16 and float16 (LibTorch 2)
// `automatic`: fused if possible, packed on the CPU, otherwise plain.
enum class AttentionKind { automatic, plain, packed, fused };
std::string_view to_string(AttentionKind kind);
AttentionKind attention_kind(std::string_view text);  // throws Error (bad input)

// A classifier that answers from one token needs only that token from its last block: keys and values of all
// tokens, but queries, and everything after them, only of the first. The answer and every gradient stay the same.
enum class LastBlock { first_token, all_tokens };
std::string_view to_string(LastBlock last_block);
LastBlock last_block(std::string_view text);  // throws Error (bad input)

struct AttentionDropout;  // src/deep/packed_attention.hpp
class InitialWeights;     // src/deep/initial_weights.hpp

class Transformer : public Network {
 public:
  at::Tensor logits(const Batch& batch) final;
  std::vector<at::Tensor> attention_maps(const Batch& one) final;

  // Where the first token of each sample looks in the last block, which its answer is read from, and that answer:
  // what attention_maps() and logits() have of it, for many samples in one pass. No dropout, no gradients, and
  // several threads may call it at once.
  struct AnsweringAttention {
    std::vector<at::Tensor> probabilities;  // of each sample: float [heads, rows]
    at::Tensor logits;                      // [samples, classes], or [samples, 1]
  };
  AnsweringAttention answering_attention(const Batch& batch) const;

  std::vector<Projection> projections() const final;

 protected:
  struct AttentionShape {
    std::int64_t heads = 1, head_width = 1;
    AttentionKind kind = AttentionKind::automatic;
    LastBlock last_block = LastBlock::first_token;
  };
  // A linear map or a norm; one without a bias leaves it undefined.
  struct Affine {
    at::Tensor weight, bias;
  };
  struct Block {
    at::Tensor query_key_value;  // [3 heads head_width, width]: Q, then K, then V
    Affine output;               // O: [width, heads head_width]
    Affine up, down;             // A: [hidden, width]; B: [width, hidden]
    Affine attention_norm, mlp_norm;
  };

  Transformer(const AttentionShape& shape, at::ScalarType compute) : shape_(shape), compute_(compute) {}

  // Parameters in the order of these calls, which is also that of the optimizers' states: a weight NAME, and
  // next to it NAME_bias.
  at::Tensor add_weight(const std::string& name, InitialWeights& initial, std::int64_t outputs,
                        std::int64_t inputs);
  Affine add_affine(const std::string& name, InitialWeights& initial, std::int64_t outputs,
                    std::int64_t inputs);
  static std::string block_name(std::int64_t block, std::string_view part);  // "block0_output"
  void add_block(Block block) { blocks_.push_back(std::move(block)); }

  // What a network defines. Dropout keys are those of the rows of x; undefined if nothing is dropped.
  virtual void check(const Batch&) const {}  // throws Error (bad input) for a batch of another kind
  virtual std::int64_t longest(const Batch& batch) const { return batch.longest; }
  virtual at::Tensor embedded(const Batch& batch) const = 0;                            // [rows, width]
  virtual at::Tensor first_rows(const at::Tensor& rows, const Batch& batch) const = 0;  // of each sample
  virtual at::Tensor answer(const at::Tensor& first, const Batch& batch) const = 0;     // by the head
  // x, and what the next block's attention reads of it: x itself, or its norm.
  struct Rows {
    at::Tensor x, input;
  };
  virtual Rows entered(const Block& first, const at::Tensor& x) const = 0;
  virtual AttentionDropout attention_dropout(std::int64_t block, const at::Tensor& keys,
                                             const Batch& batch) const = 0;
  // `next` is the block that comes after this one, null after the last: nobody needs its input then.
  virtual Rows after_attention(const Block& block, std::int64_t index, const at::Tensor& x,
                               const at::Tensor& mixed, const at::Tensor& keys, const Block* next) const = 0;

  at::Tensor linear(const at::Tensor& x, const Affine& map) const;
  at::ScalarType compute() const { return compute_; }

 private:
  std::vector<at::Tensor> projected(const at::Tensor& x, const at::Tensor& weight) const;
  Rows block_output(std::int64_t index, const Rows& rows, const Batch& batch) const;
  at::Tensor first_token_output(std::int64_t index, const Rows& rows, const Batch& batch) const;
  const Block* after(std::int64_t index) const {
    return index + 1 < block_count() ? &block(index + 1) : nullptr;
  }
  std::int64_t block_count() const { return static_cast<std::int64_t>(blocks_.size()); }
  const Block& block(std::int64_t index) const { return blocks_[static_cast<std::size_t>(index)]; }

  // The weights of blocks in brief arithmetic, while logits() runs on a GPU: all are rounded at once.
  void round_weights();
  const at::Tensor& rounded(const at::Tensor& weight) const;

  AttentionShape shape_;
  at::ScalarType compute_;
  std::vector<Block> blocks_;
  std::unordered_map<const at::TensorImpl*, at::Tensor> rounded_;
};

}  // namespace attmirror::deep
