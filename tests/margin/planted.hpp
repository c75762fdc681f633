// A large max-margin problem that has a solution: tokens and queries are uniform on the unit sphere, a hidden W with
// standard normal entries scores them, and each sequence selects the token with the highest score x_t^T W z.
#pragma once

#include "support/random_data.hpp"
#include <attmirror/margin/constraints.hpp>

#include <cstddef>
#include <cstdint>

namespace attmirror::test {

inline ConstraintArrays planted_constraints(std::ptrdiff_t samples, std::ptrdiff_t tokens, std::ptrdiff_t dim,
                                            std::uint64_t seed) {
  ConstraintArrays arrays;
  arrays.left = Matrix(samples * (tokens - 1), dim);
  arrays.right = random_matrix(samples, dim, seed).rowwise().normalized();
  const Matrix hidden = random_matrix(dim, dim, seed + 1);
  Matrix all = random_matrix(samples * tokens, dim, seed + 2);
  all.rowwise().normalize();
  std::ptrdiff_t k = 0;
  for (std::ptrdiff_t i = 0; i < samples; ++i) {
    const auto x = all.middleRows(i * tokens, tokens);
    std::ptrdiff_t selected = 0;
    (x * (hidden * arrays.right.row(i).transpose())).eval().maxCoeff(&selected);
    for (std::ptrdiff_t t = 0; t < tokens; ++t)
      if (t != selected) arrays.left.row(k++) = x.row(selected) - x.row(t);
  }
  arrays.group_sizes.assign(static_cast<std::size_t>(samples), tokens - 1);
  arrays.bounds.assign(static_cast<std::size_t>(k), 1.0);
  return arrays;
}

}  // namespace attmirror::test
