#include "deep/initial_weights.hpp"
#include "deep/keyed_dropout.hpp"
#include "deep/network_kernels.hpp"
#include "deep/option_checks.hpp"
#include "deep/packed_attention.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/deep/vit.hpp>

#include <cmath>

#include <ATen/ATen.h>
#include <fmt/format.h>

namespace attmirror::deep {

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

Transformer::AttentionShape VisionTransformer::shape_of(const VitOptions& options) {
  options.validate();
  return {.heads = options.heads,
          .head_width = options.head_width,
          .kind = options.attention,
          .last_block = options.last_block};
}

Transformer::Affine VisionTransformer::add_norm(const std::string& name) {
  Affine map;
  map.weight = register_parameter(name, at::ones({options_.width}, at::kFloat));
  map.bias = register_parameter(name + "_bias", at::zeros({options_.width}, at::kFloat));
  return map;
}

VisionTransformer::VisionTransformer(const VitOptions& options, std::optional<std::uint64_t> seed,
                                     at::ScalarType compute)
    : Transformer(shape_of(options), compute), options_(options) {
  InitialWeights initial(seed);
  const std::int64_t width = options_.width, inner = options_.heads * options_.head_width;
  patch_embedding_ = add_affine("patch_embedding", initial, width, options_.patch_numbers());
  class_token_ = register_parameter("class_token", initial.normal({width}));
  position_embedding_ = register_parameter("position_embedding", initial.normal({options_.tokens(), width}));
  for (std::int64_t b = 0; b < options_.blocks; ++b) {
    const auto name = [&](const char* part) { return block_name(b, part); };
    Block block;
    block.attention_norm = add_norm(name("attention_norm"));
    block.query_key_value = add_weight(name("query_key_value"), initial, 3 * inner, width);
    block.output = add_affine(name("output"), initial, width, inner);
    block.mlp_norm = add_norm(name("mlp_norm"));
    block.up = add_affine(name("up"), initial, options_.hidden, width);
    block.down = add_affine(name("down"), initial, width, options_.hidden);
    add_block(block);
  }
  head_norm_ = add_norm("head_norm");
  head_ = add_affine("head", initial, options_.classes, width);
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

at::Tensor VisionTransformer::norm(const at::Tensor& x, const Affine& map) const {
  return at::layer_norm(x, {x.size(1)}, map.weight.to(x.scalar_type()), map.bias.to(x.scalar_type()))
      .to(compute());
}

at::Tensor VisionTransformer::embedded(const Batch& batch) const {
  const std::int64_t samples = batch.images.size(0), side = options_.image / options_.patch,
                     patch = options_.patch, width = options_.width;
  const at::Tensor patches = batch.images.to(compute())
                                 .reshape({samples, options_.channels, side, patch, side, patch})
                                 .permute({0, 2, 4, 1, 3, 5})
                                 .reshape({samples, side * side, options_.patch_numbers()});
  const Dropout dropout{options_.dropout, batch.dropout_keys, vit_embedding_site};
  if (position_embedding_.is_cuda() && has_patches_on_gpu(position_embedding_, samples, compute()))
    return patches_on_gpu(
        {linear(patches.flatten(0, 1), {patch_embedding_.weight, {}}), patch_embedding_.bias}, class_token_,
        position_embedding_, dropout);
  const at::Tensor mapped = linear(patches, patch_embedding_);
  const at::Tensor first = class_token_.to(compute()).expand({samples, 1, width});
  // The sum takes the type of the positions: float32 beside brief arithmetic.
  const at::Tensor x = at::cat({first, mapped}, 1) + position_embedding_;
  return dropped(x.view({samples * options_.tokens(), width}), dropout);
}

at::Tensor VisionTransformer::first_rows(const at::Tensor& rows, const Batch& batch) const {
  return rows.view({batch.images.size(0), options_.tokens(), -1}).select(1, 0);
}

at::Tensor VisionTransformer::answer(const at::Tensor& first, const Batch&) const {
  return linear(norm(first, head_norm_), head_);
}

Transformer::Rows VisionTransformer::entered(const Block& first, const at::Tensor& x) const {
  const NormedRows rows =
      sum_and_norm(x, {}, {first.attention_norm.weight, first.attention_norm.bias}, {}, compute());
  return {rows.passed, rows.normed};
}

AttentionDropout VisionTransformer::attention_dropout(std::int64_t, const at::Tensor&, const Batch&) const {
  return {};
}

Transformer::Rows VisionTransformer::after_attention(const Block& block, std::int64_t index,
                                                     const at::Tensor& x, const at::Tensor& mixed,
                                                     const at::Tensor& keys, const Block* next) const {
  const auto dropout = [&](VitSite which) { return Dropout{options_.dropout, keys, vit_site(index, which)}; };
  // Where kernels of ours go over the rows next, they add the biases.
  const bool apart = takes_branch_bias(x, compute());
  const auto branch = [&](const at::Tensor& rows, const Transformer::Affine& map) {
    return apart ? Branch{linear(rows, {map.weight, {}}), map.bias} : Branch{linear(rows, map), {}};
  };
  const NormedRows y =
      sum_and_norm(x, branch(mixed, block.output), {block.mlp_norm.weight, block.mlp_norm.bias},
                   dropout(vit_output_site), compute());
  at::Tensor hidden;
  if (takes_gelu_bias(y.normed, options_.hidden))
    hidden = dropped_gelu(linear(y.normed, {block.up.weight, {}}), block.up.bias, dropout(vit_hidden_site));
  else
    hidden = dropped_gelu(linear(y.normed, block.up), {}, dropout(vit_hidden_site));
  if (next == nullptr) return {y.passed + dropped(linear(hidden, block.down), dropout(vit_mlp_site)), {}};
  const NormedRows z = sum_and_norm(y.passed, branch(hidden, block.down),
                                    {next->attention_norm.weight, next->attention_norm.bias},
                                    dropout(vit_mlp_site), compute());
  return {z.passed, z.normed};
}

// Forward 2 operations a weight and row, and 4 length x heads x head_width per row in attention; backward twice that,
// but for the map of patches once: nobody asks for the gradient of an image.
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

}  // namespace attmirror::deep
