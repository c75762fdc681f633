#include <attmirror/data/torch_random.hpp>

#include <cmath>
#include <numbers>

namespace attmirror {
namespace {

constexpr std::size_t block_size = 16;

// Uniforms in block[0..15] become normals: u1 = 1 - block[j] lies in (0, 1], so its logarithm is finite.
void box_muller(float* block) {
  constexpr auto two_pi = static_cast<float>(2.0 * std::numbers::pi);
  for (std::size_t j = 0; j < block_size / 2; ++j) {
    const float u1 = 1.0f - block[j];
    const float u2 = block[j + block_size / 2];
    const float radius = std::sqrt(-2.0f * std::log(u1));
    const float angle = two_pi * u2;
    block[j] = radius * std::cos(angle);
    block[j + block_size / 2] = radius * std::sin(angle);
  }
}

}  // namespace

TorchGenerator::TorchGenerator(std::uint64_t seed) : engine_(static_cast<std::mt19937::result_type>(seed & 0xFFFFFFFF)) {}

float TorchGenerator::uniform24() { return static_cast<float>(engine_() & 0xFFFFFF) * 0x1p-24f; }

double TorchGenerator::uniform53() {
  const std::uint64_t high = engine_();
  const std::uint64_t low = engine_();
  return static_cast<double>(((high << 32) | low) & ((std::uint64_t{1} << 53) - 1)) * 0x1p-53;
}

double TorchGenerator::normal() {
  if (cached_normal_) {
    const double value = *cached_normal_;
    cached_normal_.reset();
    return value;
  }
  const double u1 = uniform53();
  const double u2 = uniform53();
  const double radius = std::sqrt(-2.0 * std::log1p(-u2));
  const double angle = 2.0 * std::numbers::pi * u1;
  cached_normal_ = radius * std::sin(angle);
  return radius * std::cos(angle);
}

std::vector<float> TorchGenerator::randn(std::size_t count) {
  std::vector<float> values(count);
  if (count < block_size) {
    for (float& value : values) value = static_cast<float>(normal());
    return values;
  }
  for (float& value : values) value = uniform24();
  for (std::size_t start = 0; start + block_size <= count; start += block_size) box_muller(values.data() + start);
  if (count % block_size != 0) {
    float* const last = values.data() + (count - block_size);
    for (std::size_t j = 0; j < block_size; ++j) last[j] = uniform24();
    box_muller(last);
  }
  return values;
}

}  // namespace attmirror
