// Value and gradient of softmax attention over a block of queries. Compiled once per instruction set.
//
// A chunk keeps its sums relative to the largest log|ell'| + E seen so far (attention_steps.hpp), as an online
// softmax does.
#include "attention/block_kernels.hpp"

#include "attention/attention_steps.hpp"
#include "attention/head_kernels.hpp"
#include "attention/parameter_gradients.hpp"

namespace attmirror::ATTMIRROR_ISA {

using namespace kernels;

namespace {

template <class Token>
void add_attention_gradient(const Problem& problem, const Point& at, const Scratch& scratch, Sums& sums,
                            std::ptrdiff_t first, std::ptrdiff_t count) {
  const std::ptrdiff_t stride = problem.stride;
  for (std::ptrdiff_t i = 0; i < count; ++i) {
    const auto seq = attended<Token>(problem, first, i);
    const double* coefficients = scratch.coefficients + seq.place;
    if (problem.form == LogitForm::prompt)
      combine_rows<Into::add>(seq.tokens, coefficients, sums.direction, stride, seq.length);
    else
      combine_rows<Into::overwrite>(seq.tokens, coefficients, scratch.r + i * stride, stride, seq.length);
  }
  if (problem.form == LogitForm::prompt) return;
  scale_rows(problem.logit_scale, scratch.r, count * stride);
  NoReadAhead none;
  add_parameter_gradients(problem, at, scratch, sums, first, count, none);
}

// grad_v = (1/N) sum_i ell'_i Y_i X_i^T s_i, with weight_v_i s_t = weight_i exps_t in either form.
template <class Token>
void add_decoder_gradient(const Problem& problem, const Scratch& scratch, const PerQuery& per, Sums& sums,
                          std::ptrdiff_t first, std::ptrdiff_t count) {
  for (std::ptrdiff_t i = 0; i < count; ++i) {
    const auto seq = attended<Token>(problem, first, i);
    const Wide weight = broadcast<Wide>(per.weight_v[i] * problem.labels[first + i]);
    double* coefficients = scratch.coefficients + seq.place;
    for (std::ptrdiff_t t = 0; t < seq.padded_length; t += lanes<Wide>)
      store(coefficients + t, weight * load<Wide>(scratch.exps + seq.place + t));
    combine_rows<Into::add>(seq.tokens, coefficients, sums.v, problem.stride, seq.length);
  }
}

// Logits and scores of all queries of the block. Returns the scores, in the layout of the block.
template <class Token>
const double* form_logits_and_scores(const Problem& problem, const Point& at, const Scratch& scratch,
                                     const PerQuery& per, std::ptrdiff_t first, std::ptrdiff_t count) {
  NoReadAhead none;
  const Directions directions = form_directions(problem, at, scratch, first, count, none);
  for (std::ptrdiff_t i = 0; i < count; ++i) {
    const auto seq = attended<Token>(problem, first, i);
    form_logits(problem, scratch, seq, directions.u + i * directions.step, first + i);
    if (problem.scores == nullptr && problem.head == HeadForm::linear)
      form_scores(problem, scratch, seq, at.v, first + i);
  }
  if (problem.head != HeadForm::linear) apply_head<Token>(problem, at, scratch, per, first, count);
  return problem.scores != nullptr ? problem.scores + problem.score_places[first] : scratch.scores;
}

template <class Token>
void evaluate_block(const Problem& problem, const Point& at, const Scratch& scratch, Sums& sums,
                    std::ptrdiff_t first, std::ptrdiff_t last) {
  const std::ptrdiff_t count = last - first, padded_count = padded_tokens(count);
  const PerQuery per(scratch);
  const double inverse_count = 1.0 / static_cast<double>(problem.outputs);
  const double* scores = form_logits_and_scores<Token>(problem, at, scratch, per, first, count);

  if (problem.jacobian == JacobianForm::textbook) {
    for (std::ptrdiff_t i = 0; i < count; ++i) {
      const auto seq = attended<Token>(problem, first, i);
      textbook_attend(per, i, scratch.logits + seq.place, scratch.exps + seq.place, scores + seq.place,
                      seq.padded_length);
    }
    textbook_margins(problem, per, count, padded_count);
    form_losses(problem, per, count, padded_count);
    textbook_weights(problem.loss, per, inverse_count, padded_count);
    add_losses(per, count, sums);
    if (wants_attention(sums)) {
      for (std::ptrdiff_t i = 0; i < count; ++i) {
        const auto seq = attended<Token>(problem, first, i);
        textbook_coefficients(per.weight[i], scratch.exps + seq.place, scores + seq.place,
                              scratch.coefficients + seq.place, seq.padded_length);
      }
      add_attention_gradient<Token>(problem, at, scratch, sums, first, count);
    }
    if (sums.v != nullptr) {
      for (std::ptrdiff_t i = 0; i < count; ++i) per.weight_v[i] = per.weight[i];
      add_decoder_gradient<Token>(problem, scratch, per, sums, first, count);
    }
    return;
  }

  for (std::ptrdiff_t i = 0; i < count; ++i) {
    const auto seq = attended<Token>(problem, first, i);
    safe_attend(per, i, scratch.logits + seq.place, scratch.exps + seq.place, scores + seq.place,
                seq.padded_length);
  }
  safe_margins(problem, per, count, padded_count);
  form_losses(problem, per, count, padded_count);
  add_losses(per, count, sums);
  pad_queries(per, count, padded_count);
  if (form_attention_weights(problem, per, sums, inverse_count, count, padded_count)) {
    for (std::ptrdiff_t i = 0; i < count; ++i) {
      const auto seq = attended<Token>(problem, first, i);
      safe_coefficients(per, i, per.weight[i], scratch.logits + seq.place, scratch.exps + seq.place,
                        scores + seq.place, scratch.coefficients + seq.place, seq.padded_length);
    }
    add_attention_gradient<Token>(problem, at, scratch, sums, first, count);
  }
  if (sums.v != nullptr) {
    form_decoder_weights(problem, per, sums, inverse_count, count, padded_count);
    add_decoder_gradient<Token>(problem, scratch, per, sums, first, count);
  }
}

}  // namespace

const AttentionKernels block_kernels{&evaluate_block<double>, &evaluate_block<float>};

}  // namespace attmirror::ATTMIRROR_ISA
