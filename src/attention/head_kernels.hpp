// Heads that are not linear (head_formulas.hpp) at the attended token u = X^T softmax(a), for the kernels that are
// compiled once per instruction set. The logits of the block are there; the exponentials that are formed here are
// formed again with the scores, which is a small price for keeping the linear head's path short.
#pragma once

#include "attention/attention_steps.hpp"
#include "attention/head_formulas.hpp"

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

// The padded rows of a single run.
struct PaddedRows {
  std::ptrdiff_t stride;
  double dot(const double* a, const double* b) const { return reduce_pairs(partial_dot(a, b, stride)); }
  const double* row(const double* matrix, std::ptrdiff_t r) const { return matrix + r * stride; }
  template <class Body>
  [[gnu::always_inline]] void for_each(Body body) const {
    for (std::ptrdiff_t c = 0; c < stride; c += lanes<Narrow>) body(c);
  }
  static Narrow at(const double* row, std::ptrdiff_t c) { return load<Narrow>(row + c); }
  static void put(double* row, std::ptrdiff_t c, Narrow entries) { store(row + c, entries); }
};

// Margins Y h(u) and scores Y x_t^T grad h(u) of the queries of a block.
template <class Token>
void apply_head(const Problem& problem, const Point& at, const Scratch& scratch, const PerQuery& per,
                std::ptrdiff_t first, std::ptrdiff_t count) {
  const std::ptrdiff_t stride = problem.stride;
  for (std::ptrdiff_t i = 0; i < count; ++i)
    form_attended_token(problem, scratch, attended<Token>(problem, first, i), scratch.attended + i * stride);
  const auto built_in = [&](auto formulas) {
    for (std::ptrdiff_t i = 0; i < count; ++i)
      per.head[i] = formulas.evaluate(problem, PaddedRows{stride}, at.v, scratch.attended + i * stride,
                                      scratch.head_gradient + i * stride);
  };
  const auto custom = [&] {
    problem.custom_head.evaluate(problem.custom_head.object, scratch.attended, stride, count, per.head,
                                 scratch.head_gradient);
  };
  with_nonlinear_head(problem.head, built_in, custom);
  for (std::ptrdiff_t i = 0; i < count; ++i) {
    per.head[i] *= problem.labels[first + i];
    form_scores(problem, scratch, attended<Token>(problem, first, i), scratch.head_gradient + i * stride,
                first + i);
  }
}

}  // namespace
}  // namespace attmirror::ATTMIRROR_ISA
