// Small data of next-token prediction for the tests of its targets.
#pragma once

#include <attmirror/next_token/embedding.hpp>
#include <attmirror/next_token/partial_order.hpp>
#include <attmirror/next_token/realizable.hpp>

#include <utility>
#include <vector>

namespace attmirror::test {

using Tokens = std::vector<Token>;

struct LabelledSentence {
  Tokens tokens;
  Token label = 0;
  double weight = 1;
};

inline Sentences sentences_of(std::ptrdiff_t size, const std::vector<LabelledSentence>& rows) {
  Sentences sentences(size);
  for (const LabelledSentence& row : rows) sentences.add(row.tokens, row.label, row.weight);
  return sentences;
}

// Orders where n(x) = x: the label is the optimal token.
inline PartialOrders copy_orders(std::ptrdiff_t size, const std::vector<LabelledSentence>& rows) {
  return PartialOrders(sentences_of(size, rows), Collocations::identity(size));
}

inline Embedding embedding_of(std::ptrdiff_t size, EmbeddingKind kind, std::ptrdiff_t dim = 0,
                              std::uint64_t seed = 5) {
  return make_embedding(size, {.kind = kind, .dim = dim, .seed = seed});
}

inline RealizableData realizable(std::ptrdiff_t size, std::ptrdiff_t sentences, OrderKind order,
                                 std::uint64_t seed = 1) {
  RealizableOptions options;
  options.vocabulary = size;
  options.sentences = sentences;
  options.order = order;
  options.seed = seed;
  return make_realizable(options);
}

}  // namespace attmirror::test
