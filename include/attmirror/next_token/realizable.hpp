// Random realizable data for P4's experiment.
//
// n is a random permutation of V (or any random map). For each query q a random ranking of V, from which
//
//   three classes      the first `optimal` tokens are optimal, the next `non_optimal` are not, the rest is never used
//                      with q;
//                      a sentence is one optimal token, non-optimal ones, and q last (a q that is optimal is THE
//                      optimal one)
//   linear extension   L - 1 random tokens and q; the best-ranked of them is the optimal one
//
// and the label is the successor of the best token. For the data to be realizable and, with three classes,
// for every token to belong to one class, the ranking must respect this:
//
//   - q is in each of its sentences, so it cannot be unused: of three classes it then changes places with the last
//     non-optimal token.
//   - No label tells tokens with the same successor apart (a map that is not a permutation): they stand side by side
//     in a
//     ranking, q before its equals, and of three classes no other token of a sentence shares the best one's successor.
//
// The other tokens are independent draws, including q if its class allows it; an optimal query then occurs
// twice, as the best token and as the last. Repeated tokens outweigh single ones in a softmax, which makes
// the second stage slow, as in P4's figure. If repetition is avoided, a sentence contains a token once as
// long as there are enough to choose from, and otherwise each about equally often. A three-class sentence for
// which there is no token is filled up with q.
//
// Every random number has an address (seed, sentence, position): the data do not depend on threads or on what
// was generated before.
#pragma once

#include <attmirror/next_token/partial_order.hpp>

#include <cstdint>
#include <string_view>
#include <vector>

namespace attmirror {

// What the order of tokens under a query looks like.
enum class OrderKind { three_class, linear };
std::string_view to_string(OrderKind kind);
OrderKind parse_order_kind(std::string_view name);  // three-class, linear; throws Error (bad input)

// How successors are assigned to tokens.
enum class SuccessorKind {
  permutation,  // every token has its own successor, as in P4
  map,          // successors are drawn from all tokens: some share one
};
std::string_view to_string(SuccessorKind kind);
SuccessorKind parse_successor_kind(std::string_view name);  // permutation, map; throws Error (bad input)

// Whether a token may occur in a sentence more than once.
enum class Repetition { allowed, avoided };
std::string_view to_string(Repetition repetition);
Repetition parse_repetition(std::string_view name);  // allowed, avoided; throws Error (bad input)

// The size of generated sentences, their orders, their seed.
struct RealizableOptions {
  std::ptrdiff_t vocabulary = 20;                 // 2 or more
  std::ptrdiff_t sentences = 100;                 // in total; dealt to the queries in turn
  std::ptrdiff_t min_length = 4, max_length = 6;  // tokens of a sentence, including the query
  OrderKind order = OrderKind::three_class;
  std::ptrdiff_t
      optimal = 0,
      non_optimal = 0;  // per query, of three classes; 0: a quarter and a half of the vocabulary, or the rest
  SuccessorKind successor = SuccessorKind::permutation;
  Repetition repetition = Repetition::allowed;
  std::uint64_t seed = 1;

  void validate() const;               // throws Error (bad input)
  RealizableOptions resolved() const;  // with numbers for the zeros above; validates
};

// Generated sentences that some weights predict without error, with the orders behind them.
struct RealizableData {
  RealizableOptions options;  // resolved
  Vocabulary vocabulary;      // w0, w1, ...
  Collocations collocations;
  Sentences sentences;
  // Row q: the tokens from the most to the least preferred under q. Of three classes: optimal, non-optimal,
  // unused ones.
  std::vector<std::vector<Token>> rankings;
};

// Sentences and orders from a seed: the same for the same options.
RealizableData make_realizable(const RealizableOptions& options);

// Sentences that training has not seen (dataset shift), of queries that it has.
enum class UnseenKind {
  // New sentences from the same generator and the same rankings. Some contain pairs that training never
  // compared, which nothing learned from it decides.
  same_order,
  // With three classes: tokens that training never compared under the query. In half of the sentences the
  // best token is optimal in training and the others were never compared; in the other half the best was
  // never compared and the others are non-optimal; the label follows P4's extended order, optimal >
  // non-comparable > non-optimal. A query that is its own optimal token has only sentences of the first kind.
  non_comparable,
  // From the same generator, from one token longer than the longest to twice as long.
  longer,
};
std::string_view to_string(UnseenKind kind);
UnseenKind parse_unseen_kind(
    std::string_view name);  // same-order, non-comparable, longer; throws Error (bad input)

// `count` sentences, none equal to a training sentence. Throws Error (bad input) if there are none of the
// kind, or too few.
Sentences unseen_sentences(const RealizableData& data, UnseenKind kind, std::ptrdiff_t count,
                           std::uint64_t seed);

}  // namespace attmirror
