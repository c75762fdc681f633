#include "base/random.hpp"
#include "data/torch_random.hpp"
#include "data/torch_rows.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/data/generators.hpp>

#include <span>

#include <fmt/format.h>

namespace attmirror {
namespace {

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

// The tokens that are queries, sequence after sequence.
void take_tokens_as_queries(SphereData::QueryFrom from, DatasetArrays& arrays) {
  using enum SphereData::QueryFrom;
  if (from == all_tokens) arrays.query_counts = arrays.lengths;
  for (const std::int64_t length : arrays.lengths)
    for (std::int64_t t = from == last_token ? length - 1 : 0; t < (from == first_token ? 1 : length); ++t)
      arrays.query_index.push_back(t);
}

}  // namespace

void SphereData::validate() const {
  check_sizes(samples, tokens, dim);
  if (min_tokens && (*min_tokens < 1 || *min_tokens > tokens)) {
    throw bad_input(
        fmt::format("min_tokens is {}: expected 1 to {}, the number of tokens", *min_tokens, tokens));
  }
  if (queries < 1) throw bad_input(fmt::format("queries is {}: expected 1 or more", queries));
  using enum QueryFrom;
  if (query_from != draw && query_from != first_token && query_from != last_token && query_from != all_tokens)
    throw bad_input(fmt::format("query_from is {}: expected draw, first_token, last_token or all_tokens",
                                static_cast<int>(query_from)));
  if (query_from != draw && queries != 1)
    throw bad_input(
        fmt::format("queries is {}: expected 1, because they are tokens of their sequence", queries));
  check_fits(samples, queries, dim,
             fmt::format("samples is {}, queries {} and dim {}", samples, queries, dim));
}

Dataset generate(const SphereData& options) {
  options.validate();
  const auto n = static_cast<std::size_t>(options.samples), T = static_cast<std::size_t>(options.tokens),
             d = static_cast<std::size_t>(options.dim);
  TorchGenerator generator(options.seed);
  const std::vector<float> v = unit_rows(generator, 1, d);
  const std::vector<float> Y = generator.randn(n);
  const std::vector<float> X = unit_rows(generator, n * T, d);

  DatasetArrays arrays;
  arrays.decoder = widened(v, 1, options.dim).transpose();
  for (const float y : Y) arrays.labels.push_back(y > 0.0f ? 1.0 : -1.0);
  arrays.lengths = draw_lengths(options);
  if (options.query_from == SphereData::QueryFrom::draw) {
    const std::int64_t queries = options.samples * options.queries;
    arrays.queries =
        widened(unit_rows(generator, static_cast<std::size_t>(queries), d), queries, options.dim);
    if (options.queries > 1) arrays.query_counts.assign(n, options.queries);
  } else {
    take_tokens_as_queries(options.query_from, arrays);
  }
  std::ptrdiff_t total = 0;
  for (const std::int64_t length : arrays.lengths) total += length;
  arrays.tokens.resize(total, options.dim);
  std::ptrdiff_t row = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const std::ptrdiff_t length = arrays.lengths[i];
    const auto kept = std::span(X).subspan(i * T * d, static_cast<std::size_t>(length) * d);
    arrays.tokens.middleRows(row, length) = widened(kept, length, options.dim);
    row += length;
  }
  return Dataset(arrays);
}

Dataset generate(const JointData&) {
  // Single-precision literals: the paper's code makes float tensors and widens them, so 2.7 is 2.7000000477 there.
  constexpr float tokens[] = {-2.7f, 1.2f, 1.4f, 2.1f, 1.3f, -0.1f, 0.4f, -2.2f, -1.1f, -0.4f, 0.9f, 0.1f};
  DatasetArrays arrays;
  arrays.tokens = widened(tokens, 6, 2);
  arrays.lengths = {3, 3};
  arrays.queries.resize(2, 2);
  arrays.queries << arrays.tokens.row(0), arrays.tokens.row(3);
  arrays.labels = {1.0, -1.0};
  return Dataset(arrays);
}

}  // namespace attmirror
