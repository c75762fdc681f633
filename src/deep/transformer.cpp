#include "base/words.hpp"
#include "deep/initial_weights.hpp"
#include "deep/network_kernels.hpp"
#include "deep/packed_attention.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/deep/transformer.hpp>

#include <cmath>

#include <ATen/ATen.h>
#include <fmt/format.h>

namespace attmirror::deep {

namespace {

// A batch whose attention can be shown: of one sample, and without dropout.
Batch shown_batch(const Batch& one) {
  if (one.sequences() != 1)
    throw bad_input(fmt::format("a batch of {} samples has no one attention map", one.sequences()));
  Batch batch = one;
  batch.dropout_keys = at::Tensor();
  return batch;
}

// softmax(Q K^T / sqrt(width)) of one sample's queries [queries, heads, width] and keys [rows, heads, width]:
// [heads, queries, rows].
at::Tensor shown_probabilities(const at::Tensor& query, const at::Tensor& key) {
  const at::Tensor q = query.to(at::kFloat), k = key.to(at::kFloat);
  const at::Tensor scores = at::matmul(q.transpose(0, 1), k.permute({1, 2, 0}));
  return at::softmax(scores / std::sqrt(static_cast<double>(query.size(2))), -1);
}

}  // namespace

std::string_view to_string(AttentionKind kind) {
  switch (kind) {
    case AttentionKind::automatic:
      return "automatic";
    case AttentionKind::plain:
      return "plain";
    case AttentionKind::packed:
      return "packed";
    case AttentionKind::fused:
      return "fused";
  }
  return "unknown";
}

AttentionKind attention_kind(std::string_view text) {
  for (const AttentionKind kind :
       {AttentionKind::automatic, AttentionKind::plain, AttentionKind::packed, AttentionKind::fused})
    if (to_string(kind) == text) return kind;
  throw bad_input(fmt::format("attention is \"{}\": expected {}", text,
                              expected_choice(text, {"automatic", "plain", "packed", "fused"})));
}

std::string_view to_string(LastBlock last_block) {
  switch (last_block) {
    case LastBlock::first_token:
      return "first_token";
    case LastBlock::all_tokens:
      return "all_tokens";
  }
  return "unknown";
}

LastBlock last_block(std::string_view text) {
  for (const LastBlock value : {LastBlock::first_token, LastBlock::all_tokens})
    if (to_string(value) == text) return value;
  throw bad_input(fmt::format("last_block is \"{}\": expected {}", text,
                              expected_choice(text, {"first_token", "all_tokens"})));
}

// ---- parameters

std::string Transformer::block_name(std::int64_t block, std::string_view part) {
  return fmt::format("block{}_{}", block, part);
}

at::Tensor Transformer::add_weight(const std::string& name, InitialWeights& initial, std::int64_t outputs,
                                   std::int64_t inputs) {
  return register_parameter(name, initial.linear({outputs, inputs}, inputs));
}

Transformer::Affine Transformer::add_affine(const std::string& name, InitialWeights& initial,
                                            std::int64_t outputs, std::int64_t inputs) {
  Affine map;
  map.weight = add_weight(name, initial, outputs, inputs);
  map.bias = register_parameter(name + "_bias", initial.linear({outputs}, inputs));
  return map;
}

std::vector<Projection> Transformer::projections() const {
  std::vector<Projection> result;
  for (std::int64_t b = 0; b < block_count(); ++b) {
    const auto parts = block(b).query_key_value.detach().chunk(3, 0);
    result.push_back({b, 'K', parts[1]});
    result.push_back({b, 'Q', parts[0]});
    result.push_back({b, 'V', parts[2]});
  }
  return result;
}

// ---- the walk through the blocks

void Transformer::round_weights() {
  rounded_.clear();
  if (compute_ != at::kBFloat16 || !block(0).query_key_value.is_cuda()) return;
  std::vector<at::Tensor> weights;
  for (const Block& each : blocks_)
    for (const at::Tensor* weight : {&each.query_key_value, &each.output.weight, &each.output.bias,
                                     &each.up.weight, &each.up.bias, &each.down.weight, &each.down.bias})
      if (weight->defined()) weights.push_back(*weight);
  const std::vector<at::Tensor> brief = brief_on_gpu(weights);
  for (std::size_t i = 0; i < weights.size(); ++i) rounded_[weights[i].unsafeGetTensorImpl()] = brief[i];
}

const at::Tensor& Transformer::rounded(const at::Tensor& weight) const {
  const auto found = rounded_.find(weight.unsafeGetTensorImpl());
  return found == rounded_.end() ? weight : found->second;
}

at::Tensor Transformer::linear(const at::Tensor& x, const Affine& map) const {
  return at::linear(x, rounded(map.weight).to(compute_),
                    map.bias.defined() ? rounded(map.bias).to(compute_) : map.bias);
}

// The parts of a weight [parts heads head_width, width] applied to x: [rows, heads, head_width] each.
std::vector<at::Tensor> Transformer::projected(const at::Tensor& x, const at::Tensor& weight) const {
  const std::int64_t parts = weight.size(0) / (shape_.heads * shape_.head_width);
  return linear(x, {weight, {}}).view({x.size(0), parts, shape_.heads, shape_.head_width}).unbind(1);
}

Transformer::Rows Transformer::block_output(std::int64_t index, const Rows& rows, const Batch& batch) const {
  const auto parts = projected(rows.input, block(index).query_key_value);
  const PackedRows places{batch.offsets, longest(batch)};
  const at::Tensor mixed = packed_attention(parts[0], parts[1], parts[2], places, places,
                                            attention_dropout(index, batch.dropout_keys, batch), shape_.kind);
  return after_attention(block(index), index, rows.x, mixed.flatten(1), batch.dropout_keys, after(index));
}

// The block for the first token of each sample alone: [samples, width].
at::Tensor Transformer::first_token_output(std::int64_t index, const Rows& rows, const Batch& batch) const {
  const std::int64_t inner = shape_.heads * shape_.head_width;
  const auto weights = rounded(block(index).query_key_value).split({inner, 2 * inner}, 0);
  const at::Tensor &x = rows.x, &input = rows.input;
  const at::Tensor first = first_rows(x, batch);
  // Where x itself goes in, it is read once: gradients would be summed in another order otherwise, and have other bits.
  const at::Tensor asking = input.is_same(x) ? first : first_rows(input, batch);
  const std::int64_t samples = first.size(0);
  const at::Tensor keys = batch.dropout_keys.defined()
                              ? batch.dropout_keys.index_select(0, batch.offsets.narrow(0, 0, samples))
                              : at::Tensor();
  const at::Tensor query = projected(asking, weights[0])[0];
  const auto parts = projected(input, weights[1]);
  const PackedRows one_each{at::arange(samples + 1, batch.offsets.options()), 1};
  const at::Tensor mixed =
      packed_attention(query, parts[0], parts[1], one_each, {batch.offsets, longest(batch)},
                       attention_dropout(index, keys, batch), shape_.kind);
  return after_attention(block(index), index, first, mixed.flatten(1), keys, nullptr).x;
}

at::Tensor Transformer::logits(const Batch& batch) {
  check(batch);
  round_weights();
  Rows rows = entered(block(0), embedded(batch));
  const bool first_token_only = shape_.last_block == LastBlock::first_token;
  for (std::int64_t b = 0; b < block_count(); ++b) {
    if (first_token_only && b + 1 == block_count())
      rows.x = first_token_output(b, rows, batch);
    else
      rows = block_output(b, rows, batch);
  }
  const at::Tensor result = answer(first_token_only ? rows.x : first_rows(rows.x, batch), batch);
  rounded_.clear();
  return compute_ == at::kDouble ? result : result.to(at::kFloat);
}

std::vector<at::Tensor> Transformer::attention_maps(const Batch& one) {
  check(one);
  rounded_.clear();
  const Batch batch = shown_batch(one);
  const at::NoGradGuard no_gradients;
  std::vector<at::Tensor> maps;
  Rows rows = entered(block(0), embedded(batch));
  for (std::int64_t b = 0; b < block_count(); ++b) {
    const auto parts = projected(rows.input, block(b).query_key_value);
    maps.push_back(shown_probabilities(parts[0], parts[1]));
    rows = block_output(b, rows, batch);
  }
  return maps;
}

Transformer::AnsweringAttention Transformer::answering_attention(const Batch& batch) const {
  check(batch);
  const at::NoGradGuard no_gradients;
  Batch shown = batch;
  shown.dropout_keys = at::Tensor();
  const std::int64_t last = block_count() - 1, inner = shape_.heads * shape_.head_width;
  Rows rows = entered(block(0), embedded(shown));
  for (std::int64_t b = 0; b < last; ++b) rows = block_output(b, rows, shown);

  const auto weights = block(last).query_key_value.split({inner, inner, inner}, 0);
  const at::Tensor query = projected(first_rows(rows.input, shown), weights[0])[0];
  const at::Tensor key = projected(rows.input, weights[1])[0];
  const at::Tensor offsets = shown.offsets.to(at::kCPU);
  const auto* begin = offsets.data_ptr<std::int32_t>();
  AnsweringAttention result;
  for (std::int64_t s = 0; s < shown.samples(); ++s)
    result.probabilities.push_back(
        shown_probabilities(query.narrow(0, s, 1), key.slice(0, begin[s], begin[s + 1])).squeeze(1));
  result.logits = answer(first_token_output(last, rows, shown), shown);
  return result;
}

}  // namespace attmirror::deep
