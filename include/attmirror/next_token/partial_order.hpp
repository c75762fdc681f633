// Query-dependent partial orders (P4): which tokens a query must prefer to which others.
//
// In a sentence with query q and label y the tokens with n(x) = y are optimal and beat the others:
//
//   x >_q x'   for each optimal x and each x' of the sentence with n(x') != y
//
// The data are realizable if every label is the successor of a token of its sentence, and if the union of these
// comparisons over all sentences is a strict partial order for each query: there is no cycle x >_q x' >_q ... >_q x.
#pragma once

#include <attmirror/base/matrix.hpp>
#include <attmirror/next_token/sentences.hpp>

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace attmirror {

// One token is better than another, for some query.
struct Preference {
  Token better = 0, worse = 0;
  std::int64_t sentence = 0;  // the first one that implies it
  friend bool operator==(const Preference& a, const Preference& b) {
    return a.better == b.better && a.worse == b.worse;
  }
};

// What a token is to a query.
enum class TokenClass {
  non_comparable,  // never compared under this query
  optimal,         // compared, and nothing beats it
  non_optimal,     // something beats it
};
std::string_view to_string(TokenClass token_class);

// x >_q ... >_q x: each entry beats the next, and the last beats the first; each with the sentence that implies it.
struct PreferenceCycle {
  Token query = no_token;
  std::vector<Preference> steps;
};
// "after q: a > b (sentence 3) > c (sentence 7) > a (sentence 9)": after each step the sentence that implies
// it, counted from 1; "(line 12)" if `line_numbers` has the line of each sentence in its file. Long cycles
// are cut in the middle.
std::string to_string(const PreferenceCycle& cycle, const Vocabulary& vocabulary,
                      std::span<const std::int64_t> line_numbers = {});

// A sentence whose label no token of it explains.
struct UnexplainedLabel {
  std::int64_t sentence = 0;
};

// For each query, which tokens sentences prefer to which.
class PartialOrders {
 public:
  // Takes hard or soft collocations; tokens whose successors include the label are optimal. Unexplained
  // sentences are set aside, see unexplained(). Memory is linear in the number of different comparisons.
  // Throws Error (bad input) if the two have vocabularies of different sizes.
  PartialOrders(const Sentences& sentences, const Collocations& collocations);

  std::ptrdiff_t vocabulary_size() const { return static_cast<std::ptrdiff_t>(preferences_.size()); }
  // Each once, sorted by better, then worse.
  std::span<const Preference> preferences(Token query) const {
    return preferences_[static_cast<std::size_t>(query)];
  }
  std::ptrdiff_t total_preferences() const;
  std::vector<Token> queries() const;  // those with a preference

  std::span<const UnexplainedLabel> unexplained() const { return unexplained_; }
  // A shortest cycle of the lowest query that has one; of several, the one with the lowest token, which comes first.
  std::optional<PreferenceCycle> find_cycle() const;
  bool is_realizable() const { return unexplained_.empty() && !find_cycle(); }

  // Within a cycle every token is non-optimal. Time is logarithmic in the number of tokens that the query compares.
  TokenClass token_class(Token query, Token token) const;
  std::vector<TokenClass> token_classes(Token query) const;  // of every token of the vocabulary

 private:
  struct Member {
    Token token;
    TokenClass token_class;
  };
  std::vector<std::vector<Preference>> preferences_;
  std::vector<std::vector<Member>> members_;  // by query: the tokens it compares, ascending
  std::vector<UnexplainedLabel> unexplained_;
};

// The extended order (P4): do scores put optimal tokens above those that were never compared, and these above
// the non-optimal ones? This is what a trained model knows about sentences it has not seen.

// Over all queries with preferences. A number without any token (or pair) is NaN; a share without pairs is 1.
struct ExtendedOrder {
  double lowest_optimal = 0, highest_non_comparable = 0, lowest_non_comparable = 0,
         highest_non_optimal = 0;  // extreme scores of any query
  // Minimum over queries of lowest optimal - highest non-comparable score.
  double least_above_non_comparable = 0;
  double least_below_non_comparable = 0;  // the same for lowest non-comparable - highest non-optimal score
  double optimal_above_non_comparable = 0, non_comparable_above_non_optimal = 0,
         optimal_above_non_optimal = 0;  // share of pairs
  bool holds = false;                    // all three shares are 1
};

// Scores are compared only within one query (row x, column q, as attention_scores() returns them). Scores
// below `tolerance` times the query's largest count as 0, so that rounding does not put one token above
// another. Throws Error (bad input) for scores of another shape or not finite, or a tolerance outside [0, 1).
ExtendedOrder extended_order(const Matrix& scores, const PartialOrders& orders, double tolerance = 1e-9);

}  // namespace attmirror
