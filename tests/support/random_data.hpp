// Small random data and parameters for tests, from counter-based numbers.
#pragma once

#include "base/random.hpp"
#include <attmirror/attention/attention.hpp>
#include <attmirror/data/generators.hpp>

#include <cstdint>

namespace attmirror::test {

// The papers' generator with lengths between 1 and `tokens`.
inline Dataset ragged_data(std::int64_t samples, std::int64_t tokens, std::int64_t dim, std::uint64_t seed) {
  return generate(
      SphereData{.samples = samples, .tokens = tokens, .dim = dim, .seed = seed, .min_tokens = 1});
}

// The arrays of data with one query each.
inline DatasetArrays arrays_of(const Dataset& data) {
  DatasetArrays arrays;
  arrays.tokens = data.all_tokens().eigen();
  for (std::ptrdiff_t i = 0; i < data.samples(); ++i) arrays.lengths.push_back(data.length(i));
  arrays.queries = data.queries().eigen();
  arrays.labels.assign(data.labels().begin(), data.labels().end());
  if (data.has_decoder()) arrays.decoder = data.decoder().eigen().transpose();
  return arrays;
}

inline Matrix random_matrix(std::ptrdiff_t rows, std::ptrdiff_t cols, std::uint64_t seed) {
  const CounterRandom random(seed, RandomStream::init_W);
  Matrix result(rows, cols);
  for (std::ptrdiff_t j = 0; j < result.size(); ++j)
    result.data()[j] = random.normal(static_cast<std::uint64_t>(j));
  return result;
}

inline Parameters random_parameters(const Attention& model, double size, std::uint64_t seed) {
  Parameters result = model.zero_parameters();
  const std::ptrdiff_t d = model.data().dim();
  if (result.W.size() > 0) result.W = size * random_matrix(d, d, seed);
  if (result.K.size() > 0) result.K = size * random_matrix(d, model.rank(), seed + 1);
  if (result.Q.size() > 0) result.Q = size * random_matrix(d, model.rank(), seed + 2);
  if (result.p.size() > 0) result.p = size * random_matrix(d, 1, seed + 3);
  if (model.has_block(Block::v)) result.v = random_matrix(d, 1, seed + 4);
  return result;
}

}  // namespace attmirror::test
