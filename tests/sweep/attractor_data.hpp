// Data for tests of attractors.
#pragma once

#include <attmirror/data/dataset.hpp>

#include <cstdint>
#include <random>

namespace attmirror::test {

// The example of docs/attractors.md: with p = (1, 0) the first sequence has its best token by a margin of 1,
// and the second one has its best token 2 behind both others. All queries are (1, 0), so the first column of
// W is a prompt.
inline Dataset integer_example() {
  DatasetArrays arrays;
  arrays.tokens.resize(6, 2);
  arrays.tokens << 1, 0, 0, 1, 0, -1, 0, 3, 2, 0, 2, -1;
  arrays.lengths = {3, 3};
  arrays.queries.resize(2, 2);
  arrays.queries << 1, 0, 1, 0;
  arrays.labels = {1, -1};
  arrays.decoder = Vector(2);
  arrays.decoder << 1, 0;
  return Dataset(arrays);
}

// Token 0 of each sequence has score 1 and all others 1/2: the last of `dim` coordinates, which W sees like
// any other.
inline Dataset equal_scores(std::int64_t samples, std::int64_t tokens, std::int64_t dim, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<double> normal;
  const auto fill = [&](auto&& row) {
    for (std::ptrdiff_t k = 0; k + 1 < dim; ++k) row[k] = normal(generator);
    row.head(dim - 1) /= row.head(dim - 1).norm();
  };
  DatasetArrays arrays;
  arrays.tokens.resize(samples * tokens, dim);
  arrays.queries = Matrix::Zero(samples, dim);
  for (std::ptrdiff_t i = 0; i < samples * tokens; ++i) {
    fill(arrays.tokens.row(i));
    arrays.tokens(i, dim - 1) = i % tokens == 0 ? 1 : 0.5;
  }
  for (std::ptrdiff_t i = 0; i < samples; ++i) fill(arrays.queries.row(i));
  arrays.lengths.assign(static_cast<std::size_t>(samples), tokens);
  arrays.labels.assign(static_cast<std::size_t>(samples), 1.0);
  arrays.decoder = Vector::Zero(dim);
  arrays.decoder[dim - 1] = 1;
  return Dataset(arrays);
}

}  // namespace attmirror::test
