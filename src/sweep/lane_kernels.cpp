// Value and gradient of softmax attention, one run per lane. Compiled once per instruction set; a template over the
// vector V of runs, whose instance for plain doubles is the scalar program.
//
// The order of all sums is that of attention/block_kernels.cpp on a single block.
#include "sweep/lane_kernels.hpp"

#include "sweep/lane_heads.hpp"
#include "sweep/lane_powers.hpp"
#include "sweep/lane_products.hpp"
#include "sweep/lane_softmax.hpp"

namespace attmirror::ATTMIRROR_ISA {

using namespace kernels;

namespace {

template <class V>
void scale_entries(double factor, double* values, std::ptrdiff_t size) {
  if (factor == 1) return;
  for (std::ptrdiff_t j = 0; j < size; ++j) put(values, j, at<V>(values, j) * broadcast<V>(factor));
}

// u = scale A^T p, as the engine of a single run forms it: products and sums rounded one by one.
template <class V>
void form_prompt_direction(const LaneProblem& problem, const double* p, double* u) {
  const std::ptrdiff_t d = problem.dim;
  for (std::ptrdiff_t c = 0; c < d; ++c) {
    V value = problem.key_weights == nullptr ? at<V>(p, c) : V{};
    if (problem.key_weights != nullptr)
      for (std::ptrdiff_t r = 0; r < d; ++r)
        value = value + at<V>(p, r) * at<V>(problem.key_weights, r * d + c);
    put(u, c, value * broadcast<V>(problem.logit_scale));
  }
}

// grad_p = scale A (sum_j r_j)
template <class V>
void finish_prompt(const LaneProblem& problem, const double* sum, double* gradient) {
  const std::ptrdiff_t d = problem.dim;
  for (std::ptrdiff_t r = 0; r < d; ++r) {
    V value = problem.key_weights == nullptr ? at<V>(sum, r) : V{};
    if (problem.key_weights != nullptr)
      for (std::ptrdiff_t c = 0; c < d; ++c)
        value = value + at<V>(problem.key_weights, r * d + c) * at<V>(sum, c);
    put(gradient, r, broadcast<V>(problem.logit_scale) * value);
  }
}

// u_j of the queries, `step` apart: 0 for a prompt, whose queries share one.
struct LaneDirections {
  const double* u;
  std::ptrdiff_t step;
};

template <class V>
LaneDirections form_directions(const LaneProblem& problem, const LanePoint& point,
                               const LaneScratch& scratch) {
  const std::ptrdiff_t n = problem.samples, d = problem.dim, m = problem.rank;
  switch (problem.form) {
    case LogitForm::W:
      product<V>({problem.queries, d, 1}, point.W, problem.stride, scratch.u, d, n, d, d);
      break;
    case LogitForm::KQ:
      product<V>({problem.queries, d, 1}, point.Q, problem.rank_stride, scratch.low, m, n, m, d);
      product<V>({scratch.low, m, 1}, point.K, problem.stride, scratch.u, d, n, d, m);
      break;
    case LogitForm::prompt:
      form_prompt_direction<V>(problem, point.p, scratch.direction);
      return {scratch.direction, 0};
  }
  scale_entries<V>(problem.logit_scale, scratch.u, n * d);
  return {scratch.u, d * lanes<V>};
}

// Logits, scores and softmax of all queries, each as soon as its tokens are there. Returns the scores.
template <class V>
const double* attend(const LaneProblem& problem, const LanePoint& point, const LaneScratch& scratch) {
  const std::ptrdiff_t n = problem.samples, T = problem.length, d = problem.dim;
  const LaneDirections directions = form_directions<V>(problem, point, scratch);
  const double* scores = problem.scores != nullptr ? problem.scores : scratch.scores;
  for (std::ptrdiff_t i = 0; i < n; ++i) {
    const std::ptrdiff_t first = i * T * lanes<V>;
    double *logits = scratch.logits + first, *exps = scratch.exps + first;
    row_kernels<V>(d).row_dots(problem.tokens + first * d, directions.u + i * directions.step, logits, d, T);
    if (problem.head != HeadForm::linear)
      apply_head<V>(problem, point, scratch, i);
    else if (problem.scores == nullptr)
      form_scores<V>(problem, point.v, i, scratch.scores + first);
    const ReadAhead<V> ahead{problem.tokens + (i + 1 < n ? first + T * lanes<V> : first) * d, d};
    if (problem.jacobian == JacobianForm::safe)
      safe_attend<V>(scratch, i, logits, exps, scores + first, T, ahead);
    else
      textbook_attend<V>(scratch, i, logits, exps, scores + first, T, ahead);
  }
  return scores;
}

// g_j = dL/da_j of query i
template <class V>
void form_coefficients(const LaneProblem& problem, const LaneScratch& scratch, const double* scores,
                       std::ptrdiff_t i) {
  const std::ptrdiff_t T = problem.length, first = i * T * lanes<V>;
  if (problem.jacobian == JacobianForm::safe)
    safe_coefficients<V>(scratch, i, scratch.logits + first, scratch.exps + first, scores + first,
                         scratch.coefficients + first, T);
  else
    textbook_coefficients<V>(scratch, i, scratch.exps + first, scores + first, scratch.coefficients + first,
                             T);
}

// From the coefficients to the gradients of the attention's parameters, by way of r_j = X^T g_j.
template <class V>
void form_attention_gradient(const LaneProblem& problem, const LanePoint& point, const LaneScratch& scratch,
                             const double* scores, const LaneSums& sums) {
  const std::ptrdiff_t n = problem.samples, T = problem.length, d = problem.dim, m = problem.rank;
  const RowKernels& rows = row_kernels<V>(d);
  if (problem.form == LogitForm::prompt) {
    for (std::ptrdiff_t i = 0; i < n; ++i) form_coefficients<V>(problem, scratch, scores, i);
    rows.combine_rows(problem.tokens, scratch.coefficients, scratch.direction_sum, d, n * T);
    finish_prompt<V>(problem, scratch.direction_sum, sums.p);
    return;
  }
  // From the last query to the first: the tokens that the logits were formed of last are still in the nearest cache.
  for (std::ptrdiff_t i = n - 1; i >= 0; --i) {
    form_coefficients<V>(problem, scratch, scores, i);
    rows.combine_rows(problem.tokens + i * T * d * lanes<V>, scratch.coefficients + i * T * lanes<V>,
                      scratch.r + i * d * lanes<V>, d, T);
  }
  scale_entries<V>(problem.logit_scale, scratch.r, n * d);
  const Left z{problem.queries, 1, d};
  if (sums.W_terms != nullptr) {
    const auto add_term = [&](const double* place, V g) {
      store(sums.W_terms + (place - sums.W), raise<Power::three_halves>(abs(g), Exponent{}));
    };
    product<V>(z, scratch.r, d, sums.W, problem.stride, d, d, n, add_term);
  } else if (sums.W != nullptr) {
    product<V>(z, scratch.r, d, sums.W, problem.stride, d, d, n);
  }
  if (sums.K != nullptr) product<V>({scratch.low, 1, m}, scratch.r, d, sums.K, problem.stride, m, d, n);
  if (sums.Q != nullptr) {
    for (std::ptrdiff_t i = 0; i < n; ++i)
      for (std::ptrdiff_t j = 0; j < m; ++j)
        put(scratch.low_r, i * m + j,
            row_dot<V>(point.K + j * problem.stride * lanes<V>, scratch.r + i * d * lanes<V>, d));
    product<V>({problem.queries, 1, d}, scratch.low_r, m, sums.Q, problem.rank_stride, d, m, n);
  }
}

// grad_v = (1/N) sum_i ell'_i Y_i X_i^T s_i
template <class V>
void form_decoder_gradient(const LaneProblem& problem, const LaneScratch& scratch, double* gradient) {
  const std::ptrdiff_t T = problem.length, d = problem.dim;
  for (std::ptrdiff_t i = 0; i < problem.samples; ++i) {
    const V weight = at<V>(scratch.weight, i) * at<V>(problem.labels, i);
    for (std::ptrdiff_t t = i * T; t < (i + 1) * T; ++t)
      put(scratch.coefficients, t, weight * at<V>(scratch.exps, t));
  }
  row_kernels<V>(d).combine_rows(problem.tokens, scratch.coefficients, gradient, d, problem.samples * T);
}

template <class V>
void evaluate(const LaneProblem& problem, const LanePoint& point, const LaneScratch& scratch,
              const LaneSums& sums) {
  const bool wants_attention =
      sums.W != nullptr || sums.K != nullptr || sums.Q != nullptr || sums.p != nullptr;
  const bool safe = problem.jacobian == JacobianForm::safe;
  const double* scores = attend<V>(problem, point, scratch);
  form_margins<V>(problem, scratch);
  form_losses<V>(problem, scratch, sums);

  V log_scale{}, log_scale_v{};
  if (!safe) textbook_weights<V>(problem, scratch);
  if (wants_attention) {
    if (safe) log_scale = form_weights<Weights::attention, V>(problem, scratch);
    form_attention_gradient<V>(problem, point, scratch, scores, sums);
  }
  if (sums.v != nullptr) {
    if (safe) log_scale_v = form_weights<Weights::decoder, V>(problem, scratch);
    form_decoder_gradient<V>(problem, scratch, sums.v);
  }
  put(sums.log_scale, 0, log_scale);
  put(sums.log_scale_v, 0, log_scale_v);
}

template <class V>
constexpr LaneKernels lane_kernels{lanes<V>,  evaluate<V>,     max_abs<V>,    roots<V>,
                                   add_up<V>, add_multiple<V>, lane_powers<V>};

}  // namespace

#if defined(ATTMIRROR_ISA_avx512)
const LaneTable lane_table{
    {lane_kernels<double>, lane_kernels<F64x2>, lane_kernels<F64x4>, lane_kernels<F64x8>}};
#elif defined(ATTMIRROR_ISA_avx2)
const LaneTable lane_table{{lane_kernels<double>, lane_kernels<F64x2>, lane_kernels<F64x4>, {}}};
#else
const LaneTable lane_table{{lane_kernels<double>, lane_kernels<F64x2>, {}, {}}};
#endif

}  // namespace attmirror::ATTMIRROR_ISA
