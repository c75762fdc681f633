// What the trainer and the viewers see of a network: a batch goes in, logits come out, and you can look at
// the attention.
//
// Texts have different lengths. A batch of them is packed: the tokens of all texts are stored end to end, without
// padding, and `offsets` says where each text begins. Embeddings, linear maps and norms work on one token at a
// time and see no difference; attention is given the offsets. On IMDb, 46 % of a padded batch would be padding.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <torch/nn/module.h>
#include <torch/types.h>

namespace attmirror::deep {

// The place of a batch within a training, on which its random numbers depend. They depend on nothing else, so a
// training that was stopped continues with the same numbers, and processes that share a batch draw the same ones.
struct DropoutPlace {
  std::uint64_t seed = 0;  // of the run's dropout
  std::int64_t step = 0;   // of the training, from 0
};

// Some samples, their rows packed one after another.
struct Batch {
  at::Tensor tokens;     // texts: int64 [rows] ids; undefined for images
  at::Tensor positions;  // texts: int64 [rows], the position of each token in its text
  at::Tensor images;     // float [samples, channels, height, width], normalized; undefined for texts
  // int32 [sequences + 1]: rows offsets[i] up to offsets[i + 1] are sample i. There may be one sequence more
  // than there are samples: filler, which has no label and no effect on the answer (packed_batch.hpp).
  at::Tensor offsets;
  at::Tensor labels;         // int64 [samples]
  std::int64_t longest = 0;  // rows of the longest sample
  // int64 [rows]: the key of each row's dropout, a function of seed, step, sample and place. Undefined: no dropout.
  at::Tensor dropout_keys;
  // For kernels that draw their own numbers: one seed for the step, the position of the first sample within the
  // batch that all processes share, and the number of samples in that batch (0: those that are here).
  std::uint64_t dropout_seed = 0;
  std::int64_t first_sample = 0;
  std::int64_t all_samples = 0;

  std::int64_t samples() const { return labels.size(0); }
  std::int64_t sequences() const { return offsets.size(0) - 1; }
  std::int64_t rows() const { return row_count; }
  std::int64_t row_count = 0;  // offsets[samples], known without asking a GPU

  Batch to(at::Device device) const;  // from page-locked memory without waiting, where the device is a GPU
};

// Numbers from which every row of a batch has a key of its own. `samples` are indices in the whole data set.
at::Tensor dropout_keys(const DropoutPlace& place, std::span<const std::int64_t> samples,
                        std::span<const std::int64_t> lengths);

// One of the maps K, Q, V of a block, as rows of a weight [heads * head_width, width]: a view, not a copy.
struct Projection {
  std::int64_t block = 0;
  char map = 'Q';  // 'K', 'Q' or 'V'
  at::Tensor weight;
};

// A network that the trainer can train: it classifies batches.
class Network : public torch::nn::Module {
 public:
  // [samples, classes], or [samples, 1] for a yes-or-no question. With batch.dropout_keys there is dropout.
  virtual at::Tensor logits(const Batch& batch) = 0;

  // Softmax probabilities of each block for a batch of one sample: [heads, rows, rows], row = query. No dropout.
  virtual std::vector<at::Tensor> attention_maps(const Batch& one) = 0;

  virtual std::vector<Projection> projections() const = 0;
  virtual std::int64_t classes() const = 0;  // 2 for a yes-or-no question
  virtual std::string kind() const = 0;      // "encoder", "vit"

  // Multiplications and additions of a training step (forward and backward) on samples of these lengths, for the
  // network as published: without padding, and with every row of every block. Used for model FLOP utilization.
  virtual double training_flops(std::span<const std::int64_t> lengths) const = 0;
};

// Sum over samples: binary cross-entropy for logits [samples, 1] (like P1's BCELoss(reduction = sum)), and
// cross-entropy for more classes.
at::Tensor summed_loss(const at::Tensor& logits, const at::Tensor& labels);

// int64 [samples]: 1 where the larger logit (or the sign of the only one) names the label.
at::Tensor correct(const at::Tensor& logits, const at::Tensor& labels);

}  // namespace attmirror::deep
