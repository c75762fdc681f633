#include "deep/attention_parts.hpp"
#include "deep/initial_weights.hpp"
#include "deep/option_checks.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/deep/keyed_dropout.hpp>
#include <attmirror/deep/vit.hpp>

#include <cmath>

#include <ATen/ATen.h>
#include <fmt/format.h>

namespace attmirror::torch {

namespace {

// The dropouts of a network: site 0 is that of the embedding, those of block b are 4 (b + 1) + these.
enum VitSite : std::uint32_t { vit_output_site, vit_hidden_site, vit_mlp_site, vit_sites_per_block = 4 };
constexpr std::uint32_t vit_embedding_site = 0;

std::uint32_t vit_site(std::int64_t block, VitSite which) {
  return static_cast<std::uint32_t>(block + 1) * vit_sites_per_block + which;
}

}  // namespace

void VitOptions::validate() const {
  check_at_least("image", image, 1);
  check_at_least("patch", patch, 1);
  check_at_least("channels", channels, 1);
  check_at_least("classes", classes, 2);
  check_at_least("width", width, 1);
  check_at_least("blocks", blocks, 1);
  check_at_least("heads", heads, 1);
  check_at_least("head_width", head_width, 1);
  check_at_least("hidden", hidden, 1);
  check_at_most("heads", heads, 1 << 12);
  if (image % patch != 0)
    throw bad_input(fmt::format("patch is {}: expected a divisor of image, {}", patch, image));
  if (image / patch >= 1 << 10)
    throw bad_input(
        fmt::format("patch is {}: expected fewer than 1024 patches along an image of {}", patch, image));
  check_dropout(dropout);
}

double VitOptions::parameters() const {
  const auto w = static_cast<double>(width), h = static_cast<double>(hidden),
             c = static_cast<double>(classes);
  const double inner = static_cast<double>(heads) * static_cast<double>(head_width);
  const double patch_embedding = (static_cast<double>(patch_numbers()) + 1) * w;
  const double embeddings = (static_cast<double>(tokens()) + 1) * w;  // of positions, and the class token
  const double block = 2 * w + 3 * inner * w + (inner + 1) * w + 2 * w + (w + 1) * h + (h + 1) * w;
  return patch_embedding + embeddings + static_cast<double>(blocks) * block + 2 * w + (w + 1) * c;
}

VisionTransformer::VisionTransformer(const VitOptions& options, std::optional<std::uint64_t> seed,
                                     ::at::ScalarType compute)
    : options_(options), compute_(compute) {
  options_.validate();
  InitialWeights initial(seed);
  const auto linear = [&](const std::string& name, std::int64_t outputs, std::int64_t inputs) {
    Affine map;
    map.weight = register_parameter(name, initial.linear({outputs, inputs}, inputs));
    map.bias = register_parameter(name + "_bias", initial.linear({outputs}, inputs));
    return map;
  };
  const std::int64_t width = options_.width, inner = options_.heads * options_.head_width;
  const auto norm = [&](const std::string& name) {
    Affine map;
    map.weight = register_parameter(name, ::at::ones({width}, ::at::kFloat));
    map.bias = register_parameter(name + "_bias", ::at::zeros({width}, ::at::kFloat));
    return map;
  };
  patch_embedding_ = linear("patch_embedding", width, options_.patch_numbers());
  class_token_ = register_parameter("class_token", initial.normal({width}));
  position_embedding_ = register_parameter("position_embedding", initial.normal({options_.tokens(), width}));
  for (std::int64_t b = 0; b < options_.blocks; ++b) {
    const auto name = [&](const char* part) { return fmt::format("block{}_{}", b, part); };
    Block block;
    block.attention_norm = norm(name("attention_norm"));
    block.query_key_value =
        register_parameter(name("query_key_value"), initial.linear({3 * inner, width}, width));
    block.output = linear(name("output"), width, inner);
    block.mlp_norm = norm(name("mlp_norm"));
    block.up = linear(name("up"), options_.hidden, width);
    block.down = linear(name("down"), width, options_.hidden);
    blocks_.push_back(block);
  }
  head_norm_ = norm("head_norm");
  head_ = linear("head", options_.classes, width);
}

void VisionTransformer::check(const Batch& batch) const {
  const std::int64_t size = options_.image;
  if (!batch.images.defined() || batch.images.dim() != 4) throw bad_input("a batch without images");
  if (batch.images.size(1) != options_.channels || batch.images.size(2) != size ||
      batch.images.size(3) != size)
    throw bad_input(fmt::format("images have {} channels of {} x {} pixels: expected {} of {} x {}",
                                batch.images.size(1), batch.images.size(2), batch.images.size(3),
                                options_.channels, size, size));
  if (batch.row_count != batch.images.size(0) * options_.tokens())
    throw bad_input(fmt::format("a batch of {} images has {} rows: expected {} an image",
                                batch.images.size(0), batch.row_count, options_.tokens()));
}

::at::Tensor VisionTransformer::linear(const ::at::Tensor& x, const ::at::Tensor& weight,
                                       const ::at::Tensor& bias) const {
  return ::at::linear(x, weight.to(compute_), bias.defined() ? bias.to(compute_) : bias);
}

::at::Tensor VisionTransformer::norm(const ::at::Tensor& x, const Affine& map) const {
  return ::at::layer_norm(x, {x.size(1)}, map.weight.to(x.scalar_type()), map.bias.to(x.scalar_type()))
      .to(compute_);
}

::at::Tensor VisionTransformer::embedded(const Batch& batch) const {
  const std::int64_t samples = batch.images.size(0), side = options_.image / options_.patch,
                     patch = options_.patch, width = options_.width;
  const ::at::Tensor patches = batch.images.to(compute_)
                                   .reshape({samples, options_.channels, side, patch, side, patch})
                                   .permute({0, 2, 4, 1, 3, 5})
                                   .reshape({samples, side * side, options_.patch_numbers()});
  const ::at::Tensor mapped = linear(patches, patch_embedding_.weight, patch_embedding_.bias);
  const ::at::Tensor first = class_token_.to(compute_).expand({samples, 1, width});
  // The sum takes the type of the positions: float32 beside brief arithmetic.
  const ::at::Tensor x = ::at::cat({first, mapped}, 1) + position_embedding_;
  return dropped(x.view({samples * options_.tokens(), width}),
                 {options_.dropout, batch.dropout_keys, vit_embedding_site});
}

// The parts of a weight [parts heads head_width, width] applied to x: [rows, heads, head_width] each.
std::vector<::at::Tensor> VisionTransformer::projected(const ::at::Tensor& x,
                                                       const ::at::Tensor& weight) const {
  const std::int64_t parts = weight.size(0) / (options_.heads * options_.head_width);
  return linear(x, weight).view({x.size(0), parts, options_.heads, options_.head_width}).unbind(1);
}

::at::Tensor VisionTransformer::after_attention(const Block& block, std::int64_t index, const ::at::Tensor& x,
                                                const ::at::Tensor& mixed, const ::at::Tensor& keys) const {
  const auto dropout = [&](VitSite which) { return Dropout{options_.dropout, keys, vit_site(index, which)}; };
  const ::at::Tensor y =
      x + dropped(linear(mixed.flatten(1), block.output.weight, block.output.bias), dropout(vit_output_site));
  const ::at::Tensor hidden = ::at::gelu(linear(norm(y, block.mlp_norm), block.up.weight, block.up.bias));
  return y + dropped(linear(dropped(hidden, dropout(vit_hidden_site)), block.down.weight, block.down.bias),
                     dropout(vit_mlp_site));
}

::at::Tensor VisionTransformer::block_output(const Block& block, std::int64_t index, const ::at::Tensor& x,
                                             const Batch& batch) const {
  const auto parts = projected(norm(x, block.attention_norm), block.query_key_value);
  const PackedRows rows{batch.offsets, options_.tokens()};
  const ::at::Tensor mixed =
      packed_attention(parts[0], parts[1], parts[2], rows, rows, {}, options_.attention);
  return after_attention(block, index, x, mixed, batch.dropout_keys);
}

// The block for the class tokens alone: [samples, width].
::at::Tensor VisionTransformer::first_token_output(const Block& block, std::int64_t index,
                                                   const ::at::Tensor& x, const Batch& batch) const {
  const std::int64_t samples = batch.images.size(0), tokens = options_.tokens(),
                     inner = options_.heads * options_.head_width;
  const auto firsts = [&](const ::at::Tensor& rows) { return rows.view({samples, tokens, -1}).select(1, 0); };
  const auto weights = block.query_key_value.split({inner, 2 * inner}, 0);
  const ::at::Tensor normed = norm(x, block.attention_norm);
  const ::at::Tensor query = projected(firsts(normed), weights[0])[0];
  const auto parts = projected(normed, weights[1]);
  const PackedRows one_each{::at::arange(samples + 1, batch.offsets.options()), 1};
  const ::at::Tensor mixed =
      packed_attention(query, parts[0], parts[1], one_each, {batch.offsets, tokens}, {}, options_.attention);
  const ::at::Tensor keys =
      batch.dropout_keys.defined() ? firsts(batch.dropout_keys).squeeze(1).contiguous() : ::at::Tensor();
  return after_attention(block, index, firsts(x), mixed, keys);
}

::at::Tensor VisionTransformer::logits(const Batch& batch) {
  check(batch);
  ::at::Tensor x = embedded(batch);
  const bool first_token_only = options_.last_block == LastBlock::first_token;
  for (std::int64_t b = 0; b < options_.blocks; ++b) {
    const Block& block = blocks_[static_cast<std::size_t>(b)];
    if (first_token_only && b + 1 == options_.blocks)
      x = first_token_output(block, b, x, batch);
    else
      x = block_output(block, b, x, batch);
  }
  if (!first_token_only) x = x.view({batch.images.size(0), options_.tokens(), -1}).select(1, 0);
  const ::at::Tensor result = linear(norm(x, head_norm_), head_.weight, head_.bias);
  return compute_ == ::at::kDouble ? result : result.to(::at::kFloat);
}

std::vector<::at::Tensor> VisionTransformer::attention_maps(const Batch& one) {
  check(one);
  const Batch batch = shown_batch(one);
  const ::at::NoGradGuard no_gradients;
  std::vector<::at::Tensor> maps;
  ::at::Tensor x = embedded(batch);
  for (std::int64_t b = 0; b < options_.blocks; ++b) {
    const Block& block = blocks_[static_cast<std::size_t>(b)];
    const auto parts = projected(norm(x, block.attention_norm), block.query_key_value);
    maps.push_back(attention_probabilities(parts[0], parts[1]));
    x = block_output(block, b, x, batch);
  }
  return maps;
}

std::vector<Projection> VisionTransformer::projections() const {
  std::vector<Projection> result;
  for (std::int64_t b = 0; b < options_.blocks; ++b)
    add_projections(result, b, blocks_[static_cast<std::size_t>(b)].query_key_value);
  return result;
}

// Forward 2 operations a weight and row, and 4 length x heads x head_width per row in attention; backward twice that, but
// for the map of patches once: nobody asks for the gradient of an image.
double VisionTransformer::training_flops(std::span<const std::int64_t> lengths) const {
  const auto width = static_cast<double>(options_.width), hidden = static_cast<double>(options_.hidden);
  const auto inner = static_cast<double>(options_.heads * options_.head_width);
  const double weights = 4 * width * inner + 2 * width * hidden;
  double flops = 0;
  for (const std::int64_t length : lengths) {
    const auto rows = static_cast<double>(length);
    flops += 2 * 2 * (rows - 1) * static_cast<double>(options_.patch_numbers()) * width;
    flops += 3 * static_cast<double>(options_.blocks) * (2 * weights * rows + 4 * rows * rows * inner);
    flops += 3 * 2 * width * static_cast<double>(options_.classes);
  }
  return flops;
}

}  // namespace attmirror::torch
