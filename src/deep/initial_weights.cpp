#include "deep/initial_weights.hpp"

#include "base/random.hpp"

#include <cmath>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

namespace attmirror::deep {

namespace {

constexpr std::uint64_t numbers_per_parameter = std::uint64_t{1} << 40;

template <class Number>
at::Tensor filled(at::IntArrayRef shape, std::uint64_t first, const Number& number) {
  at::Tensor tensor = at::empty(shape, at::kFloat);
  auto* data = tensor.data_ptr<float>();
  at::parallel_for(0, tensor.numel(), 4096, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      data[i] = static_cast<float>(number(first + static_cast<std::uint64_t>(i)));
  });
  return tensor;
}

}  // namespace

at::Tensor InitialWeights::normal(at::IntArrayRef shape, double deviation) {
  if (!seed_) return at::zeros(shape, at::kFloat);
  const CounterRandom random(*seed_, RandomStream::deep_init);
  return filled(shape, numbers_per_parameter * parameter_++,
                [&](std::uint64_t i) { return deviation * random.normal(i); });
}

at::Tensor InitialWeights::linear(at::IntArrayRef shape, std::int64_t inputs) {
  if (!seed_) return at::zeros(shape, at::kFloat);
  const CounterRandom random(*seed_, RandomStream::deep_init);
  const double bound = 1 / std::sqrt(static_cast<double>(inputs));
  return filled(shape, numbers_per_parameter * parameter_++,
                [&](std::uint64_t i) { return bound * (2 * random.uniform(i) - 1); });
}

}  // namespace attmirror::deep
