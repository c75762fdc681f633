// torch.randn on the CPU, number for number, without torch.
//
// The papers' experiments are defined by `torch.Generator().manual_seed(seed)` and the order of the calls to
// randn, so their data can be had again only by a generator that draws as torch does. It is a 32-bit Mersenne
// twister, used in two ways:
//
//   fewer than 16 numbers: one by one, Box-Muller in double precision from two 53-bit uniforms, rounded to
//     float. A pair makes two numbers; the second waits in a cache, which outlives the call.
//   16 or more: in blocks of 16. Fill all with 24-bit uniforms, then turn numbers j and j + 8 of each block
//     into a pair of normals in single precision. If the count is no multiple of 16, the LAST 16 numbers
//     (which overlap the last whole block) are drawn and transformed anew.
//
// Long draws repeat the single-precision logarithm, sine and cosine of torch's AVX2 code, rounding by
// rounding. Which operations are fused there was inferred: of the variants tried, this one alone gives the
// golden data of 30 seeds (n, T, d = 6, 8, 10; 16,500 numbers) to the last bit. torch on other processors may
// differ in the last bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <vector>

namespace attmirror {

class TorchGenerator {
 public:
  // Like manual_seed: the Mersenne twister takes the lower 32 bits.
  explicit TorchGenerator(std::uint64_t seed);

  // What torch.randn(count, generator=g) returns next.
  std::vector<float> randn(std::size_t count);

 private:
  float uniform24();
  double uniform53();
  double normal();

  std::mt19937 engine_;
  std::optional<double> cached_normal_;
};

}  // namespace attmirror
