// A training epoch of P1's sentiment network: seconds, model FLOP utilisation, memory, and where the time goes.
//
//   attmirror_bench_network [--tokens FILE] [--device cpu|cuda] [--blocks 3,6] [--batch 100] [--steps N] [--p 1.1]
//                           [--attention automatic] [--row-multiple 256] [--last-block first_token|all_tokens]
//                           [--profile] [--peak 989]
//
// Without a token file, texts are made up with the lengths of IMDb reviews: log-normal, cut at 512, 275 tokens
// on average.
#include "base/random.hpp"
#include <attmirror/deep/encoder_classifier.hpp>
#include <attmirror/deep/mirror_descent.hpp>
#include <attmirror/deep/packed_batch.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <future>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <torch/version.h>
#if defined(ATTMIRROR_BENCH_CUDA)
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <cuda_runtime_api.h>
#if TORCH_VERSION_MAJOR >= 2
#include <torch/csrc/autograd/profiler_kineto.h>
#define ATTMIRROR_BENCH_PROFILE 1
#endif
#endif

namespace {

using namespace attmirror;
namespace net = attmirror::deep;

struct BenchOptions {
  std::string tokens, attention = "automatic", last_block = "first_token", blocks = "3,6";
  bool cuda = false, profile = false;
  std::int64_t batch = 100, steps = 0, rows = 25000, multiple = 256;
  double p = 1.1, peak = 989;
};

TokenSet made_up(std::int64_t rows) {
  TokenSet set;
  set.vocabulary = 30522;
  set.length = 512;
  const CounterRandom random(1, RandomStream::lengths);
  for (std::int64_t r = 0; r < rows; ++r) {
    const double words = 235 * std::exp(0.72 * random.normal(static_cast<std::uint64_t>(r)));
    const auto length = std::clamp<std::int64_t>(static_cast<std::int64_t>(words), 12, 512);
    for (std::int64_t t = 0; t < length; ++t) {
      // Zipf's law, roughly: the rank is log-uniform.
      const double u = random.uniform(static_cast<std::uint64_t>((1 << 20) + r * 512 + t));
      set.ids.push_back(static_cast<std::int32_t>(std::min(30521.0, std::exp(u * std::log(30522.0)))));
    }
    set.offsets.push_back(static_cast<std::int64_t>(set.ids.size()));
    set.labels.push_back(static_cast<std::int32_t>(r % 2));
  }
  return set;
}

void synchronize(bool cuda) {
#if defined(ATTMIRROR_BENCH_CUDA)
  if (cuda) cudaDeviceSynchronize();
#else
  (void)cuda;
#endif
}

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

#if defined(ATTMIRROR_BENCH_PROFILE)
// What a GPU kernel belongs to, by its name.
std::string part_of(const std::string& name) {
  const auto has = [&](const char* word) { return name.find(word) != std::string::npos; };
  if (has("flash") || has("fmha")) return "attention";
  if (has("gemm") || has("cutlass") || has("nvjet") || has("splitK") || has("cublas"))
    return "matrix products";
  if (has("norm_forward") || has("norm_backward")) return "residual + dropout + norm";
  if (has("drop_kernel")) return "dropout";
  if (has("Gelu") || has("gelu")) return "gelu";
  if (has("step_kernel") || has("attmirror")) return "optimizer";
  if (has("embedding") || has("index") || has("sort") || has("Sort") || has("radix")) return "embeddings";
  if (has("Memcpy") || has("Memset")) return "copies";
  if (has("CatArray")) return "joining q, k, v";
  return "other: " + name.substr(0, 110);
}
#endif

void run(const TokenSet& set, const BenchOptions& options, std::int64_t blocks) {
  net::EncoderOptions model_options{
      .blocks = blocks, .heads = blocks, .attention = net::attention_kind(options.attention)};
  if (options.last_block == "all_tokens") model_options.last_block = net::LastBlock::all_tokens;
  const at::Device device(options.cuda ? at::kCUDA : at::kCPU);
  auto model =
      std::make_shared<net::EncoderClassifier>(model_options, 1, options.cuda ? at::kBFloat16 : at::kFloat);
  model->to(device);
  net::MirrorDescent optimizer(model->parameters(), net::MirrorDescentOptions(8e-4).p(options.p));

  std::vector<std::int64_t> order(static_cast<std::size_t>(set.rows()));
  std::iota(order.begin(), order.end(), 0);
  // Another order each time, as in a training: numbers of rows that were not seen before are part of the work.
  const auto shuffle = [&](std::uint64_t seed) {
    const CounterRandom random(seed, RandomStream::deep_order);
    for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i, i)]);
  };
  shuffle(7);
  const std::int64_t all_steps = set.rows() / options.batch;
  const std::int64_t steps = options.steps > 0 ? std::min(options.steps, all_steps) : all_steps;
  const auto make = [&](std::int64_t step) {
    const std::span<const std::int64_t> rows(order.data() + step * options.batch,
                                             static_cast<std::size_t>(options.batch));
    return net::pack(set, rows, net::DropoutPlace{3, step}, 0, options.multiple);
  };
  at::Tensor loss_sum = at::zeros({}, at::TensorOptions().dtype(at::kFloat).device(device));
  double flops = 0;
  std::int64_t tokens = 0;
  const auto train = [&](std::int64_t count) {
    std::future<net::Batch> next = std::async(std::launch::async, make, 0);
    for (std::int64_t step = 0; step < count; ++step) {
      const net::Batch batch = next.get().to(device);
      if (step + 1 < count) next = std::async(std::launch::async, make, step + 1);
      tokens += batch.rows();
      const at::Tensor loss = net::summed_loss(model->logits(batch), batch.labels);
      optimizer.zero_grad();
      loss.backward();
      optimizer.step();
      loss_sum += loss.detach();
    }
    synchronize(options.cuda);
  };
  train(std::min<std::int64_t>(steps, 20));
#if defined(ATTMIRROR_BENCH_CUDA)
  if (options.cuda) c10::cuda::CUDACachingAllocator::resetPeakStats(0);
#endif
  double best = 1e300, total = 0;
  const int repeats = options.cuda ? 3 : 1;
  for (int repeat = 0; repeat < repeats; ++repeat) {
    tokens = 0;
    loss_sum.zero_();
    shuffle(8 + static_cast<std::uint64_t>(repeat));
    const double start = now();
    train(steps);
    const double seconds = now() - start;
    best = std::min(best, seconds);
    total += seconds;
  }
  for (std::int64_t step = 0; step < steps; ++step) {
    std::vector<std::int64_t> lengths;
    for (std::int64_t i = 0; i < options.batch; ++i)
      lengths.push_back(static_cast<std::int64_t>(
          set.row(order[static_cast<std::size_t>(step * options.batch + i)]).size()));
    flops += model->training_flops(lengths);
  }
  double memory = 0;
#if defined(ATTMIRROR_BENCH_CUDA)
  if (options.cuda)
    memory = static_cast<double>(c10::cuda::CUDACachingAllocator::getDeviceStats(0).allocated_bytes[0].peak);
#endif
  std::printf(
      "%lld blocks: %.3f s best, %.3f s mean of %d (%lld steps, %lld tokens, %.1f M tokens/s), loss %.4f\n",
      static_cast<long long>(blocks), best, total / repeats, repeats, static_cast<long long>(steps),
      static_cast<long long>(tokens), 1e-6 * static_cast<double>(tokens) / best,
      loss_sum.item<double>() / static_cast<double>(steps * options.batch));
  std::printf(
      "  model FLOPs %.1f T, %.1f TFLOP/s, utilisation %.1f %% of %.0f TFLOP/s, peak memory %.2f GB\n",
      1e-12 * flops, 1e-12 * flops / best, 1e-10 * flops / best / options.peak, options.peak, 1e-9 * memory);

#if defined(ATTMIRROR_BENCH_PROFILE)
  if (options.profile && options.cuda) {
    using namespace torch::autograd::profiler;
    const std::set<torch::profiler::impl::ActivityType> activities{torch::profiler::impl::ActivityType::CUDA};
    const torch::profiler::impl::ProfilerConfig config(torch::profiler::impl::ProfilerState::KINETO);
    prepareProfiler(config, activities);
    enableProfiler(config, activities);
    const double start = now();
    const std::int64_t profiled = std::min<std::int64_t>(steps, 50);
    train(profiled);
    const double wall = now() - start;
    const auto result = disableProfiler();
    std::map<std::string, double> parts;
    std::map<std::string, long> counts;
    double busy = 0;
    for (const auto& event : result->events()) {
      if (event.deviceType() != c10::DeviceType::CUDA) continue;
      const double ms = 1e-6 * static_cast<double>(event.durationNs()) / static_cast<double>(profiled);
      parts[part_of(event.name())] += ms;
      counts[part_of(event.name())] += 1;
      busy += ms;
    }
    std::vector<std::pair<double, std::string>> sorted;
    for (const auto& [name, ms] : parts) sorted.emplace_back(ms, name);
    std::sort(sorted.rbegin(), sorted.rend());
    std::printf("  per step: %.2f ms with the profiler on, GPU busy %.2f ms\n",
                1e3 * wall / static_cast<double>(profiled), busy);
    for (const auto& [ms, name] : sorted)
      std::printf("    %7.3f ms  %4ld x  %s\n", ms, counts[name] / static_cast<long>(profiled), name.c_str());
  }
#endif
}

}  // namespace

int main(int argc, char** argv) {
  BenchOptions options;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--profile") {
      options.profile = true;
      continue;
    }
    if (i + 1 >= argc) {
      std::fprintf(stderr, "%s needs a value\n", argv[i]);
      return 2;
    }
    const std::string value = argv[++i];
    if (name == "--tokens")
      options.tokens = value;
    else if (name == "--device")
      options.cuda = value == "cuda";
    else if (name == "--blocks")
      options.blocks = value;
    else if (name == "--batch")
      options.batch = std::atoll(value.c_str());
    else if (name == "--steps")
      options.steps = std::atoll(value.c_str());
    else if (name == "--rows")
      options.rows = std::atoll(value.c_str());
    else if (name == "--row-multiple")
      options.multiple = std::atoll(value.c_str());
    else if (name == "--p")
      options.p = std::atof(value.c_str());
    else if (name == "--peak")
      options.peak = std::atof(value.c_str());
    else if (name == "--attention")
      options.attention = value;
    else if (name == "--last-block")
      options.last_block = value;
    else {
      std::fprintf(stderr, "%s is no option of this benchmark\n", name.c_str());
      return 2;
    }
  }
  const TokenSet set = options.tokens.empty() ? made_up(options.rows) : load_token_set(options.tokens);
  std::size_t at = 0;
  while (at < options.blocks.size()) {
    std::size_t used = 0;
    run(set, options, std::stoll(options.blocks.substr(at), &used));
    at += used + 1;
  }
  return 0;
}
