// Value and gradient of softmax attention over a block of sequences. Compiled once per instruction set.
//
// With scores gamma_t = Y v^T x_t, attention s = softmax(a) and margin m = s^T gamma of one sequence,
//
//   textbook   dL/da_t = (1/n) ell'(m) s_t (gamma_t - m)
//   safe               = (1/n) ell'(m) [ s_t (gamma_t - gamma_r) + s_t D ],  D = sum_tau s_tau (gamma_r - gamma_tau)
//
// for any reference score gamma_r; we take that of the token with the largest logit. The textbook form loses
// every digit at the winning token once 1 - s_max < 1e-16, because m then rounds to gamma_r. In the safe form
// D is a sum of the losers' small probabilities and keeps full relative accuracy.
//
// The safe form also factors out what may underflow. Let E = max{a_t : gamma_t != gamma_r} - max a <= 0. Then
//
//   dL/da_t = -(1/n) e^{log|ell'| + E} [ h_t (gamma_t - gamma_r) + e_t delta ] / S,
//   e_t = e^{a_t - max a},  S = sum e_t,  h_t = e^{min(a_t - max a - E, 0)},
//   delta = sum_tau h_tau (gamma_r - gamma_tau) / S
//
// where all but the first factor is of order one. A chunk keeps its sums relative to the largest log|ell'| +
// E seen so far, as an online softmax does.
#include "attention/block_kernels.hpp"

#include "attention/matrix_kernels.hpp"
#include "base/vector_math_inline.hpp"

namespace attmirror::ATTMIRROR_ISA {

using namespace kernels;

namespace {

// One sequence of the block: its tokens and its places in the arrays of the block.
struct Sequence {
  const double* tokens;
  std::ptrdiff_t length, padded_length;
  std::ptrdiff_t place;  // of its first token in the block's padded arrays
};

[[gnu::always_inline]] inline Sequence sequence(const Problem& problem, std::ptrdiff_t first,
                                                std::ptrdiff_t i) {
  const std::ptrdiff_t row = problem.token_rows[first + i];
  const std::ptrdiff_t place = problem.score_places[first + i];
  return {problem.tokens + row * problem.stride, problem.token_rows[first + i + 1] - row,
          problem.score_places[first + i + 1] - place, place - problem.score_places[first]};
}

// Names for the arrays with one number per sequence.
struct PerSequence {
  double *max_logit, *reference, *gap, *sum, *delta, *margin, *loss, *log_slope, *weight, *weight_v;
  explicit PerSequence(const Scratch& s)
      : max_logit(s.per_sequence[0]),
        reference(s.per_sequence[1]),
        gap(s.per_sequence[2]),
        sum(s.per_sequence[3]),
        delta(s.per_sequence[4]),
        margin(s.per_sequence[5]),
        loss(s.per_sequence[6]),
        log_slope(s.per_sequence[7]),
        weight(s.per_sequence[8]),
        weight_v(s.per_sequence[9]) {}
};

// ---- 1. directions
// ----------------------------------------------------------------------------------------------

// Returns the distance between the directions of consecutive sequences: 0 when they share one.
std::ptrdiff_t form_directions(const Problem& problem, const Point& at, const Scratch& scratch,
                               std::ptrdiff_t first, std::ptrdiff_t count) {
  const double* z = problem.queries + first * problem.stride;
  switch (problem.form) {
    case LogitForm::W:
      multiply(z, problem.stride, at.W, scratch.u, problem.stride, count, problem.dim);
      return problem.stride;
    case LogitForm::KQ:
      multiply(z, problem.stride, at.Q, scratch.low, problem.rank_stride, count, problem.dim);
      multiply(scratch.low, problem.rank_stride, at.K, scratch.u, problem.stride, count, problem.rank);
      return problem.stride;
    case LogitForm::prompt:
      break;
  }
  return 0;
}

// ---- 2. logits, softmax, loss
// -----------------------------------------------------------------------------------

void form_logits(const Problem& problem, const Point& at, const Scratch& scratch, std::ptrdiff_t first,
                 std::ptrdiff_t count, std::ptrdiff_t direction_step) {
  const double* u = problem.form == LogitForm::prompt ? at.direction : scratch.u;
  for (std::ptrdiff_t i = 0; i < count; ++i) {
    const Sequence seq = sequence(problem, first, i);
    double* logits = scratch.logits + seq.place;
    row_dots(seq.tokens, u + i * direction_step, logits, problem.stride, seq.length);
    for (std::ptrdiff_t t = seq.length; t < seq.padded_length; ++t) logits[t] = -infinity;
    if (problem.scores != nullptr) continue;
    double* scores = scratch.scores + seq.place;
    row_dots(seq.tokens, at.v, scores, problem.stride, seq.length);
    for (std::ptrdiff_t t = 0; t < seq.length; ++t) scores[t] *= problem.labels[first + i];
    for (std::ptrdiff_t t = seq.length; t < seq.padded_length; ++t) scores[t] = 0;
  }
}

double max_of(const double* values, std::ptrdiff_t padded_length) {
  Wide result = broadcast<Wide>(-infinity);
  for (std::ptrdiff_t t = 0; t < padded_length; t += lanes<Wide>)
    result = max(load<Wide>(values + t), result);
  return reduce_max(result);
}

// Losses and log|ell'| of all margins of the block (padded).
void form_losses(LossForm form, const PerSequence& per, std::ptrdiff_t padded_count) {
  const Wide zero{};
  for (std::ptrdiff_t i = 0; i < padded_count; i += lanes<Wide>) {
    const Wide margin = load<Wide>(per.margin + i);
    switch (form) {
      case LossForm::logistic: {
        const Wide tail = log1p(exp(-abs(margin)));
        // The comparison with NaN must leave NaN: a diverged run is recognised by its loss.
        store(per.loss + i, tail + max(zero, -margin));
        store(per.log_slope + i, -(tail + max(zero, margin)));
        break;
      }
      case LossForm::exponential:
        store(per.loss + i, exp(-margin));
        store(per.log_slope + i, -margin);
        break;
      case LossForm::linear:
        store(per.loss + i, -margin);
        store(per.log_slope + i, zero);
        break;
    }
  }
}

void add_losses(const PerSequence& per, std::ptrdiff_t count, Sums& sums) {
  for (std::ptrdiff_t i = 0; i < count; ++i) {
    sums.loss += per.loss[i];
    sums.max_softmax += 1.0 / per.sum[i];  // the largest e_t is 1
  }
}

// The safe form: maxima, exponentials, margins. Afterwards scratch.exps holds e_t and scratch.logits holds
// h_t.
void safe_softmax(const Problem& problem, const Scratch& scratch, const double* all_scores,
                  const PerSequence& per, std::ptrdiff_t first, std::ptrdiff_t count,
                  std::ptrdiff_t padded_count) {
  for (std::ptrdiff_t i = 0; i < count; ++i) {
    const Sequence seq = sequence(problem, first, i);
    double* logits = scratch.logits + seq.place;
    double* exps = scratch.exps + seq.place;
    const double* scores = all_scores + seq.place;

    const double max_logit = max_of(logits, seq.padded_length);
    Wide best = broadcast<Wide>(-infinity);
    for (std::ptrdiff_t t = 0; t < seq.padded_length; t += lanes<Wide>)
      best = max(load<Wide>(logits + t) == broadcast<Wide>(max_logit) ? load<Wide>(scores + t)
                                                                      : broadcast<Wide>(-infinity),
                 best);
    const double reference = reduce_max(best);
    Wide rival = broadcast<Wide>(-infinity);
    for (std::ptrdiff_t t = 0; t < seq.padded_length; t += lanes<Wide>)
      rival = max(load<Wide>(scores + t) != broadcast<Wide>(reference) ? load<Wide>(logits + t)
                                                                       : broadcast<Wide>(-infinity),
                  rival);
    const double max_rival = reduce_max(rival);
    per.max_logit[i] = max_logit;
    per.reference[i] = reference;
    per.gap[i] = max_rival - max_logit;  // -inf when all scores are equal: no gradient

    const double pivot = max_rival == -infinity ? max_logit : max_rival;
    Wide sum{}, delta{};
    for (std::ptrdiff_t t = 0; t < seq.padded_length; t += lanes<Wide>) {
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
  for (std::ptrdiff_t i = count; i < padded_count; ++i) per.reference[i] = per.gap[i] = per.delta[i] = 0;
  for (std::ptrdiff_t i = 0; i < padded_count; i += lanes<Wide>) {
    const Wide shift = load<Wide>(per.delta + i) * exp(load<Wide>(per.gap + i));
    store(per.margin + i, load<Wide>(per.reference + i) - shift);
  }
  form_losses(problem.loss, per, padded_count);
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

// weight_i = -(1/n) e^{exponent_i - log_scale} / S_i, with exponent_i = log|ell'| (+ E for the attention).
void form_weights(const double* log_slope, const double* gap, const double* sum, double log_scale,
                  double inverse_n, double* weight, std::ptrdiff_t padded_count) {
  for (std::ptrdiff_t i = 0; i < padded_count; i += lanes<Wide>) {
    // Summed as in max_exponent(): both terms may be huge, and only equal roundings cancel.
    Wide exponent = load<Wide>(log_slope + i);
    if (gap != nullptr) exponent += load<Wide>(gap + i);
    exponent -= broadcast<Wide>(log_scale);
    store(weight + i, exp(exponent) * broadcast<Wide>(-inverse_n) / load<Wide>(sum + i));
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

void safe_coefficients(const Problem& problem, const Scratch& scratch, const double* all_scores,
                       const PerSequence& per, std::ptrdiff_t first, std::ptrdiff_t count) {
  for (std::ptrdiff_t i = 0; i < count; ++i) {
    const Sequence seq = sequence(problem, first, i);
    const Wide weight = broadcast<Wide>(per.weight[i]), delta = broadcast<Wide>(per.delta[i]);
    const Wide reference = broadcast<Wide>(per.reference[i]);
    for (std::ptrdiff_t t = seq.place; t < seq.place + seq.padded_length; t += lanes<Wide>) {
      const Wide h = load<Wide>(scratch.logits + t), e = load<Wide>(scratch.exps + t);
      const Wide inner = mul_add(h, load<Wide>(all_scores + t) - reference, e * delta);
      store(scratch.coefficients + t, weight * inner);
    }
  }
}

// The textbook form, in the order in which PyTorch's CPU kernels round it: four running sums (t mod 4), added
// from the first to the last, and dL/da_t = (G_t - sum G s) s_t with G_t = (1/n) ell' gamma_t. Once 1 - s_max
// is of the order of rounding errors, published runs follow these errors; only the same order leads to the
// same weights. Afterwards scratch.exps holds s_t.
[[gnu::always_inline]] inline double sum_in_order(F64x4 v) { return ((v[0] + v[1]) + v[2]) + v[3]; }

void textbook_softmax(const Problem& problem, const Scratch& scratch, const double* all_scores,
                      const PerSequence& per, std::ptrdiff_t first, std::ptrdiff_t count,
                      std::ptrdiff_t padded_count) {
  for (std::ptrdiff_t i = 0; i < count; ++i) {
    const Sequence seq = sequence(problem, first, i);
    const double* logits = scratch.logits + seq.place;
    double* probabilities = scratch.exps + seq.place;
    const Wide max_logit = broadcast<Wide>(max_of(logits, seq.padded_length));
    for (std::ptrdiff_t t = 0; t < seq.padded_length; t += lanes<Wide>)
      store(probabilities + t, exp(load<Wide>(logits + t) - max_logit));
    F64x4 sum{};
    for (std::ptrdiff_t t = 0; t < seq.padded_length; t += 4) sum += load<F64x4>(probabilities + t);
    per.sum[i] = sum_in_order(sum);
    const Wide total = broadcast<Wide>(per.sum[i]);
    Wide margin{};
    for (std::ptrdiff_t t = 0; t < seq.padded_length; t += lanes<Wide>) {
      const Wide s = load<Wide>(probabilities + t) / total;
      margin = mul_add(s, load<Wide>(all_scores + seq.place + t), margin);
      store(probabilities + t, s);
    }
    per.margin[i] = reduce_add(margin);
  }
  for (std::ptrdiff_t i = count; i < padded_count; ++i) per.margin[i] = 0;
  form_losses(problem.loss, per, padded_count);
}

// weight_i = (1/n) ell'(m_i)
void textbook_weights(LossForm form, const PerSequence& per, double inverse_n, std::ptrdiff_t padded_count) {
  for (std::ptrdiff_t i = 0; i < padded_count; i += lanes<Wide>) {
    const Wide margin = load<Wide>(per.margin + i), one = broadcast<Wide>(1.0);
    Wide slope = -one;
    if (form == LossForm::logistic) slope = -one / (one + exp(margin));
    if (form == LossForm::exponential) slope = -exp(-margin);
    store(per.weight + i, slope * broadcast<Wide>(inverse_n));
  }
}

void textbook_coefficients(const Problem& problem, const Scratch& scratch, const double* all_scores,
                           const PerSequence& per, std::ptrdiff_t first, std::ptrdiff_t count) {
  for (std::ptrdiff_t i = 0; i < count; ++i) {
    const Sequence seq = sequence(problem, first, i);
    const std::ptrdiff_t end = seq.place + seq.padded_length;
    const F64x4 weight = broadcast<F64x4>(per.weight[i]);
    F64x4 sum{};
    for (std::ptrdiff_t t = seq.place; t < end; t += 4)
      sum = mul_add(weight * load<F64x4>(all_scores + t), load<F64x4>(scratch.exps + t), sum);
    const F64x4 mean = broadcast<F64x4>(sum_in_order(sum));
    for (std::ptrdiff_t t = seq.place; t < end; t += 4)
      store(scratch.coefficients + t,
            (weight * load<F64x4>(all_scores + t) - mean) * load<F64x4>(scratch.exps + t));
  }
}

// ---- 3. gradients
// -----------------------------------------------------------------------------------------------

void add_attention_gradient(const Problem& problem, const Point& at, const Scratch& scratch, Sums& sums,
                            std::ptrdiff_t first, std::ptrdiff_t count) {
  const std::ptrdiff_t stride = problem.stride;
  for (std::ptrdiff_t i = 0; i < count; ++i) {
    const Sequence seq = sequence(problem, first, i);
    const double* coefficients = scratch.coefficients + seq.place;
    if (problem.form == LogitForm::prompt)
      combine_rows<Into::add>(seq.tokens, coefficients, sums.direction, stride, seq.length);
    else
      combine_rows<Into::overwrite>(seq.tokens, coefficients, scratch.r + i * stride, stride, seq.length);
  }
  const double* z = problem.queries + first * stride;
  if (sums.W != nullptr) add_outer_products(z, stride, scratch.r, sums.W, stride, problem.dim, count);
  if (sums.K != nullptr)
    add_outer_products(scratch.low, problem.rank_stride, scratch.r, sums.K, stride, problem.rank, count);
  if (sums.Q != nullptr) {
    for (std::ptrdiff_t i = 0; i < count; ++i) {
      double* low_r = scratch.low_r + i * problem.rank_stride;
      row_dots(at.K, scratch.r + i * stride, low_r, stride, problem.rank);
      for (std::ptrdiff_t j = problem.rank; j < problem.rank_stride; ++j) low_r[j] = 0;
    }
    add_outer_products(z, stride, scratch.low_r, sums.Q, problem.rank_stride, problem.dim, count);
  }
}

// grad_v = (1/n) sum_i ell'_i Y_i X_i^T s_i, with weight_v_i s_t = weight_i exps_t in either form.
void add_decoder_gradient(const Problem& problem, const Scratch& scratch, const PerSequence& per, Sums& sums,
                          std::ptrdiff_t first, std::ptrdiff_t count) {
  for (std::ptrdiff_t i = 0; i < count; ++i) {
    const Sequence seq = sequence(problem, first, i);
    const Wide weight = broadcast<Wide>(per.weight_v[i] * problem.labels[first + i]);
    double* coefficients = scratch.coefficients + seq.place;
    for (std::ptrdiff_t t = 0; t < seq.padded_length; t += lanes<Wide>)
      store(coefficients + t, weight * load<Wide>(scratch.exps + seq.place + t));
    combine_rows<Into::add>(seq.tokens, coefficients, sums.v, problem.stride, seq.length);
  }
}

void evaluate_block(const Problem& problem, const Point& at, const Scratch& scratch, Sums& sums,
                    std::ptrdiff_t first, std::ptrdiff_t last) {
  const std::ptrdiff_t count = last - first, padded_count = padded_tokens(count);
  const PerSequence per(scratch);
  const double inverse_n = 1.0 / static_cast<double>(problem.samples);
  const bool wants_attention =
      sums.W != nullptr || sums.K != nullptr || sums.Q != nullptr || sums.direction != nullptr;

  form_logits(problem, at, scratch, first, count, form_directions(problem, at, scratch, first, count));
  const double* scores =
      problem.scores != nullptr ? problem.scores + problem.score_places[first] : scratch.scores;

  if (problem.jacobian == JacobianForm::textbook) {
    textbook_softmax(problem, scratch, scores, per, first, count, padded_count);
    textbook_weights(problem.loss, per, inverse_n, padded_count);
    add_losses(per, count, sums);
    if (wants_attention) {
      textbook_coefficients(problem, scratch, scores, per, first, count);
      add_attention_gradient(problem, at, scratch, sums, first, count);
    }
    if (sums.v != nullptr) {
      for (std::ptrdiff_t i = 0; i < count; ++i) per.weight_v[i] = per.weight[i];
      add_decoder_gradient(problem, scratch, per, sums, first, count);
    }
    return;
  }

  safe_softmax(problem, scratch, scores, per, first, count, padded_count);
  add_losses(per, count, sums);
  for (std::ptrdiff_t i = count; i < padded_count; ++i) per.sum[i] = 1;
  const double largest = wants_attention ? max_exponent(per.log_slope, per.gap, count) : -infinity;
  if (largest != -infinity) {
    raise_scale(largest, sums.log_scale,
                {Part{sums.W, problem.dim * problem.stride}, Part{sums.K, problem.rank * problem.stride},
                 Part{sums.Q, problem.dim * problem.rank_stride}, Part{sums.direction, problem.stride}});
    form_weights(per.log_slope, per.gap, per.sum, sums.log_scale, inverse_n, per.weight, padded_count);
    safe_coefficients(problem, scratch, scores, per, first, count);
    add_attention_gradient(problem, at, scratch, sums, first, count);
  }
  if (sums.v != nullptr) {
    raise_scale(max_exponent(per.log_slope, nullptr, count), sums.log_scale_v,
                {Part{sums.v, problem.stride}});
    form_weights(per.log_slope, nullptr, per.sum, sums.log_scale_v, inverse_n, per.weight_v, padded_count);
    add_decoder_gradient(problem, scratch, per, sums, first, count);
  }
}

}  // namespace

const AttentionKernels attention_kernels{&evaluate_block};

}  // namespace attmirror::ATTMIRROR_ISA
