// What a query can end on, as the search for attractors counts it. Internal.
//
// The tokens of a query fall into levels of equal score. A token above the lowest level is a choice of its
// own, because its margin over worse tokens shapes the solution. Tokens of the lowest level have no worse
// ones and demand nothing: together they are one choice, and which of them is on top follows from the other
// queries.
#pragma once

#include <attmirror/attention/attention.hpp>
#include <attmirror/data/selection.hpp>
#include <attmirror/margin/constraints.hpp>
#include <attmirror/mirror/norm.hpp>

#include <cstdint>
#include <vector>

namespace attmirror {

// One entry for each query: a token, or lowest_level.
using AttractorChoice = std::vector<std::int64_t>;
constexpr std::int64_t lowest_level = -1;

// Relative to sum |v_k x_k|, the size of what a score adds up.
constexpr double equal_score_tolerance = 1e-12;

// The levels of all queries of a model.
class AttractorChoices {
 public:
  // Throws Error (bad input) for a model that attractors() refuses.
  explicit AttractorChoices(const Attention& model);

  double count() const;  // may be too large for an integer
  AttractorChoice at(std::int64_t index) const;
  AttractorChoice of(const Selection& on_top) const;

  bool is_allowed(std::ptrdiff_t query, std::int64_t token) const { return level(query, token) >= 0; }
  // From 0, the lowest; -1 for tokens that the mask forbids.
  int level(std::ptrdiff_t query, std::int64_t token) const {
    return levels_[static_cast<std::size_t>(query)][static_cast<std::size_t>(token)];
  }
  int top_level(std::ptrdiff_t query) const { return top_[static_cast<std::size_t>(query)]; }
  int choice_level(std::ptrdiff_t query, std::int64_t choice) const {
    return choice == lowest_level ? 0 : level(query, choice);
  }
  // Tokens of a query whose entries are all equal are one token to its logits; they go by the first.
  std::int64_t first_same(std::ptrdiff_t query, std::int64_t token) const {
    return first_same_[static_cast<std::size_t>(query)][static_cast<std::size_t>(token)];
  }
  bool same(std::ptrdiff_t query, std::int64_t a, std::int64_t b) const {
    return first_same(query, a) == first_same(query, b);
  }
  bool all_equal() const;  // nothing to learn

  MarginConstraints constraints(const AttractorChoice& choice) const;
  bool has_constraints(const AttractorChoice& choice) const;

  // The logits of a query at weights W, or at a prompt as one column; only their differences mean anything.
  Vector logits(std::ptrdiff_t query, const Matrix& W) const;

  const Attention& model() const { return *model_; }

 private:
  const Attention* model_;
  Matrix keys_;                           // (total tokens, d): tokens, or those of a prompt
  std::vector<std::vector<int>> levels_;  // [query][token]
  std::vector<std::vector<std::int64_t>> first_same_;
  std::vector<int> top_;                            // [query]
  std::vector<std::vector<std::int64_t>> options_;  // [query]: its choices
};

// The norm whose max-margin solutions descent turns to: l_p, and the nuclear norm for K, Q. Throws Error (bad
// input) for another p than 2 with K, Q, and for p that is not between 1 and infinity.
Norm attractor_norm(const Attention& model, double p);

}  // namespace attmirror
