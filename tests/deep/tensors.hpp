// What the tests of this room share: tensors from seeds, and gradients put in place.
#pragma once

#include <attmirror/base/error.hpp>
#include <attmirror/deep.hpp>

#include <cstdint>
#include <cstring>
#include <sstream>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/serialize.h>

namespace attmirror::deep_tests {

namespace am = attmirror::deep;
using Tensors = std::vector<at::Tensor>;

// Numbers of all sizes, from a seed.
inline at::Tensor random(at::IntArrayRef sizes, std::uint64_t seed, at::ScalarType type = at::kFloat,
                         double scale = 1) {
  at::Generator generator = at::detail::createCPUGenerator(seed);
  return (scale * at::randn(sizes, generator, at::TensorOptions().dtype(at::kDouble))).to(type);
}

inline at::Tensor leaf(const at::Tensor& values) { return values.detach().clone().set_requires_grad(true); }

inline void give_gradient(const at::Tensor& parameter, const at::Tensor& gradient) {
  parameter.mutable_grad() = gradient;
}

// |a - b| / |b|, norm-wise and in double.
inline double distance(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor wide = b.detach().to(at::kDouble);
  return ((a.detach().to(at::kDouble) - wide).norm() / wide.norm()).item<double>();
}

// As support/same_bits.hpp means it; at::equal() says that -0 is +0 and that a NaN is not itself.
inline bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor x = a.detach().contiguous(), y = b.detach().contiguous();
  return x.scalar_type() == y.scalar_type() && x.sizes() == y.sizes() &&
         std::memcmp(x.data_ptr(), y.data_ptr(), x.nbytes()) == 0;
}

inline std::string saved(const am::FusedOptimizer& optimizer) {
  torch::serialize::OutputArchive archive;
  optimizer.save(archive);
  std::ostringstream stream;
  archive.save_to(stream);
  return stream.str();
}

inline void load(am::FusedOptimizer& optimizer, const std::string& bytes) {
  std::istringstream stream(bytes);
  torch::load(optimizer, stream);
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// The message of the Error (bad input) that f throws.
template <class F>
std::string refusal(F f) {
  try {
    f();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::bad_input);
    return error.what();
  }
  return "nothing was thrown";
}

}  // namespace attmirror::deep_tests
