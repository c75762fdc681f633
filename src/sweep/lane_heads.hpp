// Heads that are not linear, one run per lane: attention/head_kernels.hpp, operation by operation.
#pragma once

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

// sum_r max(V_r^T u, 0) and the sum of the V_r that are active.
template <class V>
V relu_head(const LaneProblem& problem, const double* u, double* gradient) {
  for (std::ptrdiff_t c = 0; c < problem.dim; ++c) put(gradient, c, V{});
  V value{};
  for (std::ptrdiff_t r = 0; r < problem.head_rows; ++r) {
    const double* row = problem.head_weights + r * problem.dim * lanes<V>;
    const V activation = row_dot<V>(row, u, problem.dim);
    const auto off = activation <= 0.0;  // NaN is not, so that the loss shows it
    value = off ? value : value + activation;
    for (std::ptrdiff_t c = 0; c < problem.dim; ++c) {
      const V before = at<V>(gradient, c);
      put(gradient, c, off ? before : before + at<V>(row, c));
    }
  }
  return value;
}

// v^T u - lambda |u|^2 and v - 2 lambda u.
template <class V>
V quadratic_head(const LaneProblem& problem, const double* v, const double* u, double* gradient) {
  const V twice = broadcast<V>(2 * problem.lambda);
  for (std::ptrdiff_t c = 0; c < problem.dim; ++c) put(gradient, c, at<V>(v, c) - twice * at<V>(u, c));
  return row_dot<V>(v, u, problem.dim) - broadcast<V>(problem.lambda) * row_dot<V>(u, u, problem.dim);
}

// The margin Y h(u) of query i and the scores Y x_t^T grad h(u) of its tokens.
template <class V>
void apply_head(const LaneProblem& problem, const LanePoint& point, const LaneScratch& scratch,
                std::ptrdiff_t i) {
  const std::ptrdiff_t first = i * problem.length * lanes<V>, row = i * problem.dim * lanes<V>;
  const double* tokens = problem.tokens + first * problem.dim;
  double *u = scratch.attended + row, *gradient = scratch.head_gradient + row;
  form_attended_token<V>(tokens, scratch.logits + first, scratch.exps + first, u, problem);
  const V value = problem.head == HeadForm::relu ? relu_head<V>(problem, u, gradient)
                                                 : quadratic_head<V>(problem, point.v, u, gradient);
  put(scratch.head, i, value * at<V>(problem.labels, i));
  form_scores<V>(problem, gradient, i, scratch.scores + first);
}

}  // namespace
}  // namespace attmirror::ATTMIRROR_ISA
