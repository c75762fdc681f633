// What the generators of the papers' data share: rows drawn and normalised in single precision as torch does
// it, widened to double at the end, and the check of their sizes. Internal.
#pragma once

#include "data/torch_random.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/base/matrix.hpp>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include <fmt/format.h>

namespace attmirror {

// The 2-norm in single precision, added up as torch does it with AVX2: eight running sums, then these in
// order, then the remainder, where of four or more entries the first four are squared before they are added.
inline float norm_as_torch(std::span<const float> row) {
  constexpr std::size_t lanes = 8;
  const std::size_t whole = row.size() / lanes * lanes;
  std::array<float, lanes> sums{};
  for (std::size_t j = 0; j < whole; ++j) sums[j % lanes] = std::fma(row[j], row[j], sums[j % lanes]);
  float sum = 0.0f;
  for (const float lane : sums) sum += lane;
  const std::size_t squared = row.size() - whole >= 4 ? whole + 4 : whole;
  for (std::size_t j = whole; j < squared; ++j) sum += row[j] * row[j];
  for (std::size_t j = squared; j < row.size(); ++j) sum = std::fma(row[j], row[j], sum);
  return std::sqrt(sum);
}

inline void normalise_rows(std::span<float> values, std::size_t dim) {
  for (std::size_t start = 0; start < values.size(); start += dim) {
    const std::span<float> row = values.subspan(start, dim);
    const float norm = norm_as_torch(row);
    for (float& value : row) value /= norm;
  }
}

inline std::vector<float> unit_rows(TorchGenerator& generator, std::size_t rows, std::size_t dim) {
  std::vector<float> values = generator.randn(rows * dim);
  normalise_rows(values, dim);
  return values;
}

// scale * randn(count), each product rounded to single precision.
inline std::vector<float> scaled_normals(TorchGenerator& generator, std::size_t count, float scale) {
  std::vector<float> values = generator.randn(count);
  for (float& value : values) value *= scale;
  return values;
}

inline Matrix widened(std::span<const float> values, std::ptrdiff_t rows, std::ptrdiff_t cols) {
  using FloatMatrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  return Eigen::Map<const FloatMatrix>(values.data(), rows, cols).cast<double>();
}

// `sizes` says the three factors in words, e.g. "samples is 6, tokens 8 and dim 10".
inline void check_fits(std::int64_t a, std::int64_t b, std::int64_t c, std::string_view sizes) {
  // As doubles with padded rows; divisions instead of a product that may overflow.
  constexpr std::int64_t limit = std::numeric_limits<std::int64_t>::max() / 64;
  if (a > limit / b || a * b > limit / c)
    throw bad_input(fmt::format("{}: the product is too large for any memory", sizes));
}

inline void check_sizes(std::int64_t samples, std::int64_t tokens, std::int64_t dim) {
  const auto at_least_one = [](const char* name, std::int64_t value) {
    if (value < 1) throw bad_input(fmt::format("{} is {}: expected 1 or more", name, value));
  };
  at_least_one("samples", samples);
  at_least_one("tokens", tokens);
  at_least_one("dim", dim);
  check_fits(samples, tokens, dim, fmt::format("samples is {}, tokens {} and dim {}", samples, tokens, dim));
}

}  // namespace attmirror
