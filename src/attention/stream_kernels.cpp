// Value and gradient of softmax attention for data that come from memory. Compiled once per instruction set.
//
// block_kernels.cpp goes over a block of queries step by step; that suits short sequences, whose steps are best done on
// many at a time. Here the tokens of one sequence are large. So a query goes through all of its steps while its tokens
// are in the second-level cache, and the tokens of the next ones are on their way (read_ahead.hpp):
//
//   1. directions u_j of a batch of queries, as a matrix product;
//   2. query after query: logits (and scores), softmax, coefficients c_jt and r_j = X^T c_j (and x_j = X^T e_j, for the
//      gradient of v). The safe form leaves the weight of the query out of c_j: it has e^{log|ell'| + E} / S as a
//      factor of the whole row, so the loss need not be known yet. (The textbook form rounds with it inside.)
//   3. losses and weights of the batch on whole vectors, rows r_j times weights, and the sum of outer products as a
//      matrix product.
//
// The tokens are used twice (four times with a head that is not linear), but read from memory once.
#include "attention/attention_steps.hpp"
#include "attention/block_kernels.hpp"
#include "attention/head_kernels.hpp"
#include "attention/parameter_gradients.hpp"
#include "attention/read_ahead.hpp"
#include "attention/stream_passes.hpp"

namespace attmirror::ATTMIRROR_ISA {

using namespace kernels;

namespace {

// All that a batch needs; query i of it is problem's query first + i.
struct Batch {
  const Problem& problem;
  const Point& at;
  const Scratch& scratch;
  const PerQuery per;
  Sums& sums;
  double inverse_count;
  std::ptrdiff_t first, count;
};

// Logits and scores of query i; returns the scores.
template <class Token>
const double* form_logits_and_scores(const Batch& batch, const Attended<Token>& seq, const double* u,
                                     std::ptrdiff_t i) {
  const Problem& problem = batch.problem;
  const std::ptrdiff_t query = batch.first + i;
  double *logits = batch.scratch.logits, *scores = batch.scratch.scores;
  const bool given = problem.scores != nullptr || problem.token_scores != nullptr;
  if (given || problem.head != HeadForm::linear) {
    const double* const directions[] = {u};
    double* const into[] = {logits};
    first_pass(seq.tokens, directions, into, problem.stride, seq.length);
  } else {
    const double* const directions[] = {u, batch.at.v};
    double* const into[] = {logits, scores};
    first_pass(seq.tokens, directions, into, problem.stride, seq.length);
  }
  mask_logits(problem, seq, logits, query);
  if (problem.head != HeadForm::linear) {
    Scratch own = batch.scratch;
    own.attended += i * problem.stride;
    apply_head<Token>(problem, batch.at, own, batch.per.from(i), query, 1);
  } else if (problem.scores != nullptr) {
    return problem.scores + problem.score_places[query];
  } else {
    const double* unsigned_scores = given ? problem.token_scores + problem.token_score_places[query] : scores;
    sign_scores(problem, seq, unsigned_scores, scores, query);
  }
  return scores;
}

// Softmax and coefficients of query i. The textbook form needs its loss for that.
template <class Token>
void form_coefficients(const Batch& batch, const Attended<Token>& seq, const double* scores,
                       std::ptrdiff_t i) {
  const Scratch& scratch = batch.scratch;
  if (batch.problem.jacobian == JacobianForm::safe) {
    safe_attend(batch.per, i, scratch.logits, scratch.exps, scores, seq.padded_length);
    safe_coefficients(batch.per, i, 1.0, scratch.logits, scratch.exps, scores, scratch.coefficients,
                      seq.padded_length);
    return;
  }
  const PerQuery own = batch.per.from(i);
  textbook_attend(own, 0, scratch.logits, scratch.exps, scores, seq.padded_length);
  textbook_margins(batch.problem, own, 1, padded_tokens(1));
  form_losses(batch.problem, own, 1, padded_tokens(1));
  textbook_weights(batch.problem.loss, own, batch.inverse_count, padded_tokens(1));
  textbook_coefficients(own.weight[0], scratch.exps, scores, scratch.coefficients, seq.padded_length);
}

template <class Token>
void contract(const Batch& batch, const Attended<Token>& seq, std::ptrdiff_t i) {
  const Scratch& scratch = batch.scratch;
  const std::ptrdiff_t stride = batch.problem.stride;
  double *r = scratch.r + i * stride, *attended = scratch.attended + i * stride;
  const bool attention = wants_attention(batch.sums), decoder = batch.sums.v != nullptr;
  if (attention && decoder) {
    const double* const weights[] = {scratch.coefficients, scratch.exps};
    double* const into[] = {r, attended};
    second_pass(seq.tokens, weights, into, stride, seq.length);
  } else if (attention || decoder) {
    const double* const weights[] = {attention ? scratch.coefficients : scratch.exps};
    double* const into[] = {attention ? r : attended};
    second_pass(seq.tokens, weights, into, stride, seq.length);
  }
}

// Rows r_i times their factor, and what becomes of them.
void add_attention_gradient(const Batch& batch, ReadAhead& ahead) {
  const Problem& problem = batch.problem;
  const Scratch& scratch = batch.scratch;
  const double scale = problem.form == LogitForm::prompt ? 1.0 : problem.logit_scale;
  for (std::ptrdiff_t i = 0; i < batch.count; ++i) {
    const double weight = problem.jacobian == JacobianForm::safe ? batch.per.weight[i] * scale : scale;
    scale_rows(weight, scratch.r + i * problem.stride, problem.stride);
    if (problem.form == LogitForm::prompt) {
      const double* r = scratch.r + i * problem.stride;
      for (std::ptrdiff_t c = 0; c < problem.stride; c += lanes<Narrow>)
        store(batch.sums.direction + c, load<Narrow>(batch.sums.direction + c) + load<Narrow>(r + c));
    }
  }
  if (problem.form != LogitForm::prompt)
    add_parameter_gradients(problem, batch.at, scratch, batch.sums, batch.first, batch.count, ahead);
}

void add_decoder_gradient(const Batch& batch, const double* weight) {
  const Problem& problem = batch.problem;
  for (std::ptrdiff_t i = 0; i < batch.count; ++i)
    batch.per.weight_v[i] = weight[i] * problem.labels[batch.first + i];
  combine_rows<Into::add>(batch.scratch.attended, batch.per.weight_v, batch.sums.v, problem.stride,
                          batch.count);
}

template <class Token>
void evaluate_batch(const Batch& batch, ReadAhead& ahead) {
  const Problem& problem = batch.problem;
  const PerQuery& per = batch.per;
  const std::ptrdiff_t count = batch.count, padded_count = padded_tokens(count);
  const Directions directions = form_directions(problem, batch.at, batch.scratch, batch.first, count, ahead);
  for (std::ptrdiff_t i = 0; i < count; ++i) {
    const auto seq = attended<Token>(problem, batch.first + i, 0);
    ahead.reading_ends_at(seq.tokens + seq.length * problem.stride);
    const double* scores = form_logits_and_scores(batch, seq, directions.u + i * directions.step, i);
    form_coefficients(batch, seq, scores, i);
    contract(batch, seq, i);
  }

  if (problem.jacobian == JacobianForm::textbook) {
    add_losses(per, count, batch.sums);
    if (wants_attention(batch.sums)) add_attention_gradient(batch, ahead);
    if (batch.sums.v != nullptr) add_decoder_gradient(batch, per.weight);
    return;
  }
  safe_margins(problem, per, count, padded_count);
  form_losses(problem, per, count, padded_count);
  add_losses(per, count, batch.sums);
  pad_queries(per, count, padded_count);
  if (form_attention_weights(problem, per, batch.sums, batch.inverse_count, count, padded_count))
    add_attention_gradient(batch, ahead);
  if (batch.sums.v != nullptr) {
    form_decoder_weights(problem, per, batch.sums, batch.inverse_count, count, padded_count);
    add_decoder_gradient(batch, per.weight_v);
  }
}

template <class Token>
void evaluate_stream(const Problem& problem, const Point& at, const Scratch& scratch, Sums& sums,
                     std::ptrdiff_t first, std::ptrdiff_t last) {
  if (first == last) return;
  const auto begin = attended<Token>(problem, first, 0), end = attended<Token>(problem, last - 1, 0);
  ReadAhead ahead(begin.tokens, end.tokens + end.length * problem.stride);
  const double inverse_count = 1.0 / static_cast<double>(problem.outputs);
  for (std::ptrdiff_t from = first; from < last; from += stream_batch) {
    const std::ptrdiff_t count = last - from < stream_batch ? last - from : stream_batch;
    evaluate_batch<Token>({problem, at, scratch, PerQuery(scratch), sums, inverse_count, from, count}, ahead);
  }
}

}  // namespace

const AttentionKernels stream_kernels{&evaluate_stream<double>, &evaluate_stream<float>};

}  // namespace attmirror::ATTMIRROR_ISA
