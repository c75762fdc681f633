#include "base/random.hpp"
#include "deep/host_tensor.hpp"
#include <attmirror/deep/network.hpp>

#include <ATen/ATen.h>

namespace attmirror::deep {

Batch Batch::to(at::Device device) const {
  Batch moved = *this;
  for (at::Tensor* tensor :
       {&moved.tokens, &moved.positions, &moved.images, &moved.offsets, &moved.labels, &moved.dropout_keys})
    if (tensor->defined()) *tensor = tensor->to(device, tensor->scalar_type(), /*non_blocking=*/true);
  return moved;
}

at::Tensor dropout_keys(const DropoutPlace& place, std::span<const std::int64_t> samples,
                        std::span<const std::int64_t> lengths) {
  std::int64_t rows = 0;
  for (const std::int64_t length : lengths) rows += length;
  at::Tensor keys = host_tensor(rows, at::kLong);
  auto* key = keys.data_ptr<std::int64_t>();
  const CounterRandom random(place.seed, RandomStream::deep_dropout);
  const std::uint64_t step_key = random.bits(static_cast<std::uint64_t>(place.step));
  for (std::size_t i = 0; i < samples.size(); ++i) {
    // Philox once a sample; the places within it are a Weyl sequence through a full 64-bit mixing (that of SplitMix64).
    const std::uint64_t sample_key =
        CounterRandom(step_key, RandomStream::deep_dropout).bits(static_cast<std::uint64_t>(samples[i]));
    for (std::int64_t t = 0; t < lengths[i]; ++t) {
      std::uint64_t x = sample_key + static_cast<std::uint64_t>(t + 1) * 0x9E3779B97F4A7C15u;
      x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
      x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
      *key++ = static_cast<std::int64_t>(x ^ (x >> 31));
    }
  }
  return keys;
}

at::Tensor summed_loss(const at::Tensor& logits, const at::Tensor& labels) {
  if (logits.size(1) == 1)
    return at::binary_cross_entropy_with_logits(logits.squeeze(1), labels.to(logits.scalar_type()), {}, {},
                                                at::Reduction::Sum);
  return at::nll_loss(at::log_softmax(logits, 1), labels, {}, at::Reduction::Sum);
}

at::Tensor correct(const at::Tensor& logits, const at::Tensor& labels) {
  const at::Tensor answer = logits.size(1) == 1 ? logits.squeeze(1).gt(0).to(at::kLong) : logits.argmax(1);
  return answer.eq(labels).to(at::kLong);
}

}  // namespace attmirror::deep
