// The fast path of a NextTokenEngine. Internal.
#pragma once

#include "base/matrix_product.hpp"
#include "next_token/engine_path.hpp"
#include "next_token/item_layout.hpp"
#include "next_token/prediction_kernels.hpp"

#include <vector>

namespace attmirror {

class FastEngine final : public NextTokenPathEngine {
 public:
  FastEngine(const NextTokenModel& model, ThreadPool& pool);
  NextTokenEvaluation evaluate(const ParameterBlocks& parameters, Gradient* gradient) override;
  void new_frozen_weights() override { knows_logits_ = false; }

 private:
  // What a chunk of items adds to the whole.
  struct Partial {
    double loss = 0, right = 0, max_softmax = 0;
    double counted = 0;  // weight of what may be right; a sum of its own, so that a share of all is exactly 1
    double attention_exponent = 0, output_exponent = 0;  // the largest; -infinity: no gradient
  };

  bool attends() const { return model_.stage() != Stage::collocation; }
  bool trains_output() const { return model_.stage() != Stage::attention; }
  void set_up_items();
  void set_up_attention();
  void form_token_logits(ConstMatrixView W_ov);
  void form_scores(ConstMatrixView W_kq);
  Partial evaluate_chunk(std::ptrdiff_t c);
  void read_attention(std::ptrdiff_t c);
  void form_output_gradient(MatrixView into, double scale);
  void form_attention_gradient(MatrixView into, double scale);
  void sum_pairs(std::ptrdiff_t first_query, std::ptrdiff_t last_query, double scale);
  ConstMatrixView query_vectors() const;

  const NextTokenModel& model_;
  ThreadPool& pool_;
  const kernels::PredictionTable& kernel_;
  ItemLayout layout_;
  MatrixProduct product_;
  Chunking item_chunks_, query_chunks_;

  kernels::PredictionItems items_;
  AlignedVector memory_;  // of all arrays in items_
  std::vector<std::int32_t> references_;
  AlignedVector output_exponents_, factors_;
  std::vector<Partial> partials_;
  std::vector<double> slots_;  // of the readout attention: per chunk, sums of attention by next token
  std::ptrdiff_t max_slots_ = 0;

  bool knows_logits_ = false;  // U_ belongs to the W_ov of last time
  PanelMatrix U_;              // row x: the logits of token x
  PanelMatrix output_sums_;    // row x: sum over its occurrences of s_t r

  AlignedVector scores_, pair_sums_;  // of each pair
  PanelMatrix directions_;            // row q: W_kq x_q of the q-th query
  PaddedMatrix direction_sums_;       // row q: what its gradient is made of
  PaddedMatrix queries_;              // x_q, where not all tokens are queries
  PanelMatrix embedding_;
};

}  // namespace attmirror
