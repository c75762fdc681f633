// The steps between the logits of a query and the coefficients of its gradient, for the kernels that are compiled
// once per instruction set. A step works on one query, or on the numbers of all queries of a block.
//
// With scores gamma_t = Y v^T x_t, attention s = softmax(a) and margin m = s^T gamma of one query,
//
//   textbook   dL/da_t = (1/N) ell'(m) s_t (gamma_t - m)
//   safe               = (1/N) ell'(m) [ s_t (gamma_t - gamma_r) + s_t D ],  D = sum_tau s_tau (gamma_r - gamma_tau)
//
// for any reference score gamma_r; we take that of the token with the largest logit. The textbook form loses
// every digit at the winning token once 1 - s_max < 1e-16, because m then rounds to gamma_r. In the safe form
// D is a sum of the losers' small probabilities and keeps full relative accuracy.
//
// The safe form also factors out what may underflow. Let E = max{a_t : gamma_t != gamma_r} - max a <= 0. Then
//
//   dL/da_t = -(1/N) e^{log|ell'| + E} [ h_t (gamma_t - gamma_r) + e_t delta ] / S,
//   e_t = e^{a_t - max a},  S = sum e_t,  h_t = e^{min(a_t - max a - E, 0)},
//   delta = sum_tau h_tau (gamma_r - gamma_tau) / S
//
// where all but the first factor is of order one.
//
// A head that is not linear has gamma_t = Y x_t^T grad h(u) at the attended token u = X^T s, and m = Y h(u); the
// rest is the same.
#pragma once

#include "attention/block_kernels.hpp"
#include "attention/loss_formulas.hpp"
#include "attention/matrix_kernels.hpp"
#include "base/vector_math_inline.hpp"

namespace attmirror::ATTMIRROR_ISA {

using namespace kernels;

namespace {

// The tokens of all sequences, as the kernel's type of token asks for them.
template <class Token>
[[gnu::always_inline]] inline const Token* all_tokens(const Problem& problem) {
  if constexpr (sizeof(Token) == sizeof(float))
    return problem.float_tokens;
  else
    return problem.tokens;
}

// One query of the block: the tokens it attends to and its places in the arrays of the block.
template <class Token>
struct Attended {
  const Token* tokens;
  std::ptrdiff_t length, padded_length;
  std::ptrdiff_t place;  // of its first token in the block's padded arrays
};

template <class Token>
[[gnu::always_inline]] inline Attended<Token> attended(const Problem& problem, std::ptrdiff_t first,
                                                       std::ptrdiff_t i) {
  const std::ptrdiff_t place = problem.score_places[first + i];
  return {all_tokens<Token>(problem) + problem.token_rows[first + i] * problem.stride,
          problem.lengths[first + i], problem.score_places[first + i + 1] - place,
          place - problem.score_places[first]};
}

// Names for the arrays with one number per query.
struct PerQuery {
  double *max_logit, *reference, *gap, *sum, *delta, *margin, *loss, *log_slope, *weight, *weight_v, *head;
  explicit PerQuery(const Scratch& s)
      : max_logit(s.per_query[0]),
        reference(s.per_query[1]),
        gap(s.per_query[2]),
        sum(s.per_query[3]),
        delta(s.per_query[4]),
        margin(s.per_query[5]),
        loss(s.per_query[6]),
        log_slope(s.per_query[7]),
        weight(s.per_query[8]),
        weight_v(s.per_query[9]),
        head(s.per_query[10]) {}

  // The arrays from query i on.
  PerQuery from(std::ptrdiff_t i) const {
    PerQuery result = *this;
    double** const arrays[] = {&result.max_logit, &result.reference, &result.gap,  &result.sum,
                               &result.delta,     &result.margin,    &result.loss, &result.log_slope,
                               &result.weight,    &result.weight_v,  &result.head};
    for (double** array : arrays) *array += i;
    return result;
  }
};

// ---- 1. directions ----------------------------------------------------------------------------------------------

void scale_rows(double factor, double* rows, std::ptrdiff_t size) {
  if (factor == 1) return;
  for (std::ptrdiff_t j = 0; j < size; j += lanes<Narrow>)
    store(rows + j, load<Narrow>(rows + j) * broadcast<Narrow>(factor));
}

// u_j of the queries of a block, `step` apart: 0 for a prompt, whose queries share one.
struct Directions {
  const double* u;
  std::ptrdiff_t step;
};

template <class Ahead>
Directions form_directions(const Problem& problem, const Point& at, const Scratch& scratch,
                           std::ptrdiff_t first, std::ptrdiff_t count, Ahead& ahead) {
  const double* z = problem.queries + first * problem.stride;
  switch (problem.form) {
    case LogitForm::W:
      multiply(z, problem.stride, at.W, scratch.u, problem.stride, count, problem.dim, ahead);
      break;
    case LogitForm::KQ:
      multiply(z, problem.stride, at.Q, scratch.low, problem.rank_stride, count, problem.dim, ahead);
      multiply(scratch.low, problem.rank_stride, at.K, scratch.u, problem.stride, count, problem.rank, ahead);
      break;
    case LogitForm::prompt:
      return {at.direction, 0};
  }
  scale_rows(problem.logit_scale, scratch.u, count * problem.stride);
  return {scratch.u, problem.stride};
}

// ---- 2. logits, softmax, loss -----------------------------------------------------------------------------------

// -inf for what a query may not attend to and for the padding.
template <class Token>
void mask_logits(const Problem& problem, const Attended<Token>& seq, double* logits, std::ptrdiff_t query) {
  for (std::ptrdiff_t t = seq.length; t < seq.padded_length; ++t) logits[t] = -infinity;
  if (problem.mask == nullptr) return;
  const std::uint8_t* allowed = problem.mask + problem.score_places[query];
  for (std::ptrdiff_t t = 0; t < seq.length; ++t)
    if (allowed[t] == 0) logits[t] = -infinity;
}

template <class Token>
void form_logits(const Problem& problem, const Scratch& scratch, const Attended<Token>& seq, const double* u,
                 std::ptrdiff_t query) {
  double* logits = scratch.logits + seq.place;
  row_dots(seq.tokens, u, logits, problem.stride, seq.length);
  mask_logits(problem, seq, logits, query);
}

// scores = Y times what is given; 0 in the padding.
template <class Token>
void sign_scores(const Problem& problem, const Attended<Token>& seq, const double* unsigned_scores,
                 double* scores, std::ptrdiff_t query) {
  for (std::ptrdiff_t t = 0; t < seq.length; ++t) scores[t] = problem.labels[query] * unsigned_scores[t];
  for (std::ptrdiff_t t = seq.length; t < seq.padded_length; ++t) scores[t] = 0;
}

// gamma_t = Y x_t^T direction into the scratch memory; with a fixed v these numbers are known beforehand.
template <class Token>
void form_scores(const Problem& problem, const Scratch& scratch, const Attended<Token>& seq,
                 const double* direction, std::ptrdiff_t query) {
  double* scores = scratch.scores + seq.place;
  const double* unsigned_scores = scores;
  if (problem.token_scores != nullptr)
    unsigned_scores = problem.token_scores + problem.token_score_places[query];
  else
    row_dots(seq.tokens, direction, scores, problem.stride, seq.length);
  sign_scores(problem, seq, unsigned_scores, scores, query);
}

double max_of(const double* values, std::ptrdiff_t padded_length) {
  Wide result = broadcast<Wide>(-infinity);
  for (std::ptrdiff_t t = 0; t < padded_length; t += lanes<Wide>)
    result = max(load<Wide>(values + t), result);
  return reduce_max(result);
}

// Losses and log|ell'| of all margins of the block (padded).
void form_losses(const Problem& problem, const PerQuery& per, std::ptrdiff_t count,
                 std::ptrdiff_t padded_count) {
  const auto built_in = [&](auto formulas) {
    for (std::ptrdiff_t i = 0; i < padded_count; i += lanes<Wide>) {
      const Wide margin = load<Wide>(per.margin + i);
      const LossAt<Wide> loss = formulas.at(margin, formulas.exponential(margin));
      store(per.loss + i, loss.value);
      store(per.log_slope + i, loss.log_slope);
    }
  };
  const auto custom = [&] {
    problem.custom_loss.evaluate(problem.custom_loss.object, per.margin, count, per.loss, per.log_slope);
    for (std::ptrdiff_t i = count; i < padded_count; ++i) per.loss[i] = per.log_slope[i] = 0;
  };
  with_loss(problem.loss, built_in, custom);
}

void add_losses(const PerQuery& per, std::ptrdiff_t count, Sums& sums) {
  for (std::ptrdiff_t i = 0; i < count; ++i) {
    sums.loss += per.loss[i];
    sums.max_softmax += 1.0 / per.sum[i];  // the largest e_t is 1
  }
}

// The safe form for query i: maxima and exponentials. Afterwards `exps` holds e_t and `logits` holds h_t.
void safe_attend(const PerQuery& per, std::ptrdiff_t i, double* logits, double* exps, const double* scores,
                 std::ptrdiff_t padded_length) {
  const double max_logit = max_of(logits, padded_length);
  Wide best = broadcast<Wide>(-infinity);
  for (std::ptrdiff_t t = 0; t < padded_length; t += lanes<Wide>)
    best = max(load<Wide>(logits + t) == broadcast<Wide>(max_logit) ? load<Wide>(scores + t)
                                                                    : broadcast<Wide>(-infinity),
               best);
  const double reference = reduce_max(best);
  Wide rival = broadcast<Wide>(-infinity);
  for (std::ptrdiff_t t = 0; t < padded_length; t += lanes<Wide>)
    rival = max(load<Wide>(scores + t) != broadcast<Wide>(reference) ? load<Wide>(logits + t)
                                                                     : broadcast<Wide>(-infinity),
                rival);
  const double max_rival = reduce_max(rival);
  per.max_logit[i] = max_logit;
  per.reference[i] = reference;
  per.gap[i] = max_rival - max_logit;  // -inf when all scores are equal: no gradient

  const double pivot = max_rival == -infinity ? max_logit : max_rival;
  Wide sum{}, delta{};
  for (std::ptrdiff_t t = 0; t < padded_length; t += lanes<Wide>) {
    const Wide logit = load<Wide>(logits + t);
    const Wide e = exp(logit - broadcast<Wide>(max_logit));
    const Wide h = exp(min(logit - broadcast<Wide>(pivot), Wide{}));
    sum += e;
    delta = mul_add(h, broadcast<Wide>(reference) - load<Wide>(scores + t), delta);
    store(exps + t, e);
    store(logits + t, h);
  }
  per.sum[i] = reduce_add(sum);
  per.delta[i] = reduce_add(delta) / per.sum[i];
}

// m = gamma_r - e^E delta for the queries of a block; a head that is not linear has given its own.
void safe_margins(const Problem& problem, const PerQuery& per, std::ptrdiff_t count,
                  std::ptrdiff_t padded_count) {
  if (problem.head != HeadForm::linear) {
    for (std::ptrdiff_t i = 0; i < padded_count; ++i) per.margin[i] = i < count ? per.head[i] : 0;
    return;
  }
  for (std::ptrdiff_t i = count; i < padded_count; ++i) per.reference[i] = per.gap[i] = per.delta[i] = 0;
  for (std::ptrdiff_t i = 0; i < padded_count; i += lanes<Wide>) {
    const Wide shift = load<Wide>(per.delta + i) * exp(load<Wide>(per.gap + i));
    store(per.margin + i, load<Wide>(per.reference + i) - shift);
  }
}

// Makes `log_scale` at least as large as the largest exponent of the block needs (up to e^40 of head-room is
// harmless), and rescales the sums so far. With `exponents` all -inf the block has no gradient.
struct Part {
  double* values;
  std::ptrdiff_t size;
};

template <int N>
void raise_scale(double largest, double& log_scale, const Part (&parts)[N]) {
  if (!(largest > log_scale + 40) && log_scale != -infinity) return;
  if (largest == -infinity) return;
  if (log_scale != -infinity) {
    const Narrow factor = broadcast<Narrow>(exp(log_scale - largest));
    for (const Part& part : parts)
      if (part.values != nullptr)
        for (std::ptrdiff_t j = 0; j < part.size; j += lanes<Narrow>)
          store(part.values + j, load<Narrow>(part.values + j) * factor);
  }
  log_scale = largest;
}

// weight_i = -(1/N) e^{exponent_i - log_scale} / S_i, with exponent_i = log|ell'| (+ E for the attention).
void form_weights(const double* log_slope, const double* gap, const double* sum, double log_scale,
                  double inverse_count, double* weight, std::ptrdiff_t padded_count) {
  for (std::ptrdiff_t i = 0; i < padded_count; i += lanes<Wide>) {
    // Summed as in max_exponent(): both terms may be huge, and only equal roundings cancel.
    Wide exponent = load<Wide>(log_slope + i);
    if (gap != nullptr) exponent += load<Wide>(gap + i);
    exponent -= broadcast<Wide>(log_scale);
    store(weight + i, exp(exponent) * broadcast<Wide>(-inverse_count) / load<Wide>(sum + i));
  }
}

double max_exponent(const double* log_slope, const double* gap, std::ptrdiff_t count) {
  double result = -infinity;
  for (std::ptrdiff_t i = 0; i < count; ++i) {
    const double exponent = log_slope[i] + (gap != nullptr ? gap[i] : 0.0);
    result = max(exponent, result);
  }
  return result;
}

// weight [ h_t (gamma_t - gamma_r) + e_t delta ] for query i.
void safe_coefficients(const PerQuery& per, std::ptrdiff_t i, double weight, const double* logits,
                       const double* exps, const double* scores, double* coefficients,
                       std::ptrdiff_t padded_length) {
  const Wide factor = broadcast<Wide>(weight), delta = broadcast<Wide>(per.delta[i]);
  const Wide reference = broadcast<Wide>(per.reference[i]);
  for (std::ptrdiff_t t = 0; t < padded_length; t += lanes<Wide>) {
    const Wide h = load<Wide>(logits + t), e = load<Wide>(exps + t);
    const Wide inner = mul_add(h, load<Wide>(scores + t) - reference, e * delta);
    store(coefficients + t, factor * inner);
  }
}

// The textbook form, in the order in which PyTorch's CPU kernels round it: four running sums (t mod 4), added
// from the first to the last, and dL/da_t = (G_t - sum G s) s_t with G_t = (1/N) ell' gamma_t. Once 1 - s_max
// is of the order of rounding errors, published runs follow these errors; only the same order leads to the
// same weights. Afterwards scratch.exps holds s_t.
[[gnu::always_inline]] inline double sum_in_order(F64x4 v) { return ((v[0] + v[1]) + v[2]) + v[3]; }

void textbook_attend(const PerQuery& per, std::ptrdiff_t i, const double* logits, double* probabilities,
                     const double* scores, std::ptrdiff_t padded_length) {
  const Wide max_logit = broadcast<Wide>(max_of(logits, padded_length));
  for (std::ptrdiff_t t = 0; t < padded_length; t += lanes<Wide>)
    store(probabilities + t, exp(load<Wide>(logits + t) - max_logit));
  F64x4 sum{};
  for (std::ptrdiff_t t = 0; t < padded_length; t += 4) sum += load<F64x4>(probabilities + t);
  per.sum[i] = sum_in_order(sum);
  const Wide total = broadcast<Wide>(per.sum[i]);
  Wide margin{};
  for (std::ptrdiff_t t = 0; t < padded_length; t += lanes<Wide>) {
    const Wide s = load<Wide>(probabilities + t) / total;
    margin = mul_add(s, load<Wide>(scores + t), margin);
    store(probabilities + t, s);
  }
  per.margin[i] = reduce_add(margin);
}

void textbook_margins(const Problem& problem, const PerQuery& per, std::ptrdiff_t count,
                      std::ptrdiff_t padded_count) {
  if (problem.head != HeadForm::linear)
    for (std::ptrdiff_t i = 0; i < count; ++i) per.margin[i] = per.head[i];
  for (std::ptrdiff_t i = count; i < padded_count; ++i) per.margin[i] = 0;
}

// weight_i = (1/N) ell'(m_i)
void textbook_weights(LossForm form, const PerQuery& per, double inverse_count, std::ptrdiff_t padded_count) {
  const auto form_weights = [&](auto slope_of) {
    for (std::ptrdiff_t i = 0; i < padded_count; i += lanes<Wide>)
      store(per.weight + i, slope_of(i) * broadcast<Wide>(inverse_count));
  };
  with_loss(
      form,
      [&](auto formulas) {
        form_weights([&](std::ptrdiff_t i) { return formulas.textbook_slope(load<Wide>(per.margin + i)); });
      },
      [&] { form_weights([&](std::ptrdiff_t i) { return -exp(load<Wide>(per.log_slope + i)); }); });
}

void textbook_coefficients(double weight_i, const double* probabilities, const double* scores,
                           double* coefficients, std::ptrdiff_t padded_length) {
  const F64x4 weight = broadcast<F64x4>(weight_i);
  F64x4 sum{};
  for (std::ptrdiff_t t = 0; t < padded_length; t += 4)
    sum = mul_add(weight * load<F64x4>(scores + t), load<F64x4>(probabilities + t), sum);
  const F64x4 mean = broadcast<F64x4>(sum_in_order(sum));
  for (std::ptrdiff_t t = 0; t < padded_length; t += 4)
    store(coefficients + t, (weight * load<F64x4>(scores + t) - mean) * load<F64x4>(probabilities + t));
}

}  // namespace
}  // namespace attmirror::ATTMIRROR_ISA
