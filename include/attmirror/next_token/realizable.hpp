// Random realizable data for P4's experiment.
//
// n is a random permutation of V (or any random map). For each query q a random ranking of V, from which
//
//   three classes      the first `optimal` tokens are optimal, the next `non_optimal` are not, the rest is never used with q;
//                      a sentence is one optimal token, non-optimal ones, and q last (a q that is optimal is THE optimal one)
//   linear extension   L - 1 random tokens and q; the best-ranked of them is the optimal one
//
// and the label is the successor of the best token. Every random number has its address (seed, sentence, position): the
// data do not depend on threads or on what was generated before.
#pragma once

#include <attmirror/next_token/partial_order.hpp>

#include <cstdint>
#include <string_view>
#include <vector>

namespace attmirror {

enum class OrderKind { three_class, linear };
std::string_view to_string(OrderKind kind);
OrderKind parse_order_kind(std::string_view name);  // three-class, linear; throws Error (bad input)

enum class SuccessorKind { permutation, map };

struct RealizableOptions {
  std::ptrdiff_t vocabulary = 20;
  std::ptrdiff_t sentences = 100;                 // in all; dealt to the queries in turn
  std::ptrdiff_t min_length = 4, max_length = 6;  // tokens of a sentence, the query included
  OrderKind order = OrderKind::three_class;
  std::ptrdiff_t optimal = 0,
                 non_optimal = 0;  // per query, of three classes; 0: a quarter and a half of the vocabulary
  SuccessorKind successor = SuccessorKind::permutation;
  std::uint64_t seed = 1;

  void validate() const;
};

struct RealizableData {
  RealizableOptions options;
  Vocabulary vocabulary;
  Collocations collocations;
  Sentences sentences;
  // Row q: the tokens from the most to the least preferred under q.
  std::vector<std::vector<Token>> rankings;
};

RealizableData make_realizable(const RealizableOptions& options);

// Sentences that training has not seen (dataset shift): for each, what a reader of the *training* order can know.
enum class UnseenKind {
  same_order,      // new sentences of the same generator
  non_comparable,  // optimal tokens among tokens that training never compared under the query
  longer,          // of the same generator, up to twice as long
};
std::string_view to_string(UnseenKind kind);

// `count` sentences; none equals a training sentence. Throws Error (bad input) where the vocabulary has none of the kind.
Sentences unseen_sentences(const RealizableData& data, UnseenKind kind, std::ptrdiff_t count,
                           std::uint64_t seed);

}  // namespace attmirror
