// One softmax-attention layer with a scalar head, on a dataset:
//
//   f_j = h(X_i^T softmax(a_j)),   L = (1/N) sum_j ell(Y_j f_j) + lambda |weights|^2
//
// over all N queries j, each with logits a_j over the tokens of its sequence i that the mask allows, computed
// by the chosen parameterization. With one query per sequence, N = n. The model is a view of the data and
// does not copy them: keep the Dataset alive as long as the model.
#pragma once

#include <attmirror/attention/head.hpp>
#include <attmirror/attention/loss.hpp>
#include <attmirror/attention/parameters.hpp>
#include <attmirror/data/dataset.hpp>

#include <vector>

namespace attmirror {

// Which blocks an attention layer trains, and what is added to its logits and its loss.
struct AttentionOptions {
  // The blocks that training moves, in any combination that the model has, e.g. {Block::W, Block::v}. Empty
  // means the attention's own blocks: W, or K and Q, or p, with v fixed to the dataset's decoder.
  std::vector<Block> train{};
  Head head = LinearHead{};  // the papers' linear head, unless you study another one
  // Divide logits by sqrt(d), or by sqrt(m) for (K,Q), as transformers do; the papers do not.
  bool scaled = false;
  // lambda of lambda (|K|^2 + |Q|^2), or of |W|^2, |p|^2; P3's code uses 2.2e-16. v is not penalized.
  double penalty = 0;
};

// One layer of softmax attention on a dataset. It views the data, which must outlive it.
class Attention {
 public:
  // Throws Error (bad input) when a block to train does not belong to the model, when the rank, the key
  // weights or the head do not fit the data, when v is needed but neither given by the data nor trained, or
  // when the data are so large or so small (outside 1e-70 to 1e70) that gradients would overflow or underflow.
  explicit Attention(const Dataset& data, Parameterization parameterization = W{}, Loss loss = Logistic{},
                     AttentionOptions options = {});
  explicit Attention(Dataset&&, Parameterization = W{}, Loss = Logistic{}, AttentionOptions = {}) = delete;

  const Dataset& data() const { return *data_; }
  const Parameterization& parameterization() const { return parameterization_; }
  const Loss& loss() const { return loss_; }
  const Head& head() const { return head_; }  // a ReLU head includes its V
  double logit_scale() const { return logit_scale_; }
  double penalty() const { return penalty_; }
  std::ptrdiff_t rank() const;  // m for (K,Q), else d

  // All blocks of the model (those of the attention, then v if the head has one), and whether a block is trained.
  const std::vector<BlockShape>& blocks() const { return blocks_; }
  bool has_block(const Block& block) const;
  bool is_trained(const Block& block) const;
  const std::vector<Block>& trained() const { return trained_; }
  std::vector<BlockShape> trained_blocks() const;

  // All blocks are zero, except v, which is the dataset's decoder if there is one.
  Parameters zero_parameters() const;

 private:
  const Dataset* data_;
  Parameterization parameterization_;
  Loss loss_;
  Head head_;
  double logit_scale_ = 1, penalty_ = 0;
  std::vector<BlockShape> blocks_;
  std::vector<Block> trained_;
};

}  // namespace attmirror
