#include "deep/initial_weights.hpp"
#include "deep/keyed_dropout.hpp"
#include "deep/network_kernels.hpp"
#include "deep/option_checks.hpp"
#include "deep/packed_attention.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/deep/encoder_classifier.hpp>

#include <cmath>

#include <ATen/ATen.h>
#include <fmt/format.h>

namespace attmirror::deep {

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

Transformer::AttentionShape EncoderClassifier::shape_of(const EncoderOptions& options) {
  options.validate();
  return {.heads = options.heads,
          .head_width = options.width / options.heads,
          .kind = options.attention,
          .last_block = options.last_block};
}

EncoderClassifier::EncoderClassifier(const EncoderOptions& options, std::optional<std::uint64_t> seed,
                                     at::ScalarType compute)
    : Transformer(shape_of(options), compute), options_(options) {
  const std::int64_t width = options_.width;
  if (options_.hidden == 0) options_.hidden = 4 * width;
  InitialWeights initial(seed);
  token_embedding_ = register_parameter(
      "token_embedding", initial.normal({options_.vocabulary, width}, options_.embedding_deviation));
  position_embedding_ = register_parameter(
      "position_embedding", initial.normal({options_.length, width}, options_.embedding_deviation));
  for (std::int64_t b = 0; b < options_.blocks; ++b) {
    const auto linear = [&](const char* part, std::int64_t outputs, std::int64_t inputs) {
      return add_weight(block_name(b, part), initial, outputs, inputs);
    };
    const auto norm = [&](const char* part) {
      return register_parameter(block_name(b, part), at::ones({width}, at::kFloat));
    };
    Block block;
    block.query_key_value = linear("query_key_value", 3 * width, width);
    block.output.weight = linear("output", width, width);
    block.attention_norm.weight = norm("attention_norm");
    block.up.weight = linear("up", options_.hidden, width);
    block.down.weight = linear("down", width, options_.hidden);
    block.mlp_norm.weight = norm("mlp_norm");
    add_block(block);
  }
  head_.weight = add_weight("head", initial, 1, width);
}

at::Tensor EncoderClassifier::embedded(const Batch& batch) const {
  if (token_embedding_.is_cuda() && has_embedding_on_gpu(token_embedding_, batch.tokens, compute()))
    return embedded_on_gpu(token_embedding_, position_embedding_, batch.tokens, batch.positions, compute());
  return (at::embedding(token_embedding_, batch.tokens) + at::embedding(position_embedding_, batch.positions))
      .to(compute());
}

at::Tensor EncoderClassifier::first_rows(const at::Tensor& rows, const Batch& batch) const {
  return rows.index_select(0, batch.offsets.narrow(0, 0, batch.sequences()));
}

at::Tensor EncoderClassifier::answer(const at::Tensor& first, const Batch& batch) const {
  return linear(first.narrow(0, 0, batch.samples()), head_);  // without the filler
}

AttentionDropout EncoderClassifier::attention_dropout(std::int64_t block, const at::Tensor& keys,
                                                      const Batch& batch) const {
  return {options_.dropout,
          keys,
          encoder_site(block, attention_site),
          batch.dropout_seed,
          batch.first_sample,
          block,
          batch.all_samples};
}

Transformer::Rows EncoderClassifier::after_attention(const Block& block, std::int64_t index,
                                                     const at::Tensor& x, const at::Tensor& mixed,
                                                     const at::Tensor& keys, const Block*) const {
  const double p = options_.dropout;
  const NormedRows y = residual_norm(x, linear(mixed, block.output), block.attention_norm.weight,
                                     {p, keys, encoder_site(index, residual_site)});
  const NormedRows z = residual_norm(y.passed, linear(plain_gelu(linear(y.normed, block.up)), block.down),
                                     block.mlp_norm.weight, {p, keys, encoder_site(index, mlp_site)});
  return {z.passed, z.normed};
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

}  // namespace attmirror::deep
