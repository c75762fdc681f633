// Heads that are not linear (attention/head_formulas.hpp), one run per lane: attention/head_kernels.hpp, operation
// by operation.
#pragma once

#include "attention/head_formulas.hpp"
#include "sweep/lane_softmax.hpp"

namespace attmirror::ATTMIRROR_ISA {
namespace {

// gamma_t = Y x_t^T direction of query i
template <class V>
void form_scores(const LaneProblem& problem, const double* direction, std::ptrdiff_t i, double* scores) {
  const std::ptrdiff_t T = problem.length, d = problem.dim;
  row_kernels<V>(d).row_dots(problem.tokens + i * T * d * lanes<V>, direction, scores, d, T);
  const V label = at<V>(problem.labels, i);
  for (std::ptrdiff_t t = 0; t < T; ++t) put(scores, t, label * at<V>(scores, t));
}

// u = X^T s
template <class V>
void form_attended_token(const double* tokens, const double* logits, double* exps, double* u,
                         const LaneProblem& problem) {
  const V max_logit = max_of<V>(logits, problem.length);
  for (std::ptrdiff_t t = 0; t < problem.length; ++t) put(exps, t, exp(at<V>(logits, t) - max_logit));
  const V total = sum_of<V>(exps, problem.length);
  row_kernels<V>(problem.dim).combine_rows(tokens, exps, u, problem.dim, problem.length);
  for (std::ptrdiff_t c = 0; c < problem.dim; ++c) put(u, c, at<V>(u, c) / total);
}

// Rows of vectors, without padding.
template <class V>
struct LaneRows {
  std::ptrdiff_t dim;
  V dot(const double* a, const double* b) const { return row_dot<V>(a, b, dim); }
  const double* row(const double* matrix, std::ptrdiff_t r) const { return matrix + r * dim * lanes<V>; }
  template <class Body>
  [[gnu::always_inline]] void for_each(Body body) const {
    for (std::ptrdiff_t c = 0; c < dim; ++c) body(c);
  }
  static V at(const double* row, std::ptrdiff_t c) { return load<V>(row + c * lanes<V>); }
  static void put(double* row, std::ptrdiff_t c, V entries) { store(row + c * lanes<V>, entries); }
};

// The margin Y h(u) of query i and the scores Y x_t^T grad h(u) of its tokens.
template <class V>
void apply_head(const LaneProblem& problem, const LanePoint& point, const LaneScratch& scratch,
                std::ptrdiff_t i) {
  const std::ptrdiff_t first = i * problem.length * lanes<V>, row = i * problem.dim * lanes<V>;
  const double* tokens = problem.tokens + first * problem.dim;
  double *u = scratch.attended + row, *gradient = scratch.head_gradient + row;
  form_attended_token<V>(tokens, scratch.logits + first, scratch.exps + first, u, problem);
  const auto built_in = [&](auto formulas) {
    const V value = formulas.evaluate(problem, LaneRows<V>{problem.dim}, point.v, u, gradient);
    put(scratch.head, i, value * at<V>(problem.labels, i));
  };
  with_nonlinear_head(problem.head, built_in, NotInLanes{});
  form_scores<V>(problem, gradient, i, scratch.scores + first);
}

}  // namespace
}  // namespace attmirror::ATTMIRROR_ISA
