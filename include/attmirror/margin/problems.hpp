// The max-margin problems of the papers, each a set of constraints on W read from a dataset.
//
//   attention SVM     (x_alpha - x_t)^T W z >= 1            every query, every token t != alpha that it may attend to
//   prompt SVM        (k_alpha - k_t)^T p >= 1              keys k = W x for fixed key weights W
//   decoder SVM       Y v^T x_alpha >= 1                    the selected tokens' labels
//   relaxed SVM       the first two with bound 1 where the sequence is a support vector of the decoder SVM, 0 elsewhere
//   Gen-SVM, direction  (x_o - x_t)^T W z = 0 within the kept tokens O of a query, >= 1 from O to the rest
//   Gen-SVM, finite     (x_o - x_t)^T W z = a_o - a_t within O, the differences of given logits
//
// Within the kept tokens O the equalities make all scores equal, so the inequalities need only one o in O: the
// first. Queries with only one token (or one kept token) add nothing. Tokens that the mask forbids do not count.
//
// Each query is one group, in the order of Dataset::queries(), some of size 0; within it come the equalities, then
// the inequalities, each by ascending token t. The decoder SVM has one constraint per query, whose origin is alpha.
#pragma once

#include <attmirror/base/matrix.hpp>
#include <attmirror/data/dataset.hpp>
#include <attmirror/data/selection.hpp>
#include <attmirror/margin/constraints.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

namespace attmirror {

// Selected tokens over all others, for weights W (P1, P3).
struct AttentionSvm {
  Selection tokens;              // alpha, one per query
  std::vector<double> bounds{};  // one per query, >= 0; empty: 1. Relaxed: 1 or 0
};

// Selected tokens over all others, for a prompt p (P2).
struct PromptSvm {
  Selection tokens;
  Matrix key_weights{};          // (d, d), keys are its products with tokens; empty: the tokens themselves
  std::vector<double> bounds{};  // as in AttentionSvm
};

// Selected tokens on the side of their label, for a decoder v (P2).
struct DecoderSvm {
  Selection tokens;
};

// The tokens that attention keeps, for each query in ascending order; the first of them is the reference o.
struct KeptTokens {
  std::vector<std::vector<std::int64_t>> tokens;
  // Throws Error (bad input) unless each query keeps at least one, each in range, allowed and in ascending order.
  void validate(const Dataset& data) const;
};

// Kept tokens equal to each other and over all others, for the growing direction W_dir (P3).
struct GeneralDirectionSvm {
  KeptTokens kept;
};

// Given differences of logits among kept tokens, for the finite part W_fin (P3).
struct GeneralFiniteSvm {
  KeptTokens kept;
  std::vector<Vector>
      logits;  // one vector per query, one entry per token of its sequence; finite for kept tokens
};

// Any of the problems.
using MarginProblem =
    std::variant<AttentionSvm, PromptSvm, DecoderSvm, GeneralDirectionSvm, GeneralFiniteSvm>;

// "attention", "prompt", "decoder", "relaxed" (bounds of which one is not 1), "general direction", "general finite"
std::string_view problem_name(const MarginProblem& problem);

// Throws Error (bad input) naming what in `problem` does not fit the data.
void validate(const Dataset& data, const MarginProblem& problem);

// Validates and writes down the constraints. Also throws if a difference of two tokens is out of a double's range.
MarginConstraints constraints(const Dataset& data, const MarginProblem& problem);

// The bounds of the relaxed SVM: 1 for the queries in `decoder_support` (indices of the decoder SVM's constraints,
// which are queries), 0 for the others. Throws Error (bad input) naming an index out of range.
std::vector<double> relaxed_bounds(const Dataset& data, std::span<const std::ptrdiff_t> decoder_support);

// A W that selects any given tokens, written down directly (P3): when the dimension d is at least the number
// of queries and of other tokens per query, almost every dataset is feasible for every selection.
//
// Choose vectors ztilde_j with ztilde_j^T z_l = 1 for j = l and 0 otherwise (they exist if the queries are
// independent), and b_j with (x_alpha - x_t)^T b_j = 1 for all t (if the differences are). Then
//
//   W = sum_j b_j ztilde_j^T    has    (x_alpha - x_t)^T W z_j = 1    for every query j and token t
//
// It satisfies all constraints of the attention SVM with equality, and is far from the smallest.

// Returns nothing if there are more constraints per query or more queries (with constraints) than dimensions, if the
// systems are singular up to rounding, or if they are so close to singular that a margin comes out below 1 - 1e-6 or
// above 1 + 1e-6. Uses the shortest ztilde and b. Throws Error (bad input) if the selection does not fit the data.
std::optional<Matrix> constructive_weights(const Dataset& data, const Selection& tokens);

}  // namespace attmirror
