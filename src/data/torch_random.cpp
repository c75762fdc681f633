#include "data/torch_random.hpp"

#include <bit>
#include <cmath>
#include <numbers>

// The elementary functions below are those of Cephes (S. Moshier) for single precision, in the order of
// operations and with the fused multiply-adds of torch's AVX2 build: rounding errors are part of the
// published data, and this repeats each of them. They are good to a few units in the last place and must not
// be "improved".
namespace attmirror {
namespace {

constexpr std::size_t block_size = 16;

// log x for normal x > 0. With x = 2^e (1 + f), sqrt(1/2) <= 1 + f < sqrt(2):
//   log x = e log 2 + f - f^2/2 + f^3 P(f), and log 2 is split into 0.693359375 (few bits, exact products)
//   and the rest.
float log_as_torch(float x) {
  constexpr float coefficients[] = {-1.1514610310e-1f, 1.1676998740e-1f, -1.2420140846e-1f, 1.4249322787e-1f,
                                    -1.6668057665e-1f, 2.0000714765e-1f, -2.4999993993e-1f, 3.3333331174e-1f};
  const auto bits = std::bit_cast<std::uint32_t>(x);
  float e = static_cast<float>(static_cast<std::int32_t>(bits >> 23) - 126);
  const float mantissa = std::bit_cast<float>((bits & 0x007FFFFFu) | 0x3F000000u);  // in [1/2, 1)
  float f = mantissa - 1.0f;
  if (mantissa < 0.707106781186547524f) {
    e -= 1.0f;
    f += mantissa;
  }
  const float square = f * f;
  float P = 7.0376836292e-2f;
  for (const float coefficient : coefficients) P = std::fma(P, f, coefficient);
  float rest = std::fma(P * f, square, e * -2.12194440e-4f);
  rest = std::fma(square, -0.5f, rest);
  return std::fma(e, 0.693359375f, f + rest);
}

struct SinCos {
  float sin, cos;
};

// For angle >= 0. Reduces to r in [-pi/4, pi/4] by subtracting an even multiple of pi/4, with pi/4 split into
// three parts, and evaluates both polynomials; the octant says which one is the sine, and the signs.
SinCos sincos_as_torch(float angle) {
  const std::int32_t octant = (static_cast<std::int32_t>(angle * 1.27323954473516f) + 1) & ~1;
  const auto multiple = static_cast<float>(octant);
  float r = std::fma(multiple, -0.78515625f, angle);
  r = std::fma(multiple, -2.4187564849853515625e-4f, r);
  r = std::fma(multiple, -3.77489497744594108e-8f, r);
  const float square = r * r;
  float C = std::fma(2.443315711809948e-5f, square, -1.388731625493765e-3f);
  C = std::fma(C, square, 4.166664568298827e-2f);
  const float near_one = std::fma(C * square, square, -(square * 0.5f)) + 1.0f;
  float S = std::fma(-1.9515295891e-4f, square, 8.3321608736e-3f);
  S = std::fma(S, square, -1.6666654611e-1f);
  const float near_zero = std::fma(S * square, r, r);
  const bool swapped = (octant & 2) != 0;
  const float sine = swapped ? near_one : near_zero, cosine = swapped ? near_zero : near_one;
  return {(octant & 4) != 0 ? -sine : sine, (~(octant - 2) & 4) != 0 ? -cosine : cosine};
}

// Uniforms in block[0..15] become normals: u1 = 1 - block[j] lies in (0, 1], so its logarithm is finite.
void box_muller(float* block) {
  constexpr auto two_pi = static_cast<float>(2.0 * std::numbers::pi);
  for (std::size_t j = 0; j < block_size / 2; ++j) {
    const float u1 = 1.0f - block[j];
    const float u2 = block[j + block_size / 2];
    const float radius = std::sqrt(-2.0f * log_as_torch(u1));
    const SinCos direction = sincos_as_torch(two_pi * u2);
    block[j] = radius * direction.cos;
    block[j + block_size / 2] = radius * direction.sin;
  }
}

}  // namespace

TorchGenerator::TorchGenerator(std::uint64_t seed)
    : engine_(static_cast<std::mt19937::result_type>(seed & 0xFFFFFFFF)) {}

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
  for (std::size_t start = 0; start + block_size <= count; start += block_size)
    box_muller(values.data() + start);
  if (count % block_size != 0) {
    float* const last = values.data() + (count - block_size);
    for (std::size_t j = 0; j < block_size; ++j) last[j] = uniform24();
    box_muller(last);
  }
  return values;
}

}  // namespace attmirror
