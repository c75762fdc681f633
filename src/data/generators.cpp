#include <attmirror/base/error.hpp>
#include <attmirror/base/random.hpp>
#include <attmirror/data/generators.hpp>
#include <attmirror/data/torch_random.hpp>

#include <array>
#include <cmath>
#include <limits>
#include <span>

#include <fmt/format.h>

namespace attmirror {
namespace {

// The 2-norm in single precision, added up as torch does it with AVX2: eight running sums, then these in
// order, then the remainder.
float norm_as_torch(std::span<const float> row) {
  constexpr std::size_t lanes = 8;
  const std::size_t whole = row.size() / lanes * lanes;
  std::array<float, lanes> sums{};
  for (std::size_t j = 0; j < whole; ++j) sums[j % lanes] = std::fma(row[j], row[j], sums[j % lanes]);
  float sum = 0.0f;
  for (const float lane : sums) sum += lane;
  for (std::size_t j = whole; j < row.size(); ++j) sum = std::fma(row[j], row[j], sum);
  return std::sqrt(sum);
}

void normalise_rows(std::span<float> values, std::size_t dim) {
  for (std::size_t start = 0; start < values.size(); start += dim) {
    const std::span<float> row = values.subspan(start, dim);
    const float norm = norm_as_torch(row);
    for (float& value : row) value /= norm;
  }
}

std::vector<float> unit_rows(TorchGenerator& generator, std::size_t rows, std::size_t dim) {
  std::vector<float> values = generator.randn(rows * dim);
  normalise_rows(values, dim);
  return values;
}

Matrix to_matrix(std::span<const float> values, std::ptrdiff_t rows, std::ptrdiff_t cols) {
  using FloatMatrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  return Eigen::Map<const FloatMatrix>(values.data(), rows, cols).cast<double>();
}

std::vector<std::int64_t> draw_lengths(const SphereData& options) {
  std::vector<std::int64_t> lengths(static_cast<std::size_t>(options.samples), options.tokens);
  if (!options.min_tokens) return lengths;
  const CounterRandom random(options.seed, RandomStream::lengths);
  const auto choices = static_cast<std::uint64_t>(options.tokens - *options.min_tokens + 1);
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    lengths[i] = *options.min_tokens + static_cast<std::int64_t>(random.below(choices, i));
  }
  return lengths;
}

}  // namespace

void SphereData::validate() const {
  const auto at_least_one = [](const char* name, std::int64_t value) {
    if (value < 1) throw bad_input(fmt::format("{} is {}: expected 1 or more", name, value));
  };
  at_least_one("samples", samples);
  at_least_one("tokens", tokens);
  at_least_one("dim", dim);
  if (min_tokens && (*min_tokens < 1 || *min_tokens > tokens)) {
    throw bad_input(
        fmt::format("min_tokens is {}: expected 1 to {}, the number of tokens", *min_tokens, tokens));
  }
  // As doubles with padded rows; divisions instead of a product that may overflow.
  constexpr std::int64_t limit = std::numeric_limits<std::int64_t>::max() / 64;
  if (samples > limit / tokens || samples * tokens > limit / dim) {
    throw bad_input(
        fmt::format("samples is {}, tokens {} and dim {}: their product is too large for any memory", samples,
                    tokens, dim));
  }
}

Dataset generate(const SphereData& options) {
  options.validate();
  const auto n = static_cast<std::size_t>(options.samples), T = static_cast<std::size_t>(options.tokens),
             d = static_cast<std::size_t>(options.dim);
  TorchGenerator generator(options.seed);
  const std::vector<float> v = unit_rows(generator, 1, d);
  const std::vector<float> Y = generator.randn(n);
  const std::vector<float> X = unit_rows(generator, n * T, d);
  const std::vector<float> Z = unit_rows(generator, n, d);

  DatasetArrays arrays;
  arrays.decoder = to_matrix(v, 1, options.dim).transpose();
  for (const float y : Y) arrays.labels.push_back(y > 0.0f ? 1.0 : -1.0);
  arrays.queries = to_matrix(Z, options.samples, options.dim);
  arrays.lengths = draw_lengths(options);
  std::ptrdiff_t total = 0;
  for (const std::int64_t length : arrays.lengths) total += length;
  arrays.tokens.resize(total, options.dim);
  std::ptrdiff_t row = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const std::ptrdiff_t length = arrays.lengths[i];
    const auto kept = std::span(X).subspan(i * T * d, static_cast<std::size_t>(length) * d);
    arrays.tokens.middleRows(row, length) = to_matrix(kept, length, options.dim);
    row += length;
  }
  return Dataset(arrays);
}

Dataset generate(const JointData&) {
  // Single-precision literals: the paper's code makes float tensors and widens them, so 2.7 is 2.7000000477
  // there.
  constexpr float tokens[] = {-2.7f, 1.2f, 1.4f, 2.1f, 1.3f, -0.1f, 0.4f, -2.2f, -1.1f, -0.4f, 0.9f, 0.1f};
  DatasetArrays arrays;
  arrays.tokens = to_matrix(tokens, 6, 2);
  arrays.lengths = {3, 3};
  arrays.queries.resize(2, 2);
  arrays.queries << arrays.tokens.row(0), arrays.tokens.row(3);
  arrays.labels = {1.0, -1.0};
  return Dataset(arrays);
}

}  // namespace attmirror
