// Next-token prediction for many sentences over a large vocabulary.
//
// What sentences share is computed once: the logits U = E W_ov^T of all tokens (kept while W_ov is frozen), the
// directions W_kq x_q of all queries, both as one matrix product, and the score of a token under a query however many
// sentences have it. Gradients go the same way back: each sentence adds to sums of its tokens and pairs, and one
// product makes the gradient of them. With one-hot embeddings there are no products: tokens pick rows and entries of
// the weights.
//
//   grad W_ov^T = E^T A,   A[x] = sum over occurrences of x of pi s_t r^T
//   grad W_kq^T = Q^T G,   Q = rows x_q,   G[q] = sum over tokens x of C[q, x] E[x],   C[q, x] = sum of pi d loss / d
//                                                                                      a_t
//
// Every sum has one owner and a fixed order: A by columns, C and G by queries. So there is nothing to merge between
// threads, and their number leaves no trace. Sizes of sentences as logarithms: prediction_kernels.cpp.
#include "next_token/fast_engine.hpp"

#include "base/dispatch.hpp"
#include "base/numbers.hpp"

#include <algorithm>
#include <utility>

namespace attmirror {

namespace {

static_assert(kernels::vocabulary_panel == PanelMatrix::panel_width);

const kernels::PredictionTable& prediction_kernels() {
  return choose_kernels<isa_sse2::prediction_table, isa_avx2::prediction_table,
                        isa_avx512::prediction_table>();
}

// The larger one; NaN when one is.
double larger(double a, double b) { return std::isnan(a) || a > b ? a : b; }

kernels::TokenLogits logits_of(const PanelMatrix& U) {
  const Panels<const double> view = U.view();
  return {view.data, view.stride, view.offset, view.cols};
}

void fill(MatrixView m, double value) {
  for (std::ptrdiff_t r = 0; r < m.rows; ++r) std::fill_n(m.data + r * m.stride, m.cols, value);
}

}  // namespace

FastEngine::FastEngine(const NextTokenModel& model, ThreadPool& pool)
    : model_(model), pool_(pool), kernel_(prediction_kernels()), layout_(model), product_(pool) {
  const std::ptrdiff_t V = model.vocabulary_size(), d = model.dim();
  set_up_items();
  if (attends()) set_up_attention();
  if (model.readout() == Readout::softmax) {
    U_ = PanelMatrix(V, V);
    if (trains_output()) output_sums_ = PanelMatrix(V, V);
  } else {
    max_slots_ = std::ranges::max(layout_.slot_counts);
    slots_.resize(static_cast<std::size_t>(max_slots_ * item_chunks_.count));
  }
  if (!model.embedding().is_one_hot()) product_.reserve(std::max(V, d), std::max(V, d));
}

void FastEngine::set_up_items() {
  const std::ptrdiff_t positions = layout_.positions(), items = layout_.items;
  // A chunk goes through all of U: few chunks, with many items each, once they are worth a thread at all.
  item_chunks_ = fixed_chunks(items, std::max<std::ptrdiff_t>(1, 30'000 / model_.vocabulary_size()), 32);
  partials_.resize(static_cast<std::size_t>(item_chunks_.count));
  memory_.assign(static_cast<std::size_t>(3 * positions + 8 * items), 0.0);
  references_.assign(static_cast<std::size_t>(items), 0);
  double* next = memory_.data();
  const auto take = [&](std::ptrdiff_t size) { return std::exchange(next, next + size); };
  items_.begins = layout_.begins.data();
  items_.tokens = layout_.tokens.data();
  items_.pairs = layout_.pairs.data();
  items_.labels = layout_.labels.data();
  items_.log_weights = layout_.log_weights.data();
  items_.sentences = layout_.sentences;
  items_.reference = references_.data();
  for (double** array : {&items_.relative, &items_.attention, &items_.coefficient}) *array = take(positions);
  for (double** array : {&items_.attention_sum, &items_.label_logit, &items_.pivot, &items_.top, &items_.sum,
                         &items_.loss, &items_.log_miss, &items_.attention_exponent})
    *array = take(items);
  factors_.assign(static_cast<std::size_t>(items), 0.0);
  if (trains_output()) output_exponents_.assign(static_cast<std::size_t>(items), 0.0);
}

void FastEngine::set_up_attention() {
  const std::ptrdiff_t V = model_.vocabulary_size(), d = model_.dim();
  const auto queries = static_cast<std::ptrdiff_t>(layout_.queries.size());
  const std::ptrdiff_t pairs = layout_.pair_count();
  query_chunks_ =
      fixed_chunks(queries, std::max<std::ptrdiff_t>(1, 4096 * queries / layout_.positions()), 32);
  scores_.assign(static_cast<std::size_t>(pairs), 0.0);
  pair_sums_.assign(static_cast<std::size_t>(pairs), 0.0);
  if (model_.embedding().is_one_hot()) return;

  directions_ = PanelMatrix(queries, d);
  direction_sums_ = PaddedMatrix(queries, d);
  const ConstMatrixView E = model_.embedding().vectors.view();
  if (queries < V) {
    queries_ = PaddedMatrix(queries, d);
    for (std::ptrdiff_t q = 0; q < queries; ++q)
      queries_.view().eigen().row(q) = E.eigen().row(layout_.queries[static_cast<std::size_t>(q)]);
  }
  embedding_ = PanelMatrix(V, d);
  copy(E, embedding_.view(), pool_);
}

ConstMatrixView FastEngine::query_vectors() const {
  return queries_.view().rows > 0 ? queries_.view() : model_.embedding().vectors.view();
}

void FastEngine::form_token_logits(ConstMatrixView W_ov) {
  if (knows_logits_ && !trains_output()) return;
  if (model_.embedding().is_one_hot())
    copy(W_ov, U_.view(), pool_);
  else
    product_.multiply(model_.embedding().vectors.view(), one_panel(W_ov), U_.view());
  knows_logits_ = true;
}

void FastEngine::form_scores(ConstMatrixView W_kq) {
  if (model_.embedding().is_one_hot()) {
    pool_.run(query_chunks_.count, [&](std::ptrdiff_t c) {
      const auto begin = static_cast<std::size_t>(
                     layout_.query_pairs[static_cast<std::size_t>(query_chunks_.begin(c))]),
                 end = static_cast<std::size_t>(
                     layout_.query_pairs[static_cast<std::size_t>(query_chunks_.end(c))]);
      for (std::size_t pair = begin; pair < end; ++pair)
        scores_[pair] =
            W_kq.data[layout_.queries[static_cast<std::size_t>(layout_.pair_queries[pair])] * W_kq.stride +
                      layout_.pair_tokens[pair]];
    });
    return;
  }
  product_.multiply(query_vectors(), one_panel(W_kq), directions_.view());
  const Panels<const double> E = std::as_const(embedding_).view(), K = std::as_const(directions_).view();
  for (std::ptrdiff_t p = 0; p < E.count(); ++p) {
    const kernels::PairScores pairs{.begins = layout_.query_pairs.data(),
                                    .tokens = layout_.pair_tokens.data(),
                                    .panel = E.panel(p),
                                    .direction_panel = K.panel(p),
                                    .stride = E.stride,
                                    .width = std::min(E.width, E.cols - p * E.width),
                                    .starts = p == 0,
                                    .scores = scores_.data()};
    pool_.run(query_chunks_.count, [&](std::ptrdiff_t c) {
      kernel_.score_pairs(pairs, query_chunks_.begin(c), query_chunks_.end(c));
    });
  }
}

FastEngine::Partial FastEngine::evaluate_chunk(std::ptrdiff_t c) {
  const std::ptrdiff_t first = item_chunks_.begin(c), last = item_chunks_.end(c);
  kernel_.attend(items_, scores_.data(), first, last);
  if (model_.readout() == Readout::softmax) {
    const kernels::TokenLogits U = logits_of(U_);
    kernel_.predict(items_, U, first, last);
    kernel_.finish(items_, U, first, last);
  } else {
    read_attention(c);
  }
  Partial sum{.attention_exponent = -infinity, .output_exponent = -infinity};
  for (std::ptrdiff_t i = first; i < last; ++i) {
    const double weight = layout_.weights[static_cast<std::size_t>(i)];
    const bool sentence = i < layout_.sentences;
    sum.loss += weight * items_.loss[i];
    if (sentence || !attends()) {
      sum.counted += weight;
      sum.right += items_.top[i] < 0 ? weight : 0.0;
      sum.max_softmax += weight / items_.attention_sum[i];
    }
    if (sentence) sum.attention_exponent = larger(sum.attention_exponent, items_.attention_exponent[i]);
    if (trains_output()) {
      const double exponent = items_.log_miss[i] + items_.log_weights[i];
      output_exponents_[static_cast<std::size_t>(i)] = exponent;
      sum.output_exponent = larger(sum.output_exponent, exponent);
    }
  }
  return sum;
}

NextTokenEvaluation FastEngine::evaluate(const ParameterBlocks& parameters, Gradient* gradient) {
  if (model_.readout() == Readout::softmax)
    form_token_logits(parameters.view(parameters.find(NextTokenBlock::W_ov)));
  if (attends()) form_scores(parameters.view(parameters.find(NextTokenBlock::W_kq)));
  pool_.run(item_chunks_.count,
            [&](std::ptrdiff_t c) { partials_[static_cast<std::size_t>(c)] = evaluate_chunk(c); });
  Partial total{.attention_exponent = -infinity, .output_exponent = -infinity};
  for (const Partial& partial : partials_) {
    total.loss += partial.loss;
    total.right += partial.right;
    total.max_softmax += partial.max_softmax;
    total.counted += partial.counted;
    total.attention_exponent = larger(total.attention_exponent, partial.attention_exponent);
    total.output_exponent = larger(total.output_exponent, partial.output_exponent);
  }
  if (gradient != nullptr)
    for (std::ptrdiff_t b = 0; b < gradient->blocks.count(); ++b) {
      const bool output = gradient->blocks.shape(b).name == NextTokenBlock::W_ov;
      const double scale = output ? total.output_exponent : total.attention_exponent;
      const MatrixView into = gradient->blocks.view(b);
      const bool zero = scale == -infinity;  // a gradient of exactly zero has any scale
      gradient->log_scale[static_cast<std::size_t>(b)] = zero ? 0.0 : scale;
      if (zero)
        fill(into, 0.0);
      else if (output)
        form_output_gradient(into, scale);
      else
        form_attention_gradient(into, scale);
    }
  return {total.loss, total.right / total.counted, total.max_softmax / total.counted};
}

void FastEngine::form_output_gradient(MatrixView into, double scale) {
  const kernels::TokenLogits U = logits_of(U_);
  const Panels<double> A = output_sums_.view();
  pool_.run(item_chunks_.count, [&](std::ptrdiff_t c) {
    kernel_.form_factors(output_exponents_.data(), scale, factors_.data(), item_chunks_.begin(c),
                         item_chunks_.end(c));
  });
  pool_.run(A.count(), [&](std::ptrdiff_t p) {
    std::fill_n(A.panel(p), A.rows * A.stride, 0.0);
    kernel_.add_outer(items_, U, factors_.data(), layout_.items, p, A.panel(p));
  });
  if (model_.embedding().is_one_hot())
    copy(A, into, pool_);
  else
    product_.multiply_transposed(model_.embedding().vectors.view(), A, one_panel(into));
}

// C[q, x] of some queries.
void FastEngine::sum_pairs(std::ptrdiff_t first_query, std::ptrdiff_t last_query, double scale) {
  const auto q = static_cast<std::size_t>(first_query), end = static_cast<std::size_t>(last_query);
  std::fill(pair_sums_.begin() + layout_.query_pairs[q], pair_sums_.begin() + layout_.query_pairs[end], 0.0);
  kernel_.form_factors(items_.attention_exponent, scale, factors_.data(), layout_.query_items[q],
                       layout_.query_items[end]);
  for (std::int64_t i = layout_.query_items[q]; i < layout_.query_items[end]; ++i)
    for (std::int64_t t = items_.begins[i]; t < items_.begins[i + 1]; ++t)
      pair_sums_[static_cast<std::size_t>(items_.pairs[t])] +=
          factors_[static_cast<std::size_t>(i)] * items_.coefficient[t];
}

void FastEngine::form_attention_gradient(MatrixView into, double scale) {
  const bool one_hot = model_.embedding().is_one_hot();
  const auto query = [&](std::ptrdiff_t q) { return layout_.queries[static_cast<std::size_t>(q)]; };
  pool_.run(query_chunks_.count, [&](std::ptrdiff_t c) {
    const std::ptrdiff_t first = query_chunks_.begin(c), last = query_chunks_.end(c);
    sum_pairs(first, last, scale);
    if (!one_hot) return;
    // The rows up to the first query of the next chunk.
    const std::ptrdiff_t begin = c == 0 ? 0 : query(first),
                         end = c + 1 == query_chunks_.count ? into.rows : query(last);
    std::fill_n(into.data + begin * into.stride, (end - begin) * into.stride, 0.0);
    for (std::int64_t p = layout_.query_pairs[static_cast<std::size_t>(first)];
         p < layout_.query_pairs[static_cast<std::size_t>(last)]; ++p) {
      const auto pair = static_cast<std::size_t>(p);
      into.data[query(layout_.pair_queries[pair]) * into.stride + layout_.pair_tokens[pair]] =
          pair_sums_[pair];
    }
  });
  if (one_hot) return;
  const Panels<const double> E = std::as_const(embedding_).view();
  const MatrixView G = direction_sums_.view();
  pool_.run(E.count() * query_chunks_.count, [&](std::ptrdiff_t task) {
    const std::ptrdiff_t p = task / query_chunks_.count, c = task % query_chunks_.count;
    const kernels::DirectionSums sums{.begins = layout_.query_pairs.data(),
                                      .tokens = layout_.pair_tokens.data(),
                                      .coefficients = pair_sums_.data(),
                                      .panel = E.panel(p),
                                      .panel_stride = E.stride,
                                      .width = std::min(E.width, E.cols - p * E.width),
                                      .sums = G.data + p * E.width,
                                      .sums_stride = G.stride};
    kernel_.sum_directions(sums, query_chunks_.begin(c), query_chunks_.end(c));
  });
  product_.multiply_transposed(query_vectors(), one_panel(ConstMatrixView(G)), one_panel(into));
}

// Without W_ov (Li et al. 2024) the attention on tokens that y follows is the probability of y. With log-odds
// x = log(attention elsewhere) - log(attention there), the loss is log(1 + e^x), and
//
//   d loss / d a_t = (1 - p_y) times the share of t in the attention elsewhere, or minus its share in that there.
void FastEngine::read_attention(std::ptrdiff_t c) {
  double* slots = slots_.data() + c * max_slots_;
  for (std::ptrdiff_t i = item_chunks_.begin(c); i < item_chunks_.end(c); ++i) {
    const std::int64_t begin = items_.begins[i], end = items_.begins[i + 1];
    double top[2] = {-infinity, -infinity}, sum[2] = {0, 0};
    const auto follows = [&](std::int64_t t) { return layout_.followed[static_cast<std::size_t>(t)]; };
    for (std::int64_t t = begin; t < end; ++t)
      top[follows(t)] = std::max(top[follows(t)], items_.relative[t]);
    for (std::int64_t t = begin; t < end; ++t) {
      items_.coefficient[t] = std::exp(items_.relative[t] - top[follows(t)]);
      sum[follows(t)] += items_.coefficient[t];
    }
    for (std::int64_t t = begin; t < end; ++t)
      items_.coefficient[t] *= follows(t) != 0 ? -1 / sum[1] : 1 / sum[0];
    const double elsewhere = sum[0] == 0 ? -infinity : top[0] + std::log(sum[0]);
    const double odds = elsewhere - (top[1] + std::log(sum[1]));
    const double tail = std::log1p(std::exp(-std::abs(odds)));
    items_.loss[i] = odds > 0 ? odds + tail : tail;
    items_.log_miss[i] = odds > 0 ? -tail : odds - tail;
    items_.attention_exponent[i] = items_.log_miss[i] + items_.log_weights[i];

    const auto item = static_cast<std::size_t>(i);
    std::fill_n(slots, layout_.slot_counts[item], 0.0);
    for (auto v = static_cast<std::size_t>(layout_.vote_begins[item]);
         v < static_cast<std::size_t>(layout_.vote_begins[item + 1]); ++v)
      slots[layout_.vote_slots[v]] += items_.attention[layout_.vote_positions[v]];
    // As in predict(): the largest lead of another token.
    items_.top[i] = -infinity;
    for (std::int32_t s = 1; s < layout_.slot_counts[item]; ++s)
      items_.top[i] = std::max(items_.top[i], slots[s] - slots[0]);
  }
}

std::unique_ptr<NextTokenPathEngine> make_fast_engine(const NextTokenModel& model, ThreadPool& pool) {
  return std::make_unique<FastEngine>(model, pool);
}

}  // namespace attmirror
