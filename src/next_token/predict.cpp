// What a trained model says to sentences, seen or not: token logits and query directions are formed once for all of
// them, as two matrix products, and each sentence then sums a few rows.
#include "base/matrix_product.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/next_token/model.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

namespace attmirror {

namespace {

// E W^T, or W^T itself for one-hot embeddings; as padded rows.
PaddedMatrix product(const Embedding& embedding, const Matrix& W, ThreadPool& pool) {
  PaddedMatrix transposed(Matrix(W.transpose()));
  if (embedding.is_one_hot()) return transposed;
  PaddedMatrix result(embedding.vocabulary_size(), W.rows());
  MatrixProduct(pool).multiply(embedding.vectors.view(), one_panel(ConstMatrixView(transposed.view())),
                               one_panel(result.view()));
  return result;
}

Matrix checked_block(const Parameters& parameters, const Block& name, std::ptrdiff_t rows,
                     std::ptrdiff_t cols) {
  const Matrix W = visit_block(parameters, name, [](const auto& values) { return Matrix(values); });
  if (W.rows() != rows || W.cols() != cols)
    throw bad_input(fmt::format("{} has shape ({}, {}): expected ({}, {})", to_string(name), W.rows(),
                                W.cols(), rows, cols));
  return W;
}

}  // namespace

std::vector<Token> predict(const Sentences& sentences, const Embedding& embedding,
                           const Parameters& parameters, int threads) {
  const std::ptrdiff_t V = embedding.vocabulary_size(), d = embedding.dim();
  if (sentences.vocabulary_size() != V)
    throw bad_input(
        fmt::format("the sentences have a vocabulary of {} tokens: expected {}, as the embedding has",
                    sentences.vocabulary_size(), V));
  const Matrix W_ov = checked_block(parameters, NextTokenBlock::W_ov, V, d),
               W_kq = checked_block(parameters, NextTokenBlock::W_kq, d, d);
  std::vector<Token> result(static_cast<std::size_t>(sentences.count()), no_token);
  if (result.empty()) return result;

  ThreadPool pool(threads);
  const PaddedMatrix token_logits = product(embedding, W_ov, pool),
                     directions = product(embedding, W_kq, pool);
  const ConstMatrixView U = token_logits.view(), K = directions.view(), E = embedding.vectors.view();
  const std::ptrdiff_t grain = std::max<std::ptrdiff_t>(1, 20'000 / V);
  const Chunking parts = fixed_chunks(sentences.count(), grain, 64);
  pool.run(parts.count, [&](std::ptrdiff_t c) {
    std::vector<double> attention(static_cast<std::size_t>(sentences.max_length()));
    std::vector<double> logits(static_cast<std::size_t>(V));
    for (std::ptrdiff_t i = parts.begin(c); i < parts.end(c); ++i) {
      const auto tokens = sentences.tokens(i);
      const auto direction = K.eigen().row(sentences.query(i));
      double top = -std::numeric_limits<double>::infinity();
      for (std::size_t t = 0; t < tokens.size(); ++t) {
        attention[t] =
            embedding.is_one_hot() ? direction[tokens[t]] : E.eigen().row(tokens[t]).dot(direction);
        top = std::max(top, attention[t]);
      }
      std::ranges::fill(logits, 0.0);  // the sum's size does not matter to the largest
      for (std::size_t t = 0; t < tokens.size(); ++t) {
        const double weight = std::exp(attention[t] - top);
        const double* row = U.data + tokens[t] * U.stride;
        for (std::size_t v = 0; v < logits.size(); ++v) logits[v] += weight * row[v];
      }
      result[static_cast<std::size_t>(i)] =
          static_cast<Token>(std::ranges::max_element(logits) - logits.begin());
    }
  });
  return result;
}

double accuracy(const Sentences& sentences, const Embedding& embedding, const Parameters& parameters,
                int threads) {
  if (sentences.empty()) throw bad_input("there are no sentences: expected at least one to predict");
  const std::vector<Token> predicted = predict(sentences, embedding, parameters, threads);
  double right = 0;
  for (std::ptrdiff_t i = 0; i < sentences.count(); ++i)
    if (predicted[static_cast<std::size_t>(i)] == sentences.label(i)) right += sentences.weight(i);
  return right / sentences.total_weight();
}

}  // namespace attmirror
