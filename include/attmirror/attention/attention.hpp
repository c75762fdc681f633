// One softmax-attention layer with a linear head, on a dataset:
//
//   f_i = v^T X_i^T softmax(a_i),   L = (1/n) sum_i ell(Y_i f_i)
//
// with logits a_i by the chosen parameterization. The model views the data, it does not copy them: keep the
// Dataset alive as long as the model.
#pragma once

#include <attmirror/attention/loss.hpp>
#include <attmirror/attention/parameters.hpp>
#include <attmirror/data/dataset.hpp>

#include <vector>

namespace attmirror {

struct AttentionOptions {
  // The blocks that training moves, in any combination of those the model has, e.g. {Block::W, Block::v}.
  // Empty means the attention's own: W, or K and Q, or p, with v fixed to the dataset's decoder.
  std::vector<Block> train{};
};

class Attention {
 public:
  // Throws Error (bad input) when a block to train does not belong to the parameterization, the rank or the
  // key weights do not fit the data, v is neither given by the data nor trained, or the data are so large or small (beyond
  // 1e-70 to 1e70) that gradients would over- or underflow.
  explicit Attention(const Dataset& data, Parameterization parameterization = W{}, Loss loss = Logistic{},
                     AttentionOptions options = {});
  explicit Attention(Dataset&&, Parameterization = W{}, Loss = Logistic{}, AttentionOptions = {}) = delete;

  const Dataset& data() const { return *data_; }
  const Parameterization& parameterization() const { return parameterization_; }
  const Loss& loss() const { return loss_; }
  std::ptrdiff_t rank() const;  // m for (K,Q), else d

  // All blocks of the model (those of the attention, then v), and whether one is trained.
  const std::vector<BlockShape>& blocks() const { return blocks_; }
  bool has_block(Block block) const;
  bool is_trained(Block block) const;
  const std::vector<Block>& trained() const { return trained_; }
  std::vector<BlockShape> trained_blocks() const;

  // All blocks zero, except v, which is the dataset's decoder where there is one.
  Parameters zero_parameters() const;

 private:
  const Dataset* data_;
  Parameterization parameterization_;
  Loss loss_;
  std::vector<BlockShape> blocks_;
  std::vector<Block> trained_;
};

}  // namespace attmirror
