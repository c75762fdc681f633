// From the logits of a query to the coefficients of its gradient, one run per lane: the steps of
// attention/attention_steps.hpp (which has the formulas and the reasons for them), operation by operation in the same
// order. What is a decision there (a query without a rival, a block without a gradient) is a choice per lane here.
#pragma once

#include "attention/loss_formulas.hpp"
#include "base/vector_math_inline.hpp"
#include "sweep/lane_kernels.hpp"
#include "sweep/lane_products.hpp"

namespace attmirror::ATTMIRROR_ISA {

using namespace kernels;

namespace {

template <class V>
[[gnu::always_inline]] inline V max_of(const double* values, std::ptrdiff_t count) {
  V result = broadcast<V>(-infinity);
  for (std::ptrdiff_t t = 0; t < count; ++t) result = max(at<V>(values, t), result);
  return result;
}

// sum_t values[t], in partial sums
template <class V>
[[gnu::always_inline]] inline V sum_of(const double* values, std::ptrdiff_t count) {
  return sum_in_parts<V>(count, [&](std::ptrdiff_t t, V sum) { return sum + at<V>(values, t); });
}

// The tokens of the next query, a token at a time. The data of eight runs just exceed the nearest cache; exponentials
// leave it idle, so that what comes next can be asked for meanwhile.
template <class V>
struct ReadAhead {
  const double* tokens;
  std::ptrdiff_t dim;
  [[gnu::always_inline]] void token(std::ptrdiff_t t) const {
    constexpr std::ptrdiff_t line = 8;
    const std::ptrdiff_t size = dim * lanes<V>;
    for (std::ptrdiff_t j = 0; j < size; j += line) __builtin_prefetch(tokens + t * size + j);
  }
};

// The safe form for query i. Afterwards `exps` holds e_t and `logits` holds h_t.
template <class V>
void safe_attend(const LaneScratch& per, std::ptrdiff_t i, double* logits, double* exps, const double* scores,
                 std::ptrdiff_t length, ReadAhead<V> ahead) {
  const V lowest = broadcast<V>(-infinity);
  const V max_logit = max_of<V>(logits, length);
  V reference = lowest, max_rival = lowest;
  for (std::ptrdiff_t t = 0; t < length; ++t)
    reference = max(at<V>(logits, t) == max_logit ? at<V>(scores, t) : lowest, reference);
  for (std::ptrdiff_t t = 0; t < length; ++t)
    max_rival = max(at<V>(scores, t) != reference ? at<V>(logits, t) : lowest, max_rival);
  put(per.reference, i, reference);
  put(per.gap, i, max_rival - max_logit);  // -inf when all scores are equal: no gradient

  const V pivot = max_rival == lowest ? max_logit : max_rival;
  for (std::ptrdiff_t t = 0; t < length; ++t) {
    ahead.token(t);
    const V logit = at<V>(logits, t);
    put(exps, t, exp(logit - max_logit));
    put(logits, t, exp(min(logit - pivot, V{})));
  }
  const V sum = sum_of<V>(exps, length);
  const V delta = sum_in_parts<V>(length, [&](std::ptrdiff_t t, V so_far) {
    return mul_add(at<V>(logits, t), reference - at<V>(scores, t), so_far);
  });
  put(per.sum, i, sum);
  put(per.delta, i, delta / sum);
}

// weight [ h_t (gamma_t - gamma_r) + e_t delta ] for query i.
template <class V>
void safe_coefficients(const LaneScratch& per, std::ptrdiff_t i, const double* logits, const double* exps,
                       const double* scores, double* coefficients, std::ptrdiff_t length) {
  const V weight = at<V>(per.weight, i), delta = at<V>(per.delta, i), reference = at<V>(per.reference, i);
  for (std::ptrdiff_t t = 0; t < length; ++t) {
    const V inner = mul_add(at<V>(logits, t), at<V>(scores, t) - reference, at<V>(exps, t) * delta);
    put(coefficients, t, weight * inner);
  }
}

// The margins: m = gamma_r - e^E delta in the safe form; the textbook form has summed them. A head that is not linear
// has given its own.
template <class V>
void form_margins(const LaneProblem& problem, const LaneScratch& per) {
  if (problem.head != HeadForm::linear) {
    for (std::ptrdiff_t i = 0; i < problem.samples; ++i) put(per.margin, i, at<V>(per.head, i));
  } else if (problem.jacobian == JacobianForm::safe) {
    for (std::ptrdiff_t i = 0; i < problem.samples; ++i) {
      const V shift = at<V>(per.delta, i) * exp(at<V>(per.gap, i));
      put(per.margin, i, at<V>(per.reference, i) - shift);
    }
  }
}

// For a loss or a head of the user's own, which lanes refuse (lane_memory.cpp).
struct NotInLanes {
  void operator()() const {}
};

// The mean loss and the mean largest probability; log|ell'| of each query. The exponentials are formed first, because
// one and the logarithm that follows it are too long a chain to look beyond; they wait where log|ell'| will be.
template <class V>
void form_losses(const LaneProblem& problem, const LaneScratch& per, const LaneSums& sums) {
  V total{}, max_softmax{};
  const auto built_in = [&](auto formulas) {
    for (std::ptrdiff_t i = 0; i < problem.samples; ++i)
      put(per.log_slope, i, formulas.exponential(at<V>(per.margin, i)));
    for (std::ptrdiff_t i = 0; i < problem.samples; ++i) {
      const LossAt<V> loss = formulas.at(at<V>(per.margin, i), at<V>(per.log_slope, i));
      put(per.log_slope, i, loss.log_slope);
      total = total + loss.value;
      max_softmax = max_softmax + 1.0 / at<V>(per.sum, i);  // the largest e_t is 1
    }
  };
  with_loss(problem.loss, built_in, NotInLanes{});
  const V count = broadcast<V>(static_cast<double>(problem.samples));
  put(sums.loss, 0, total / count);
  put(sums.max_softmax, 0, max_softmax / count);
}

// What exponent_i = log|ell'| (+ E for the attention) is relative to: its largest. In a lane where that is -inf the
// attention has no gradient.
enum class Weights { attention, decoder };

template <Weights of, class V>
[[gnu::always_inline]] inline V exponent(const LaneScratch& per, std::ptrdiff_t i) {
  const V log_slope = at<V>(per.log_slope, i);
  return of == Weights::attention ? log_slope + at<V>(per.gap, i) : log_slope;
}

// weight_i = -(1/N) e^{exponent_i - log_scale} / S_i. Returns log_scale.
template <Weights of, class V>
V form_weights(const LaneProblem& problem, const LaneScratch& per) {
  const V lowest = broadcast<V>(-infinity);
  const double inverse_count = 1.0 / static_cast<double>(problem.samples);
  V log_scale = lowest;
  for (std::ptrdiff_t i = 0; i < problem.samples; ++i) log_scale = max(exponent<of, V>(per, i), log_scale);
  for (std::ptrdiff_t i = 0; i < problem.samples; ++i) {
    const V weight =
        exp(exponent<of, V>(per, i) - log_scale) * broadcast<V>(-inverse_count) / at<V>(per.sum, i);
    put(per.weight, i, of == Weights::attention && log_scale == lowest ? V{} : weight);
  }
  return log_scale;
}

// ---- the textbook form
// ---------------------------------------------------------------------------------------------

// Four running sums (t mod 4), added from the first to the last: the order of PyTorch's kernels.
template <class V, class Add>
[[gnu::always_inline]] inline V sum_in_order(std::ptrdiff_t count, Add add) {
  const auto sum = [&](std::ptrdiff_t k) {
    V so_far{};
    for (std::ptrdiff_t t = k; t < count; t += 4) so_far = add(t, so_far);
    return so_far;
  };
  return ((sum(0) + sum(1)) + sum(2)) + sum(3);
}

// Afterwards `exps` holds s_t.
template <class V>
void textbook_attend(const LaneScratch& per, std::ptrdiff_t i, const double* logits, double* exps,
                     const double* scores, std::ptrdiff_t length, ReadAhead<V> ahead) {
  const V max_logit = max_of<V>(logits, length);
  for (std::ptrdiff_t t = 0; t < length; ++t) {
    ahead.token(t);
    put(exps, t, exp(at<V>(logits, t) - max_logit));
  }
  const V total =
      sum_in_order<V>(length, [&](std::ptrdiff_t t, V so_far) { return so_far + at<V>(exps, t); });
  put(per.sum, i, total);
  for (std::ptrdiff_t t = 0; t < length; ++t) put(exps, t, at<V>(exps, t) / total);
  put(per.margin, i, sum_in_parts<V>(length, [&](std::ptrdiff_t t, V so_far) {
        return mul_add(at<V>(exps, t), at<V>(scores, t), so_far);
      }));
}

// weight_i = (1/N) ell'(m_i)
template <class V>
void textbook_weights(const LaneProblem& problem, const LaneScratch& per) {
  const V inverse_count = broadcast<V>(1.0 / static_cast<double>(problem.samples));
  const auto built_in = [&](auto formulas) {
    for (std::ptrdiff_t i = 0; i < problem.samples; ++i)
      put(per.weight, i, formulas.textbook_slope(at<V>(per.margin, i)) * inverse_count);
  };
  with_loss(problem.loss, built_in, NotInLanes{});
}

template <class V>
void textbook_coefficients(const LaneScratch& per, std::ptrdiff_t i, const double* probabilities,
                           const double* scores, double* coefficients, std::ptrdiff_t length) {
  const V weight = at<V>(per.weight, i);
  const V mean = sum_in_order<V>(length, [&](std::ptrdiff_t t, V so_far) {
    return mul_add(weight * at<V>(scores, t), at<V>(probabilities, t), so_far);
  });
  for (std::ptrdiff_t t = 0; t < length; ++t)
    put(coefficients, t, (weight * at<V>(scores, t) - mean) * at<V>(probabilities, t));
}

}  // namespace
}  // namespace attmirror::ATTMIRROR_ISA
