// Constraints for the tests of room margin: random ones that a hidden W satisfies.
#pragma once

#include "support/random_data.hpp"
#include <attmirror/margin/constraints.hpp>
#include <attmirror/margin/problems.hpp>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace attmirror::test {

// `groups` groups of `each` constraints on a rows x cols matrix. Each a_k is turned so that a hidden random W has a
// positive margin: feasible for any size.
inline ConstraintArrays random_constraints(std::ptrdiff_t groups, std::ptrdiff_t each, std::ptrdiff_t rows,
                                           std::ptrdiff_t cols, std::uint64_t seed) {
  ConstraintArrays arrays;
  arrays.left = random_matrix(groups * each, rows, seed);
  arrays.right = random_matrix(groups, cols, seed + 1000);
  const Matrix hidden = random_matrix(rows, cols, seed + 2000);
  for (std::ptrdiff_t k = 0; k < groups * each; ++k)
    if (arrays.left.row(k).dot(hidden * arrays.right.row(k / each).transpose()) < 0) arrays.left.row(k) *= -1;
  arrays.group_sizes.assign(static_cast<std::size_t>(groups), each);
  arrays.bounds.assign(static_cast<std::size_t>(groups * each), 1.0);
  return arrays;
}

// Selected tokens against the others of their sequences.
inline MarginConstraints attention_rows(const Dataset& data, std::vector<std::int64_t> tokens) {
  return constraints(data, AttentionSvm{.tokens = Selection{std::move(tokens)}});
}

// The matrix A_k = a_k z_g^T.
inline Matrix constraint_matrix(const ConstraintArrays& arrays, std::ptrdiff_t k) {
  std::ptrdiff_t g = 0, end = arrays.group_sizes[0];
  while (k >= end) end += arrays.group_sizes[static_cast<std::size_t>(++g)];
  return arrays.left.row(k).transpose() * arrays.right.row(g);
}

}  // namespace attmirror::test
