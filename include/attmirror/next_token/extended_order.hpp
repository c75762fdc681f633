// The extended order (P4): do scores put optimal tokens above those that were never compared, and these above the
// non-optimal ones? This is what a trained model knows about sentences it has not seen.
#pragma once

#include <attmirror/base/aligned.hpp>
#include <attmirror/next_token/partial_order.hpp>

namespace attmirror {

// Over all queries with preferences. A number without any token (or pair) behind it is NaN; a share without pairs is 1.
struct ExtendedOrder {
  double lowest_optimal = 0, highest_non_comparable = 0, lowest_non_comparable = 0,
         highest_non_optimal = 0;  // extreme scores of any query
  double least_above_non_comparable =
      0;  // least over queries of lowest optimal - highest non-comparable score
  double least_below_non_comparable = 0;  // the same of lowest non-comparable - highest non-optimal score
  double optimal_above_non_comparable = 0, non_comparable_above_non_optimal = 0,
         optimal_above_non_optimal = 0;  // share of pairs
  bool holds = false;                    // all three shares are 1
};

// Scores of one query are compared with each other only (row x, column q, as attention_scores() gives them). Scores below
// `tolerance` of the query's largest count as 0, so that rounding puts no token above another. Throws Error (bad input) for
// scores of another shape or not finite, or a tolerance outside [0, 1).
ExtendedOrder extended_order(const Matrix& scores, const PartialOrders& orders, double tolerance = 1e-9);

}  // namespace attmirror
