// Attention, the softmax over the vocabulary and the coefficients of the gradients. Compiled once per instruction set.
//
// An item has the logits o_v = sum_t s_t U_tv of the words v, U_t being row x_t of U = E W_ov^T. Relative to its label,
//
//   Z = sum over v != y of e^{o_v - o_y},  loss = log(1 + Z),  r_v = (1 - p_y) e^{o_v - o_y} / Z,  r_y = -(1 - p_y)
//   delta_t = [sum over v != y of e^{o_v - o_y} (U_tv - U_rv)] / Z - (U_ty - U_ry)        r: the token of the largest
//                                                                                         logit
//   d loss / d a_t = (1 - p_y) s_t [delta_t - sum_tau s_tau delta_tau]
//
// and with E = max{a_t : delta_t != 0} - max a, e_t = e^{a_t - max a}, S = sum e_t, h_t = e^{min(a_t - max a - E, 0)}
//
//   d loss / d a_t = (1 - p_y) e^E [ h_t delta_t - e_t sum_tau h_tau delta_tau / S ] / S
//
// where the bracket is of the size of U, however small the factor before it. Equal tokens have delta = 0 exactly.
//
// The matrix U does not fit into a core's own cache, and each item reads a few of its rows. So the words are taken
// panel by panel, 64 columns of U that do fit, for thousands of items in a row; the sums over the words are relative
// to a pivot, which is raised when a panel has much larger terms than those before.
#include "next_token/prediction_kernels.hpp"

#include "base/vector_math_inline.hpp"

namespace attmirror::ATTMIRROR_ISA {

using namespace kernels;

namespace {

// While an item is worked on, the rows of one so much later are fetched into the nearest cache.
constexpr std::ptrdiff_t ahead = 2;

constexpr int panel_vectors = vocabulary_panel / lanes<Wide>;

// Calls f(V{}, j) for all numbers from `first` to `last` - 1: whole vectors, then one by one. (A lane's result does
// not depend on the width.)
template <class F>
[[gnu::always_inline]] inline void for_lanes(std::ptrdiff_t first, std::ptrdiff_t last, const F& f) {
  std::ptrdiff_t j = first;
  for (; j + lanes<Wide> <= last; j += lanes<Wide>) f(Wide{}, j);
  for (; j < last; ++j) f(double{}, j);
}

// log(1 + e^x) and log(1 / (1 + e^-x)), the loss and the logarithm of 1 - p_y for log-odds x.
template <class V>
struct Softplus {
  V loss, log_miss;
};
template <class V>
[[gnu::always_inline]] inline Softplus<V> softplus(V x) {
  const V zero = broadcast<V>(0.0);
  const V tail = log1p(exp(-abs(x)));
  // x second: the comparison with NaN must leave NaN.
  return {tail + max(zero, x), min(zero, x) - tail};
}

// ---- attention

void attend(const PredictionItems& items, const double* scores, std::ptrdiff_t first, std::ptrdiff_t last) {
  for (std::ptrdiff_t i = first; i < last; ++i) {
    const std::int64_t begin = items.begins[i], end = items.begins[i + 1];
    if (i >= items.sentences) {
      items.relative[begin] = 0;
      items.reference[i] = static_cast<std::int32_t>(begin);
      continue;
    }
    double top = -infinity;
    std::int64_t best = begin;
    for (std::int64_t j = begin; j < end; ++j) {
      const double a = scores[items.pairs[j]];
      items.relative[j] = a;
      if (a > top) {
        top = a;
        best = j;
      }
    }
    items.reference[i] = static_cast<std::int32_t>(best);
    for (std::int64_t j = begin; j < end; ++j) items.relative[j] -= top;
  }
  for_lanes(items.begins[first], items.begins[last], [&]<class V>(V, std::ptrdiff_t j) {
    store(items.attention + j, exp(load<V>(items.relative + j)));
  });
  for (std::ptrdiff_t i = first; i < last; ++i) {
    double sum = 0;
    for (std::int64_t j = items.begins[i]; j < items.begins[i + 1]; ++j) sum += items.attention[j];
    items.attention_sum[i] = sum;
    const double inverse = 1 / sum;
    for (std::int64_t j = items.begins[i]; j < items.begins[i + 1]; ++j) items.attention[j] *= inverse;
  }
}

// ---- the softmax over the vocabulary

// Asks for the rows of item i, to be read soon.
[[gnu::always_inline]] inline void fetch_rows(const PredictionItems& items, std::ptrdiff_t i,
                                              const double* panel, std::ptrdiff_t stride,
                                              std::ptrdiff_t cols) {
  for (std::int64_t t = items.begins[i]; t < items.begins[i + 1]; ++t) {
    const double* row = panel + items.tokens[t] * stride;
    for (std::ptrdiff_t j = 0; j < cols; j += 8) __builtin_prefetch(row + j);
  }
}

// o_v - o_y of the `count` vectors of a panel; -infinity for the label itself and beyond the last word.
[[gnu::always_inline]] inline void form_panel(const PredictionItems& items, std::ptrdiff_t i,
                                              const double* panel, std::ptrdiff_t stride,
                                              std::ptrdiff_t label, std::ptrdiff_t words, int count,
                                              Wide* o) {
  const std::int64_t begin = items.begins[i], end = items.begins[i + 1];
  {
    const double* row = panel + items.tokens[begin] * stride;
    const Wide s = broadcast<Wide>(items.attention[begin]);
    for (int j = 0; j < count; ++j) o[j] = s * load<Wide>(row + j * lanes<Wide>);
  }
  for (std::int64_t t = begin + 1; t < end; ++t) {
    const double* row = panel + items.tokens[t] * stride;
    const Wide s = broadcast<Wide>(items.attention[t]);
    for (int j = 0; j < count; ++j) o[j] = mul_add(s, load<Wide>(row + j * lanes<Wide>), o[j]);
  }
  const Wide label_logit = broadcast<Wide>(items.label_logit[i]);
  for (int j = 0; j < count; ++j) o[j] -= label_logit;
  const bool has_label = label >= 0 && label < count * lanes<Wide>;
  if (!has_label && words >= count * lanes<Wide>) return;
  alignas(64) double values[vocabulary_panel];
  for (int j = 0; j < count; ++j) store(values + j * lanes<Wide>, o[j]);
  if (has_label) values[label] = -infinity;
  for (std::ptrdiff_t v = words; v < count * lanes<Wide>; ++v) values[v] = -infinity;
  for (int j = 0; j < count; ++j) o[j] = load<Wide>(values + j * lanes<Wide>);
}

// Adds a panel to the sums of item i.
[[gnu::always_inline]] inline void add_panel(const PredictionItems& items, std::ptrdiff_t i,
                                             const double* panel, std::ptrdiff_t stride, std::ptrdiff_t label,
                                             std::ptrdiff_t words, int count) {
  const std::int64_t begin = items.begins[i], end = items.begins[i + 1];
  Wide o[panel_vectors];
  form_panel(items, i, panel, stride, label, words, count, o);
  Wide largest = broadcast<Wide>(-infinity);
  for (int j = 0; j < count; ++j) largest = max(o[j], largest);
  const double top = reduce_max(largest);
  items.top[i] = max(top, items.top[i]);
  if (!(top <= items.pivot[i] + 40)) {
    const double factor = exp(items.pivot[i] - top);
    items.sum[i] *= factor;
    for (std::int64_t t = begin; t < end; ++t) items.coefficient[t] *= factor;
    items.pivot[i] = top;
  }
  if (items.pivot[i] == -infinity) {  // nothing but the label so far, or no numbers at all
    for (int j = 0; j < count; ++j)
      if (!all(o[j] == o[j])) items.sum[i] = top - top;
    return;
  }
  const Wide pivot = broadcast<Wide>(items.pivot[i]);
  Wide sum{};
  for (int j = 0; j < count; ++j) {
    o[j] = exp_of_term(o[j] - pivot);
    sum += o[j];
  }
  items.sum[i] += reduce_add(sum);
  const std::int64_t reference = items.reference[i];
  const double* own = panel + items.tokens[reference] * stride;
  for (std::int64_t t = begin; t < end; ++t) {
    const double* row = panel + items.tokens[t] * stride;
    if (row == own) continue;
    Wide difference{};
    for (int j = 0; j < count; ++j)
      difference =
          mul_add(o[j], load<Wide>(row + j * lanes<Wide>) - load<Wide>(own + j * lanes<Wide>), difference);
    items.coefficient[t] += reduce_add(difference);
  }
}

double entry(const TokenLogits& U, std::int32_t token, std::int32_t word) {
  return U.data[word / vocabulary_panel * U.offset + token * U.stride + word % vocabulary_panel];
}

void predict(const PredictionItems& items, const TokenLogits& U, std::ptrdiff_t first, std::ptrdiff_t last) {
  for (std::ptrdiff_t i = first; i < last; ++i) {
    const std::int64_t begin = items.begins[i], end = items.begins[i + 1];
    // In the order of form_panel(), so that a word with equal logits has a difference of 0.
    double logit = items.attention[begin] * entry(U, items.tokens[begin], items.labels[i]);
    for (std::int64_t t = begin + 1; t < end; ++t)
      logit = mul_add(items.attention[t], entry(U, items.tokens[t], items.labels[i]), logit);
    items.label_logit[i] = logit;
    items.pivot[i] = items.top[i] = -infinity;
    items.sum[i] = logit - logit;  // 0; NaN when the logit is not finite
    for (std::int64_t t = begin; t < end; ++t) items.coefficient[t] = 0;
  }
  for (std::ptrdiff_t v = 0; v < U.words; v += vocabulary_panel) {
    const double* panel = U.data + v / vocabulary_panel * U.offset;
    const std::ptrdiff_t words = U.words - v;
    if (words >= vocabulary_panel) {
      for (std::ptrdiff_t i = first; i < last; ++i) {
        if (i + ahead < last) fetch_rows(items, i + ahead, panel, U.stride, vocabulary_panel);
        add_panel(items, i, panel, U.stride, items.labels[i] - v, words, panel_vectors);
      }
    } else {
      const int count = static_cast<int>((words + lanes<Wide> - 1) / lanes<Wide>);
      for (std::ptrdiff_t i = first; i < last; ++i)
        add_panel(items, i, panel, U.stride, items.labels[i] - v, words, count);
    }
  }
}

// ---- losses and the coefficients of the attention

void finish(const PredictionItems& items, const TokenLogits& U, std::ptrdiff_t first, std::ptrdiff_t last) {
  for_lanes(first, last, [&]<class V>(V, std::ptrdiff_t i) {
    const Softplus<V> value = softplus(load<V>(items.pivot + i) + log(load<V>(items.sum + i)));
    store(items.loss + i, value.loss);
    store(items.log_miss + i, value.log_miss);
  });
  const std::ptrdiff_t sentences = last < items.sentences ? last : items.sentences;
  if (first >= sentences) return;

  // delta_t, and a_t - max a - E in place of a_t - max a.
  for (std::ptrdiff_t i = first; i < sentences; ++i) {
    const std::int64_t begin = items.begins[i], end = items.begins[i + 1];
    const std::int32_t reference = items.tokens[items.reference[i]], label = items.labels[i];
    const double own = entry(U, reference, label), inverse = 1 / items.sum[i];
    double gap = -infinity;
    for (std::int64_t t = begin; t < end; ++t) {
      double delta = 0;
      if (items.tokens[t] != reference)
        delta = items.coefficient[t] * inverse - (entry(U, items.tokens[t], label) - own);
      items.coefficient[t] = delta;
      if (delta != 0 && !(items.relative[t] <= gap)) gap = items.relative[t];
    }
    items.attention_exponent[i] = items.log_miss[i] + gap + items.log_weights[i];
    const double shift = gap == -infinity ? 0.0 : gap;
    for (std::int64_t t = begin; t < end; ++t) {
      const double above = items.relative[t] - shift;
      items.relative[t] = above > 0 ? 0.0 : above;
    }
  }
  for_lanes(items.begins[first], items.begins[sentences], [&]<class V>(V, std::ptrdiff_t j) {
    store(items.coefficient + j, load<V>(items.coefficient + j) * exp(load<V>(items.relative + j)));
  });
  for (std::ptrdiff_t i = first; i < sentences; ++i) {
    const std::int64_t begin = items.begins[i], end = items.begins[i + 1];
    double sum = 0;
    for (std::int64_t t = begin; t < end; ++t) sum += items.coefficient[t];
    const double inverse = 1 / items.attention_sum[i];
    sum *= inverse;
    for (std::int64_t t = begin; t < end; ++t)
      items.coefficient[t] = negative_mul_add(items.attention[t], sum, items.coefficient[t] * inverse);
  }
}

void form_factors(const double* exponents, double scale, double* factors, std::ptrdiff_t first,
                  std::ptrdiff_t last) {
  for_lanes(first, last, [&]<class V>(V, std::ptrdiff_t i) {
    store(factors + i, exp(load<V>(exponents + i) - broadcast<V>(scale)));
  });
}

// ---- the gradient of W_ov

[[gnu::always_inline]] inline void add_outer_panel(const PredictionItems& items, std::ptrdiff_t i,
                                                   const TokenLogits& U, const double* panel, double factor,
                                                   std::ptrdiff_t label, std::ptrdiff_t words, int count,
                                                   double* A) {
  Wide r[panel_vectors];
  form_panel(items, i, panel, U.stride, label, words, count, r);
  const Wide pivot = broadcast<Wide>(items.pivot[i]), scale = broadcast<Wide>(factor / items.sum[i]);
  for (int j = 0; j < count; ++j) r[j] = exp_of_term(r[j] - pivot) * scale;
  const bool has_label = label >= 0 && label < count * lanes<Wide>;
  for (std::int64_t t = items.begins[i]; t < items.begins[i + 1]; ++t) {
    double* row = A + items.tokens[t] * U.stride;
    const Wide s = broadcast<Wide>(items.attention[t]);
    for (int j = 0; j < count; ++j)
      store(row + j * lanes<Wide>, mul_add(s, r[j], load<Wide>(row + j * lanes<Wide>)));
    if (has_label) row[label] -= items.attention[t] * factor;
  }
}

void add_outer(const PredictionItems& items, const TokenLogits& U, const double* factors,
               std::ptrdiff_t count, std::ptrdiff_t panel, double* A) {
  // Half a panel at a time: there are two matrices in the cache.
  constexpr std::ptrdiff_t half = vocabulary_panel / 2;
  for (std::ptrdiff_t begin = 0; begin < vocabulary_panel; begin += half) {
    const double* values = U.data + panel * U.offset + begin;
    double* sums = A + begin;
    const std::ptrdiff_t v = panel * vocabulary_panel + begin, words = U.words - v;
    if (words <= 0) return;
    for (std::ptrdiff_t i = 0; i < count; ++i) {
      if (factors[i] == 0) continue;
      if (words >= half) {
        if (i + ahead < count) {
          fetch_rows(items, i + ahead, values, U.stride, half);
          fetch_rows(items, i + ahead, sums, U.stride, half);
        }
        add_outer_panel(items, i, U, values, factors[i], items.labels[i] - v, words, half / lanes<Wide>,
                        sums);
      } else {
        add_outer_panel(items, i, U, values, factors[i], items.labels[i] - v, words,
                        static_cast<int>((words + lanes<Wide> - 1) / lanes<Wide>), sums);
      }
    }
  }
}

// ---- pairs of a query and a token

[[gnu::always_inline]] inline void score_query(const PairScores& pairs, std::ptrdiff_t q, int count) {
  const double* direction = pairs.direction_panel + q * pairs.stride;
  Wide own[panel_vectors];
  for (int j = 0; j < count; ++j) own[j] = load<Wide>(direction + j * lanes<Wide>);
  for (std::int64_t p = pairs.begins[q]; p < pairs.begins[q + 1]; ++p) {
    const double* row = pairs.panel + pairs.tokens[p] * pairs.stride;
    Wide even{}, odd{};
    int j = 0;
    for (; j + 2 <= count; j += 2) {
      even = mul_add(own[j], load<Wide>(row + j * lanes<Wide>), even);
      odd = mul_add(own[j + 1], load<Wide>(row + (j + 1) * lanes<Wide>), odd);
    }
    if (j < count) even = mul_add(own[j], load<Wide>(row + j * lanes<Wide>), even);
    const double sum = reduce_add(even + odd);
    pairs.scores[p] = pairs.starts ? sum : pairs.scores[p] + sum;
  }
}

void score_pairs(const PairScores& pairs, std::ptrdiff_t first_query, std::ptrdiff_t last_query) {
  if (pairs.width >= vocabulary_panel)
    for (std::ptrdiff_t q = first_query; q < last_query; ++q) score_query(pairs, q, panel_vectors);
  else
    for (std::ptrdiff_t q = first_query; q < last_query; ++q)
      score_query(pairs, q, static_cast<int>((pairs.width + lanes<Wide> - 1) / lanes<Wide>));
}

[[gnu::always_inline]] inline void sum_direction(const DirectionSums& sums, std::ptrdiff_t q, int count) {
  Wide sum[panel_vectors];
  for (int j = 0; j < count; ++j) sum[j] = Wide{};
  for (std::int64_t p = sums.begins[q]; p < sums.begins[q + 1]; ++p) {
    const double* row = sums.panel + sums.tokens[p] * sums.panel_stride;
    const Wide c = broadcast<Wide>(sums.coefficients[p]);
    for (int j = 0; j < count; ++j) sum[j] = mul_add(c, load<Wide>(row + j * lanes<Wide>), sum[j]);
  }
  double* to = sums.sums + q * sums.sums_stride;
  if (count == panel_vectors && sums.width >= vocabulary_panel) {
    for (int j = 0; j < count; ++j) store(to + j * lanes<Wide>, sum[j]);
    return;
  }
  alignas(64) double values[vocabulary_panel];
  for (int j = 0; j < count; ++j) store(values + j * lanes<Wide>, sum[j]);
  for (std::ptrdiff_t v = 0; v < sums.width; ++v) to[v] = values[v];
}

void sum_directions(const DirectionSums& sums, std::ptrdiff_t first_query, std::ptrdiff_t last_query) {
  if (sums.width >= vocabulary_panel)
    for (std::ptrdiff_t q = first_query; q < last_query; ++q) sum_direction(sums, q, panel_vectors);
  else
    for (std::ptrdiff_t q = first_query; q < last_query; ++q)
      sum_direction(sums, q, static_cast<int>((sums.width + lanes<Wide> - 1) / lanes<Wide>));
}

}  // namespace

const PredictionTable prediction_table{attend,    predict,     finish,        form_factors,
                                       add_outer, score_pairs, sum_directions};

}  // namespace attmirror::ATTMIRROR_ISA
