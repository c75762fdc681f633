// The hot loops of next-token prediction, compiled once per instruction set: attention, the softmax over the
// vocabulary, and what the gradients are made of. prediction_kernels.cpp has the formulas.
#pragma once

#include <cstddef>
#include <cstdint>

namespace attmirror {

namespace kernels {

// Columns of a matrix of the vocabulary that lie side by side (PanelMatrix).
inline constexpr std::ptrdiff_t vocabulary_panel = 64;

// Items and what is known of them. An item has the positions begins[i] to begins[i + 1] - 1; arrays of positions and
// of items have one number for each.
struct PredictionItems {
  const std::int64_t* begins = nullptr;
  const std::int32_t *tokens = nullptr, *pairs = nullptr, *labels = nullptr;
  const double* log_weights = nullptr;
  std::ptrdiff_t sentences = 0;  // items beyond are collocations: one token, attended to

  // Positions.
  double* relative = nullptr;     // a_t - max a
  double* attention = nullptr;    // s_t
  double* coefficient = nullptr;  // d loss / d a_t, divided by e^attention_exponent

  // Items.
  std::int32_t* reference = nullptr;  // the position of the largest logit
  double* attention_sum = nullptr;    // sum of e^{a_t - max a}
  double* label_logit = nullptr;      // o_y
  double* pivot = nullptr;            // sums of e^{o_v - o_y} are divided by e to this
  double* top = nullptr;              // max over v != y of o_v - o_y
  double* sum = nullptr;              // of e^{o_v - o_y - pivot} over v != y
  double* loss = nullptr;
  double* log_miss = nullptr;            // log(1 - p_y)
  double* attention_exponent = nullptr;  // log of the common factor of the coefficients, weight included
};

// The logits U of all tokens: token x and word v at panel v / 64 (`offset` apart), row x (`stride` apart).
struct TokenLogits {
  const double* data = nullptr;
  std::ptrdiff_t stride = 0, offset = 0, words = 0;
};

// x^T u of pairs (query, token), u being the query's direction: the terms of one panel of columns.
struct PairScores {
  const std::int64_t* begins = nullptr;  // of the queries' pairs
  const std::int32_t* tokens = nullptr;
  const double *panel = nullptr, *direction_panel = nullptr;  // rows x, and rows u of the queries
  std::ptrdiff_t stride = 0, width = 0;
  bool starts = false;  // the first panel
  double* scores = nullptr;
};

// g_q = sum over the pairs of query q of c E[x], for the columns of one panel of E.
struct DirectionSums {
  const std::int64_t* begins = nullptr;  // of the queries' pairs
  const std::int32_t* tokens = nullptr;
  const double* coefficients = nullptr;
  const double* panel = nullptr;  // of E
  std::ptrdiff_t panel_stride = 0, width = 0;
  double* sums = nullptr;  // of the first query and the panel's first column
  std::ptrdiff_t sums_stride = 0;
};

struct PredictionTable {
  // For the items first to last - 1:
  void (*attend)(const PredictionItems& items, const double* scores, std::ptrdiff_t first,
                 std::ptrdiff_t last);
  void (*predict)(const PredictionItems& items, const TokenLogits& U, std::ptrdiff_t first,
                  std::ptrdiff_t last);
  void (*finish)(const PredictionItems& items, const TokenLogits& U, std::ptrdiff_t first,
                 std::ptrdiff_t last);
  // factors[i] = e^{exponents[i] - scale}
  void (*form_factors)(const double* exponents, double scale, double* factors, std::ptrdiff_t first,
                       std::ptrdiff_t last);
  // Adds factors[i] (1 - p_y)^-1 s_t r of all `count` items to row x_t of A, for the columns of one panel.
  void (*add_outer)(const PredictionItems& items, const TokenLogits& U, const double* factors,
                    std::ptrdiff_t count, std::ptrdiff_t panel, double* A);
  void (*score_pairs)(const PairScores& pairs, std::ptrdiff_t first_query, std::ptrdiff_t last_query);
  void (*sum_directions)(const DirectionSums& sums, std::ptrdiff_t first_query, std::ptrdiff_t last_query);
};

}  // namespace kernels

namespace isa_sse2 {
extern const kernels::PredictionTable prediction_table;
}
namespace isa_avx2 {
extern const kernels::PredictionTable prediction_table;
}
namespace isa_avx512 {
extern const kernels::PredictionTable prediction_table;
}

}  // namespace attmirror
