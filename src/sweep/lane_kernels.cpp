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

template <class V>
void form_logits(const LaneProblem& problem, const LanePoint& point, const LaneScratch& scratch) {
  const std::ptrdiff_t n = problem.samples, T = problem.length, d = problem.dim, m = problem.rank;
  const double* u = scratch.u;
  std::ptrdiff_t step = d;
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
      u = scratch.direction;
      step = 0;
      break;
  }
  if (problem.form != LogitForm::prompt) scale_entries<V>(problem.logit_scale, scratch.u, n * d);
  for_row_length(d, [&](auto length) {
    for (std::ptrdiff_t i = 0; i < n; ++i)
      row_dots<V>(problem.tokens + i * T * d * lanes<V>, u + i * step * lanes<V>,
                  scratch.logits + i * T * lanes<V>, d, T, length);
  });
}

// Scores under a v that is trained.
template <class V>
void form_scores(const LaneProblem& problem, const double* v, double* scores) {
  const std::ptrdiff_t n = problem.samples, T = problem.length;
  for_row_length(problem.dim,
                 [&](auto length) { row_dots<V>(problem.tokens, v, scores, problem.dim, n * T, length); });
  for (std::ptrdiff_t i = 0; i < n; ++i)
    for (std::ptrdiff_t t = i * T; t < (i + 1) * T; ++t)
      put(scores, t, at<V>(problem.labels, i) * at<V>(scores, t));
}

// From the coefficients g_j = dL/da_j to the gradients of the attention's parameters, by way of r_j = X^T g_j.
template <class V>
void form_attention_gradient(const LaneProblem& problem, const LanePoint& point, const LaneScratch& scratch,
                             const LaneSums& sums) {
  const std::ptrdiff_t n = problem.samples, T = problem.length, d = problem.dim, m = problem.rank;
  if (problem.form == LogitForm::prompt) {
    for_row_length(d, [&](auto length) {
      combine_rows<V>(problem.tokens, scratch.coefficients, scratch.direction_sum, d, n * T, length);
    });
    finish_prompt<V>(problem, scratch.direction_sum, sums.p);
    return;
  }
  // From the last query to the first: the tokens that the logits were formed of last are still in the nearest cache.
  for_row_length(d, [&](auto length) {
    for (std::ptrdiff_t i = n - 1; i >= 0; --i)
      combine_rows<V>(problem.tokens + i * T * d * lanes<V>, scratch.coefficients + i * T * lanes<V>,
                      scratch.r + i * d * lanes<V>, d, T, length);
  });
  scale_entries<V>(problem.logit_scale, scratch.r, n * d);
  if (sums.W != nullptr) product<V>({problem.queries, 1, d}, scratch.r, d, sums.W, problem.stride, d, d, n);
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
  const std::ptrdiff_t T = problem.length;
  for (std::ptrdiff_t i = 0; i < problem.samples; ++i) {
    const V weight = at<V>(scratch.weight, i) * at<V>(problem.labels, i);
    for (std::ptrdiff_t t = i * T; t < (i + 1) * T; ++t)
      put(scratch.coefficients, t, weight * at<V>(scratch.exps, t));
  }
  for_row_length(problem.dim, [&](auto length) {
    combine_rows<V>(problem.tokens, scratch.coefficients, gradient, problem.dim, problem.samples * T, length);
  });
}

template <class V>
void evaluate(const LaneProblem& problem, const LanePoint& point, const LaneScratch& scratch,
              const LaneSums& sums) {
  const std::ptrdiff_t n = problem.samples, T = problem.length;
  const bool wants_attention =
      sums.W != nullptr || sums.K != nullptr || sums.Q != nullptr || sums.p != nullptr;
  const bool safe = problem.jacobian == JacobianForm::safe;
  form_logits<V>(problem, point, scratch);
  if (problem.head != HeadForm::linear)
    apply_head<V>(problem, point, scratch);
  else if (problem.scores == nullptr)
    form_scores<V>(problem, point.v, scratch.scores);
  const double* scores = problem.scores != nullptr ? problem.scores : scratch.scores;

  // Calls body(i, first entry of its tokens in the arrays of logits).
  const auto for_queries = [&](auto body) {
    for (std::ptrdiff_t i = 0; i < n; ++i) body(i, i * T * lanes<V>);
  };
  if (safe) {
    for_queries([&](std::ptrdiff_t i, std::ptrdiff_t at_i) {
      safe_attend<V>(scratch, i, scratch.logits + at_i, scratch.exps + at_i, scores + at_i, T);
    });
    safe_margins<V>(problem, scratch);
  } else {
    for_queries([&](std::ptrdiff_t i, std::ptrdiff_t at_i) {
      textbook_attend<V>(scratch, i, scratch.logits + at_i, scratch.exps + at_i, scores + at_i, T);
    });
    if (problem.head != HeadForm::linear)
      for (std::ptrdiff_t i = 0; i < n; ++i) put(scratch.margin, i, at<V>(scratch.head, i));
  }
  form_losses<V>(problem, scratch, sums);

  V log_scale{}, log_scale_v{};
  if (!safe) textbook_weights<V>(problem, scratch);
  if (wants_attention) {
    if (safe) log_scale = form_weights<Weights::attention, V>(problem, scratch);
    for_queries([&](std::ptrdiff_t i, std::ptrdiff_t at_i) {
      if (safe)
        safe_coefficients<V>(scratch, i, scratch.logits + at_i, scratch.exps + at_i, scores + at_i,
                             scratch.coefficients + at_i, T);
      else
        textbook_coefficients<V>(scratch, i, scratch.exps + at_i, scores + at_i, scratch.coefficients + at_i,
                                 T);
    });
    form_attention_gradient<V>(problem, point, scratch, sums);
  }
  if (sums.v != nullptr) {
    if (safe) log_scale_v = form_weights<Weights::decoder, V>(problem, scratch);
    form_decoder_gradient<V>(problem, scratch, sums.v);
  }
  put(sums.log_scale, 0, log_scale);
  put(sums.log_scale_v, 0, log_scale_v);
}

template <class V>
constexpr LaneKernels lane_kernels{lanes<V>, evaluate<V>, max_abs<V>, add_multiple<V>, lane_powers<V>};

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
