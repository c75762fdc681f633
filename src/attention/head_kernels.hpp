// Heads that are not linear, for the kernels that are compiled once per instruction set:
//
//   ReLU        h(u) = sum_r max(V_r^T u, 0)       grad h = sum of the V_r with V_r^T u > 0
//   quadratic   h(u) = v^T u - lambda |u|^2        grad h = v - 2 lambda u
//   custom      the user's own
//
// at the attended token u = X^T softmax(a). The logits of the block are there; the exponentials that are formed
// here are formed again with the scores, which is a small price for keeping the linear head's path short.
#pragma once

#include "attention/attention_steps.hpp"

namespace attmirror::ATTMIRROR_ISA {
namespace {

// u = X^T s
template <class Token>
void form_attended_token(const Problem& problem, const Scratch& scratch, const Attended<Token>& seq,
                         double* u) {
  const double* logits = scratch.logits + seq.place;
  double* exps = scratch.exps + seq.place;
  const Wide max_logit = broadcast<Wide>(max_of(logits, seq.padded_length));
  Wide sum{};
  for (std::ptrdiff_t t = 0; t < seq.padded_length; t += lanes<Wide>) {
    const Wide e = exp(load<Wide>(logits + t) - max_logit);
    sum += e;
    store(exps + t, e);
  }
  combine_rows<Into::overwrite>(seq.tokens, exps, u, problem.stride, seq.length);
  const Narrow total = broadcast<Narrow>(reduce_add(sum));
  for (std::ptrdiff_t c = 0; c < problem.stride; c += lanes<Narrow>)
    store(u + c, load<Narrow>(u + c) / total);
}

double dot(const double* a, const double* b, std::ptrdiff_t stride) {
  return reduce_pairs(partial_dot(a, b, stride));
}

double relu_head(const Problem& problem, const double* u, double* gradient) {
  for (std::ptrdiff_t c = 0; c < problem.stride; ++c) gradient[c] = 0;
  double value = 0;
  for (std::ptrdiff_t r = 0; r < problem.head_rows; ++r) {
    const double* row = problem.head_weights + r * problem.stride;
    const double activation = dot(row, u, problem.stride);
    if (activation <= 0) continue;  // NaN goes on, so that the loss shows it
    value += activation;
    for (std::ptrdiff_t c = 0; c < problem.stride; c += lanes<Narrow>)
      store(gradient + c, load<Narrow>(gradient + c) + load<Narrow>(row + c));
  }
  return value;
}

double quadratic_head(const Problem& problem, const double* v, const double* u, double* gradient) {
  const Narrow twice = broadcast<Narrow>(2 * problem.lambda);
  for (std::ptrdiff_t c = 0; c < problem.stride; c += lanes<Narrow>)
    store(gradient + c, load<Narrow>(v + c) - twice * load<Narrow>(u + c));
  return dot(v, u, problem.stride) - problem.lambda * dot(u, u, problem.stride);
}

// Margins Y h(u) and scores Y x_t^T grad h(u) of the queries of a block.
template <class Token>
void apply_head(const Problem& problem, const Point& at, const Scratch& scratch, const PerQuery& per,
                std::ptrdiff_t first, std::ptrdiff_t count) {
  const std::ptrdiff_t stride = problem.stride;
  for (std::ptrdiff_t i = 0; i < count; ++i)
    form_attended_token(problem, scratch, attended<Token>(problem, first, i), scratch.attended + i * stride);
  if (problem.head == HeadForm::custom) {
    problem.custom_head.evaluate(problem.custom_head.object, scratch.attended, stride, count, per.head,
                                 scratch.head_gradient);
  } else {
    for (std::ptrdiff_t i = 0; i < count; ++i) {
      const double* u = scratch.attended + i * stride;
      double* gradient = scratch.head_gradient + i * stride;
      per.head[i] = problem.head == HeadForm::relu ? relu_head(problem, u, gradient)
                                                   : quadratic_head(problem, at.v, u, gradient);
    }
  }
  for (std::ptrdiff_t i = 0; i < count; ++i) {
    per.head[i] *= problem.labels[first + i];
    form_scores(problem, scratch, attended<Token>(problem, first, i), scratch.head_gradient + i * stride,
                first + i);
  }
}

}  // namespace
}  // namespace attmirror::ATTMIRROR_ISA
