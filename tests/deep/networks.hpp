// Small networks and batches, for the tests of this room.
#pragma once

#include "base/random.hpp"
#include "deep/tensors.hpp"
#include <attmirror/deep.hpp>

#include <cstdint>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include <ATen/ATen.h>

namespace attmirror::deep_tests {

inline am::EncoderOptions small_encoder(double dropout = 0) {
  am::EncoderOptions options;
  options.vocabulary = 23;
  options.length = 9;
  options.width = 12;
  options.blocks = 2;
  options.heads = 3;
  options.hidden = 20;
  options.dropout = dropout;
  return options;
}

inline am::VitOptions small_vit(double dropout = 0) {
  am::VitOptions options;
  options.image = 6;
  options.patch = 2;
  options.channels = 3;
  options.classes = 4;
  options.width = 10;
  options.blocks = 2;
  options.heads = 3;
  options.head_width = 4;
  options.hidden = 14;
  options.dropout = dropout;
  return options;
}

// Texts of these lengths, ids and labels by chance.
inline TokenSet small_texts(const std::vector<std::int64_t>& lengths, std::int64_t vocabulary) {
  TokenSet set;
  set.vocabulary = vocabulary;
  const CounterRandom random(5, RandomStream::sentences);
  for (const std::int64_t length : lengths) {
    set.length = std::max(set.length, length);
    for (std::int64_t t = 0; t < length; ++t)
      set.ids.push_back(
          static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(vocabulary), set.ids.size())));
    set.offsets.push_back(static_cast<std::int64_t>(set.ids.size()));
    set.labels.push_back(static_cast<std::int32_t>(random.below(2, 1'000'000 + set.labels.size())));
  }
  return set;
}

inline std::vector<std::int64_t> all_rows(const TokenSet& set) {
  std::vector<std::int64_t> rows(static_cast<std::size_t>(set.rows()));
  std::iota(rows.begin(), rows.end(), 0);
  return rows;
}

// Images of normal numbers, as rows of a batch for a network with these options.
inline am::Batch small_images(const am::VitOptions& options, std::int64_t samples,
                              std::optional<am::DropoutPlace> dropout = {}) {
  am::Batch batch;
  const std::int64_t tokens = options.tokens();
  batch.images = random({samples, options.channels, options.image, options.image}, 11);
  batch.labels = at::arange(samples, at::kLong).remainder(options.classes);
  batch.offsets = (at::arange(samples + 1, at::kInt) * tokens).to(at::kInt);
  batch.longest = tokens;
  batch.row_count = samples * tokens;
  if (dropout) {
    std::vector<std::int64_t> rows(static_cast<std::size_t>(samples));
    std::iota(rows.begin(), rows.end(), 0);
    batch.dropout_keys = am::dropout_keys(
        *dropout, rows, std::vector<std::int64_t>(static_cast<std::size_t>(samples), tokens));
  }
  return batch;
}

// In double, parameters and arithmetic: what rounding does not blur. (The network must compute in kDouble.)
inline void widen(am::Network& network) { network.to(at::kDouble); }

// Gradients of the summed loss by name. An undefined one (a parameter that nothing depends on) is 0.
inline std::map<std::string, at::Tensor> loss_gradients(am::Network& network, const am::Batch& batch) {
  network.zero_grad();
  am::summed_loss(network.logits(batch), batch.labels).backward();
  std::map<std::string, at::Tensor> result;
  for (const auto& parameter : network.named_parameters())
    result[parameter.key()] = parameter.value().grad().defined() ? parameter.value().grad().clone()
                                                                 : at::zeros_like(parameter.value());
  return result;
}

inline void expect_close(const std::map<std::string, at::Tensor>& a,
                         const std::map<std::string, at::Tensor>& b, double tolerance) {
  ASSERT_EQ(a.size(), b.size());
  for (const auto& [name, value] : a) {
    const double size = b.at(name).to(at::kDouble).norm().item<double>();
    EXPECT_GT(size, 0) << name;
    EXPECT_LE((value - b.at(name)).to(at::kDouble).norm().item<double>(), tolerance * size) << name;
  }
}

}  // namespace attmirror::deep_tests
