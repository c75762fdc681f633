// Adam on the CPU is LibTorch's to the bit; what the GPU's kernel computes per number is compared with it here.
#include "mirror/cuda/adam_element.hpp"
#include <attmirror/deep/fused_adam.hpp>

#include <cmath>
#include <sstream>
#include <vector>

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/serialize/archive.h>

namespace attmirror::deep {
namespace {

constexpr std::int64_t numbers = 500;
constexpr int adam_steps = 25;

at::Tensor adam_start() {
  at::Generator generator = at::detail::createCPUGenerator(3);
  return at::randn({numbers}, generator, at::TensorOptions(at::kFloat)).set_requires_grad(true);
}
at::Tensor adam_gradient(int step) {
  at::Generator generator = at::detail::createCPUGenerator(static_cast<std::uint64_t>(100 + step));
  return at::randn({numbers}, generator, at::TensorOptions(at::kFloat)) * std::pow(10.0, step % 5 - 3);
}

template <class Optimizer, class Options>
at::Tensor trained_by(const Options& options) {
  at::Tensor w = adam_start();
  Optimizer optimizer(std::vector<at::Tensor>{w}, options);
  for (int step = 0; step < adam_steps; ++step) {
    w.mutable_grad() = adam_gradient(step);
    optimizer.step();
  }
  return w.detach();
}

at::Tensor trained_by_element(const AdamNumbers& options) {
  const at::Tensor w = adam_start().detach().clone();
  std::vector<float> m(numbers), v(numbers);
  for (int step = 0; step < adam_steps; ++step) {
    const at::Tensor g = adam_gradient(step);
    const AdamConstants k = adam_constants(options, options.rate, step + 1);
    for (std::int64_t i = 0; i < numbers; ++i) {
      const auto at = static_cast<std::size_t>(i);
      adam_element(w.data_ptr<float>()[i], m[at], v[at], g.data_ptr<float>()[i], k);
    }
  }
  return w;
}

double largest_difference(const at::Tensor& a, const at::Tensor& b) {
  return (a - b).abs().max().item<double>();
}

TEST(FusedAdam, IsLibTorchsOnTheCpu) {
  const auto adam = torch::optim::AdamOptions(1e-2).weight_decay(0.1);
  const auto adamw = torch::optim::AdamWOptions(1e-2).weight_decay(0.1);
  EXPECT_TRUE(at::equal(trained_by<FusedAdam>(adam), trained_by<torch::optim::Adam>(adam)));
  EXPECT_TRUE(at::equal(trained_by<FusedAdamW>(adamw), trained_by<torch::optim::AdamW>(adamw)));
}

TEST(FusedAdam, TheKernelsFormulaIsLibTorchs) {
  for (const double decay : {0.0, 0.1}) {
    const auto adam = torch::optim::AdamOptions(1e-2).weight_decay(decay).eps(1e-6).betas({0.8, 0.99});
    const auto adamw = torch::optim::AdamWOptions(1e-2).weight_decay(decay).eps(1e-6).betas({0.8, 0.99});
    AdamNumbers own;
    own.rate = 1e-2;
    own.beta1 = 0.8;
    own.beta2 = 0.99;
    own.eps = 1e-6;
    own.weight_decay = decay;
    // Weights of size 1 after 25 steps of 0.01: a few units in the last place each.
    EXPECT_LE(largest_difference(trained_by_element(own), trained_by<torch::optim::Adam>(adam)), 5e-6)
        << decay;
    own.decoupled = true;
    EXPECT_LE(largest_difference(trained_by_element(own), trained_by<torch::optim::AdamW>(adamw)), 5e-6)
        << decay;
    own.beta2 = 0.999;
    EXPECT_GT(largest_difference(trained_by_element(own), trained_by<torch::optim::AdamW>(adamw)), 1e-3);
  }
}

TEST(FusedAdam, ArchivesAreLibTorchs) {
  at::Tensor w = adam_start(), other = adam_start();
  FusedAdam ours({w}, torch::optim::AdamOptions(1e-2));
  torch::optim::Adam theirs({other}, torch::optim::AdamOptions(1e-2));
  for (int step = 0; step < 3; ++step) {
    w.mutable_grad() = adam_gradient(step);
    ours.step();
  }
  std::stringstream bytes;
  torch::serialize::OutputArchive written;
  ours.save(written);
  written.save_to(bytes);
  torch::serialize::InputArchive read;
  read.load_from(bytes);
  theirs.load(read);
  {
    const at::NoGradGuard no_gradients;
    other.copy_(w);
  }
  w.mutable_grad() = adam_gradient(3);
  other.mutable_grad() = adam_gradient(3);
  ours.step();
  theirs.step();
  EXPECT_TRUE(at::equal(w, other));
}

}  // namespace
}  // namespace attmirror::deep
