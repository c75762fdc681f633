#include "deep/attention_parts.hpp"
#include "deep/initial_weights.hpp"
#include "deep/option_checks.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/deep/encoder_classifier.hpp>
#include <attmirror/deep/keyed_dropout.hpp>

#include <cmath>

#include <ATen/ATen.h>
#include <fmt/format.h>

namespace attmirror::torch {

namespace {

// Which dropout of a block; sites of block b are 4 b + these.
enum EncoderSite : std::uint32_t { attention_site, residual_site, mlp_site, sites_per_block = 4 };

std::uint32_t encoder_site(std::int64_t block, EncoderSite which) {
  return static_cast<std::uint32_t>(block) * sites_per_block + which;
}

}  // namespace

void EncoderOptions::validate() const {
  check_at_least("vocabulary", vocabulary, 1);
  check_at_least("length", length, 1);
  check_at_least("width", width, 1);
  check_at_least("blocks", blocks, 1);
  check_at_least("heads", heads, 1);
  check_at_least("hidden", hidden, 0);
  // What the address of a dropped probability has room for.
  check_at_most("length", length, 1 << 20);
  check_at_most("heads", heads, 1 << 12);
  if (width % heads != 0)
    throw bad_input(fmt::format("heads is {}: expected a divisor of width, {}", heads, width));
  if (!(embedding_deviation >= 0 && std::isfinite(embedding_deviation)))
    throw bad_input(
        fmt::format("embedding_deviation is {}: expected a finite number, at least 0", embedding_deviation));
  check_dropout(dropout);
}

double EncoderOptions::parameters() const {
  const auto w = static_cast<double>(width);
  const double h = hidden == 0 ? 4 * w : static_cast<double>(hidden);
  return (static_cast<double>(vocabulary) + static_cast<double>(length)) * w +
         static_cast<double>(blocks) * (4 * w * w + 2 * w * h + 2 * w) + w;
}

EncoderClassifier::EncoderClassifier(const EncoderOptions& options, std::optional<std::uint64_t> seed,
                                     ::at::ScalarType compute)
    : options_(options), compute_(compute) {
  options_.validate();
  const std::int64_t width = options_.width;
  if (options_.hidden == 0) options_.hidden = 4 * width;
  InitialWeights initial(seed);
  token_embedding_ = register_parameter(
      "token_embedding", initial.normal({options_.vocabulary, width}, options_.embedding_deviation));
  position_embedding_ = register_parameter(
      "position_embedding", initial.normal({options_.length, width}, options_.embedding_deviation));
  for (std::int64_t b = 0; b < options_.blocks; ++b) {
    const auto name = [&](const char* part) { return fmt::format("block{}_{}", b, part); };
    const auto linear = [&](const char* part, std::int64_t outputs, std::int64_t inputs) {
      return register_parameter(name(part), initial.linear({outputs, inputs}, inputs));
    };
    const auto norm = [&](const char* part) {
      return register_parameter(name(part), ::at::ones({width}, ::at::kFloat));
    };
    Block block;
    block.query_key_value = linear("query_key_value", 3 * width, width);
    block.output = linear("output", width, width);
    block.attention_norm = norm("attention_norm");
    block.up = linear("up", options_.hidden, width);
    block.down = linear("down", width, options_.hidden);
    block.mlp_norm = norm("mlp_norm");
    blocks_.push_back(block);
  }
  head_ = register_parameter("head", initial.linear({1, width}, width));
}

::at::Tensor EncoderClassifier::linear(const ::at::Tensor& x, const ::at::Tensor& weight) const {
  return ::at::linear(x, weight.to(compute_));
}

::at::Tensor EncoderClassifier::embedded(const Batch& batch) const {
  return (::at::embedding(token_embedding_, batch.tokens) +
          ::at::embedding(position_embedding_, batch.positions))
      .to(compute_);
}

// What follows the mixing of values, for the rows of x.
::at::Tensor EncoderClassifier::after_attention(const Block& block, std::int64_t index, const ::at::Tensor& x,
                                                const ::at::Tensor& mixed, const ::at::Tensor& keys) const {
  const double p = options_.dropout;
  const ::at::Tensor y = residual_norm(x, linear(mixed, block.output), block.attention_norm,
                                       {p, keys, encoder_site(index, residual_site)});
  return residual_norm(y, linear(::at::gelu(linear(y, block.up)), block.down), block.mlp_norm,
                       {p, keys, encoder_site(index, mlp_site)});
}

::at::Tensor EncoderClassifier::block_output(const Block& block, std::int64_t index, const ::at::Tensor& x,
                                             const Batch& batch) const {
  const std::int64_t heads = options_.heads;
  const auto parts =
      linear(x, block.query_key_value).view({x.size(0), 3, heads, options_.width / heads}).unbind(1);
  const PackedRows rows{batch.offsets, batch.longest};
  const AttentionDropout dropout{options_.dropout, batch.dropout_keys, encoder_site(index, attention_site),
                                 batch.dropout_seed, batch.first_sample};
  const ::at::Tensor mixed =
      packed_attention(parts[0], parts[1], parts[2], rows, rows, dropout, options_.attention).flatten(1);
  return after_attention(block, index, x, mixed, batch.dropout_keys);
}

// The block for the first token of each sample alone: [samples, width].
::at::Tensor EncoderClassifier::first_token_output(const Block& block, std::int64_t index,
                                                   const ::at::Tensor& x, const Batch& batch) const {
  const std::int64_t width = options_.width, heads = options_.heads, samples = batch.sequences();
  const auto weights = block.query_key_value.split({width, 2 * width}, 0);
  const ::at::Tensor firsts = batch.offsets.narrow(0, 0, samples);
  const ::at::Tensor asking = x.index_select(0, firsts);
  const ::at::Tensor keys =
      batch.dropout_keys.defined() ? batch.dropout_keys.index_select(0, firsts) : ::at::Tensor();
  const ::at::Tensor query = linear(asking, weights[0]).view({samples, heads, width / heads});
  const auto parts = linear(x, weights[1]).view({x.size(0), 2, heads, width / heads}).unbind(1);
  const PackedRows one_each{::at::arange(samples + 1, batch.offsets.options()), 1};
  const AttentionDropout dropout{options_.dropout, keys, encoder_site(index, attention_site),
                                 batch.dropout_seed, batch.first_sample};
  const ::at::Tensor mixed = packed_attention(query, parts[0], parts[1], one_each,
                                              {batch.offsets, batch.longest}, dropout, options_.attention)
                                 .flatten(1);
  return after_attention(block, index, asking, mixed, keys);
}

::at::Tensor EncoderClassifier::logits(const Batch& batch) {
  ::at::Tensor x = embedded(batch);
  const bool first_token_only = options_.last_block == LastBlock::first_token;
  for (std::int64_t b = 0; b < options_.blocks; ++b) {
    const Block& block = blocks_[static_cast<std::size_t>(b)];
    if (first_token_only && b + 1 == options_.blocks)
      x = first_token_output(block, b, x, batch);
    else
      x = block_output(block, b, x, batch);
  }
  if (!first_token_only) x = x.index_select(0, batch.offsets.narrow(0, 0, batch.sequences()));
  x = x.narrow(0, 0, batch.samples());  // without the filler
  const ::at::Tensor result = linear(x, head_);
  return compute_ == ::at::kDouble ? result : result.to(::at::kFloat);
}

std::vector<::at::Tensor> EncoderClassifier::attention_maps(const Batch& one) {
  const Batch batch = shown_batch(one);
  const ::at::NoGradGuard no_gradients;
  const std::int64_t heads = options_.heads, head_width = options_.width / heads;
  std::vector<::at::Tensor> maps;
  ::at::Tensor x = embedded(batch);
  for (std::int64_t b = 0; b < options_.blocks; ++b) {
    const Block& block = blocks_[static_cast<std::size_t>(b)];
    const auto parts = linear(x, block.query_key_value).view({x.size(0), 3, heads, head_width}).unbind(1);
    maps.push_back(attention_probabilities(parts[0], parts[1]));
    x = block_output(block, b, x, batch);
  }
  return maps;
}

std::vector<Projection> EncoderClassifier::projections() const {
  std::vector<Projection> result;
  for (std::int64_t b = 0; b < options_.blocks; ++b)
    add_projections(result, b, blocks_[static_cast<std::size_t>(b)].query_key_value);
  return result;
}

// Forward 2 operations a weight and row, and 4 length x width per row in attention; backward twice that.
double EncoderClassifier::training_flops(std::span<const std::int64_t> lengths) const {
  const auto width = static_cast<double>(options_.width), hidden = static_cast<double>(options_.hidden);
  const double weights = 4 * width * width + 2 * width * hidden;
  double flops = 0;
  for (const std::int64_t length : lengths) {
    const auto rows = static_cast<double>(length);
    flops +=
        static_cast<double>(options_.blocks) * (2 * weights * rows + 4 * rows * rows * width) + 2 * width;
  }
  return 3 * flops;
}

}  // namespace attmirror::torch
