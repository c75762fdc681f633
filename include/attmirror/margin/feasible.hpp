// A W that selects any tokens one likes, written down directly (P3): when the dimension d is at least the number of
// queries and of other tokens per query, almost every dataset is feasible for every selection.
//
// Choose vectors ztilde_j with ztilde_j^T z_l = 1 for j = l and 0 otherwise (they exist if the queries are independent),
// and b_j with (x_alpha - x_t)^T b_j = 1 for all t (if the differences are). Then
//
//   W = sum_j b_j ztilde_j^T    has    (x_alpha - x_t)^T W z_j = 1    for every query j and token t
//
// It satisfies all constraints of the attention SVM with equality, and is far from the smallest.
#pragma once

#include <attmirror/base/aligned.hpp>
#include <attmirror/data/dataset.hpp>
#include <attmirror/data/selection.hpp>

#include <optional>

namespace attmirror {

// Nothing where there are more constraints per query or more queries (with constraints) than dimensions, where the
// systems are singular up to rounding, or where they are so near to it that a margin comes out below 1 - 1e-6 or above
// 1 + 1e-6. Uses the shortest ztilde and b. Throws Error (bad input) where the selection does not fit the data.
std::optional<Matrix> constructive_weights(const Dataset& data, const Selection& tokens);

}  // namespace attmirror
