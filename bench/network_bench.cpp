// Training steps of P1's networks as the trainer takes them: seconds an epoch, what host and GPU do in a step,
// model FLOP utilisation, memory, and where the time goes.
//
//   attmirror_bench_network [--tokens FILE] [--images FILE] [--device cpu|cuda] [--networks 3,6,vit]
//                           [--optimizers md,adam] [--graphs off,on] [--batch 100] [--steps N] [--epochs 3]
//                           [--p 1.1] [--attention automatic] [--last-block first_token|all_tokens] [--profile]
//                           [--peak 989]
//
// Networks are the encoder of so many blocks and heads, and the vision transformer. Without a token file, texts are
// made up with the lengths of IMDb reviews: log-normal, cut at 512, 275 tokens on average. Without images, pixels are.
#include "base/random.hpp"
#include "deep/trainer/made_ahead.hpp"
#include "deep/trainer/network_choice.hpp"
#include "deep/trainer/network_steps.hpp"
#include "deep/trainer/processes.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/deep/network.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <map>
#include <memory>
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
  std::string tokens, images, attention = "automatic", last_block = "first_token", networks = "3,6",
                              optimizers = "md", graphs;
  bool cuda = false, profile = false;
  std::int64_t batch = 100, steps = 0, epochs = 3;
  double p = 1.1, peak = 989;
};

std::vector<std::string> listed(const std::string& text) {
  std::vector<std::string> words(1);
  for (const char c : text)
    if (c == ',')
      words.emplace_back();
    else
      words.back() += c;
  return words;
}

TokenSet made_up_texts(std::int64_t rows) {
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

ImageSet made_up_images(std::int64_t count) {
  ImageSet set;
  set.channels = 3;
  set.height = set.width = 32;
  set.classes = 10;
  set.pixels.resize(static_cast<std::size_t>(count) * 3072);
  const CounterRandom random(2, RandomStream::lengths);
  for (std::size_t i = 0; i + 8 <= set.pixels.size(); i += 8) {
    const std::uint64_t bits = random.bits(i);
    for (std::size_t k = 0; k < 8; ++k) set.pixels[i + k] = static_cast<std::uint8_t>(bits >> (8 * k));
  }
  for (std::int64_t i = 0; i < count; ++i) set.labels.push_back(static_cast<std::int32_t>(i % 10));
  return set;
}

void synchronize(bool cuda) {
#if defined(ATTMIRROR_BENCH_CUDA)
  if (cuda) cudaDeviceSynchronize();
#else
  (void)cuda;
#endif
}

// Of all threads.
double processor_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

#if defined(ATTMIRROR_BENCH_PROFILE)
// What a GPU kernel belongs to, by its name.
std::string part_of(const std::string& name) {
  const auto has = [&](const char* word) { return name.find(word) != std::string::npos; };
  if (has("flash") || has("fmha") || has("cudnn_generated")) return "attention";
  if (has("gemm") || has("cutlass") || has("nvjet") || has("splitK") || has("cublas"))
    return "matrix products";
  if (has("norm_forward") || has("norm_backward") || has("sum_partials")) return "residual + dropout + norm";
  if (has("embed_")) return "embeddings";
  if (has("drop_kernel") || has("drop_fours")) return "dropout";
  if (has("Gelu") || has("gelu")) return "gelu";
  if (has("update_kernel") || has("adam_") || has("attmirror")) return "optimizer";
  if (has("embedding") || has("index") || has("sort") || has("Sort") || has("radix")) return "embeddings";
  if (has("Memcpy") || has("Memset") || has("memset") || has("memcpy")) return "copies";
  if (has("CatArray")) return "joining gradients";
  return "other: " + name.substr(0, 140);
}
#endif

TrainConfig config_for(const BenchOptions& options, const std::string& network, const std::string& optimizer,
                       const std::string& graphs) {
  TrainConfig config;
  const bool is_vit = network == "vit";
  if (is_vit) {
    config.data.kind = "images";
    config.model = {.kind = "vit", .width = 512, .blocks = 6, .heads = 8, .hidden = 512, .dropout = 0.1};
    config.train.loss = "mean";
  } else {
    config.model.blocks = config.model.heads = std::stoll(network);
  }
  config.model.attention = options.attention;
  config.model.last_block = options.last_block;
  config.optimizer.name = optimizer;
  config.optimizer.p = options.p;
  config.optimizer.lr = optimizer == "md" ? (is_vit ? 5e-2 : 8e-4) : 1e-4;
  config.train.batch = options.batch;
  config.train.device = options.cuda ? "cuda" : "cpu";
  config.train.graphs = graphs;
  return config;
}

void run(const net::TrainData& data, const TrainConfig& config, const BenchOptions& options) {
  const net::Machine machine = net::chosen_machine(config.train, 0);
  const net::BatchSources sources = net::batch_sources(config, data, machine.device);
  const auto processes = net::join_processes({}, machine.device, {});
  net::NetworkSteps steps(config, sources, machine, *processes,
                          [](const std::string& note) { std::printf("  note: %s\n", note.c_str()); });
  const auto network = net::make_network(config, data, 1, machine);
  net::OptimizerSet optimizers(config.optimizer, *network);
  net::DeviceSums sums(machine.device);
  steps.begin_trial(optimizers);

  const std::int64_t rows = sources.train->rows(), all_steps = rows / options.batch;
  const std::int64_t count = options.steps > 0 ? std::min(options.steps, all_steps) : all_steps;
  double flops = 0, host = 0;
  std::int64_t tokens = 0;
  // Another order each time, as in a training: numbers of rows that were not seen before are part of the work.
  const auto train = [&](std::int64_t epoch, std::int64_t most) {
    sums.start({});
    tokens = 0;
    flops = 0;
    const std::vector<std::int64_t> order = epoch_order(7, epoch, rows);
    MadeAhead<net::PlannedBatch> ahead(0, most, net::batches_ahead, [&](std::int64_t step) {
      net::PlannedBatch planned =
          sources.train->plan(std::span(order).subspan(static_cast<std::size_t>(step * options.batch),
                                                       static_cast<std::size_t>(options.batch)),
                              net::DropoutPlace{3, epoch * all_steps + step}, 0, 1);
      sources.train->prepare(planned);
      return planned;
    });
    const double start = now(), worked = processor_seconds();
    for (std::int64_t step = 0; step < most; ++step) {
      const net::PlannedBatch planned = ahead.next();
      tokens += planned.all_tokens;
      std::vector<std::int64_t> lengths;
      for (const std::int64_t sample : planned.samples) lengths.push_back(sources.train->length(sample));
      flops += network->training_flops(lengths);
      steps.train_on(planned, step, *network, optimizers, {}, sums);
    }
    synchronize(options.cuda);
    host = processor_seconds() - worked;
    return now() - start;
  };
  const double first = train(0, count);
#if defined(ATTMIRROR_BENCH_CUDA)
  if (options.cuda) c10::cuda::CUDACachingAllocator::resetPeakStats(0);
#endif
  double best = 1e300, total = 0;
  for (std::int64_t epoch = 1; epoch <= options.epochs; ++epoch) {
    const double seconds = train(epoch, count);
    best = std::min(best, seconds);
    total += seconds;
  }
  double memory = 0, reserved = 0;
#if defined(ATTMIRROR_BENCH_CUDA)
  if (options.cuda) {
    const auto stats = c10::cuda::CUDACachingAllocator::getDeviceStats(0);
    memory = static_cast<double>(stats.allocated_bytes[0].peak);
    reserved = static_cast<double>(stats.reserved_bytes[0].current);
  }
#endif
  std::printf(
      "%s %lld blocks, %s, graphs %s: %.3f s best, %.3f s mean of %lld, %.3f s the first (%lld steps, %lld tokens, "
      "%.1f M tokens/s), loss %.4f\n",
      config.model.kind.c_str(), static_cast<long long>(config.model.blocks), config.optimizer.name.c_str(),
      config.train.graphs.c_str(), best, total / static_cast<double>(options.epochs),
      static_cast<long long>(options.epochs), first, static_cast<long long>(count),
      static_cast<long long>(tokens), 1e-6 * static_cast<double>(tokens) / best,
      sums.loss() / static_cast<double>(count * options.batch));
  std::printf(
      "  model FLOPs %.1f T, %.1f TFLOP/s, utilisation %.1f %% of %.0f TFLOP/s, peak memory %.2f GB, held %.2f GB\n",
      1e-12 * flops, 1e-12 * flops / best, 1e-10 * flops / best / options.peak, options.peak, 1e-9 * memory,
      1e-9 * reserved);
  const double step_ms = 1e3 * best / static_cast<double>(count);
  std::printf("  a step: %.2f ms; the host's threads work %.2f ms for it\n", step_ms,
              1e3 * host / static_cast<double>(count));

  // Recorded evaluations repeat what the second has recorded.
  const auto measure = [&](net::NetworkSteps& by, const char* how) {
    double least = 1e300, threads = 0, loss = 0;
    for (std::int64_t turn = 0; turn < (options.cuda ? 4 : 2); ++turn) {
      const double begun = now(), worked = processor_seconds();
      loss = by.evaluate(*network, *sources.test).first;
      const double seconds = now() - begun;
      if (turn == 0 || seconds >= least) continue;
      least = seconds;
      threads = processor_seconds() - worked;
    }
    std::printf(
        "  measuring %lld test samples, %s: %.3f s, for which the host's threads work %.3f s, loss %.9f\n",
        static_cast<long long>(sources.test->rows()), how, least, threads, loss);
  };
  const std::size_t before = steps.recordings();
  if (before == 0) {
    measure(steps, "kernel by kernel");
  } else {
    measure(steps, "recorded");
    std::printf("  %zu shapes of steps and %zu of evaluations are recorded\n", before,
                steps.recordings() - before);
    TrainConfig plain = config;
    plain.train.graphs = "off";
    net::NetworkSteps by_kernel(plain, sources, machine, *processes, nullptr);
    by_kernel.begin_trial(optimizers);
    measure(by_kernel, "kernel by kernel");
  }

#if defined(ATTMIRROR_BENCH_PROFILE)
  if (options.profile && options.cuda) {
    using namespace torch::autograd::profiler;
    const std::set<torch::profiler::impl::ActivityType> activities{torch::profiler::impl::ActivityType::CUDA};
    const torch::profiler::impl::ProfilerConfig profiling(torch::profiler::impl::ProfilerState::KINETO);
    prepareProfiler(profiling, activities);
    enableProfiler(profiling, activities);
    const std::int64_t profiled = std::min<std::int64_t>(count, 50);
    const double wall = train(options.epochs + 1, profiled);
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
    std::printf(
        "  the GPU works %.2f ms a step, %.0f %% of the time, and waits for %.2f ms (%.2f ms with the profiler on)\n",
        busy, 100 * busy / step_ms, std::max(0.0, step_ms - busy),
        1e3 * wall / static_cast<double>(profiled));
    for (const auto& [ms, name] : sorted)
      std::printf("    %7.3f ms  %6.1f x  %s\n", ms,
                  static_cast<double>(counts[name]) / static_cast<double>(profiled), name.c_str());
  }
#endif
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  BenchOptions options;
  const std::map<std::string, std::string*> words{
      {"--tokens", &options.tokens},        {"--images", &options.images},
      {"--networks", &options.networks},    {"--optimizers", &options.optimizers},
      {"--graphs", &options.graphs},        {"--attention", &options.attention},
      {"--last-block", &options.last_block}};
  const std::map<std::string, std::int64_t*> counts{
      {"--batch", &options.batch}, {"--steps", &options.steps}, {"--epochs", &options.epochs}};
  const std::map<std::string, double*> numbers{{"--p", &options.p}, {"--peak", &options.peak}};
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
    if (name == "--device")
      options.cuda = value == "cuda";
    else if (const auto word = words.find(name); word != words.end())
      *word->second = value;
    else if (const auto whole = counts.find(name); whole != counts.end())
      *whole->second = std::atoll(value.c_str());
    else if (const auto number = numbers.find(name); number != numbers.end())
      *number->second = std::atof(value.c_str());
    else {
      std::fprintf(stderr, "%s is no option of this benchmark\n", name.c_str());
      return 2;
    }
  }
  if (options.graphs.empty()) options.graphs = options.cuda ? "off,on" : "off";
  try {
    net::TrainData texts, images;
    for (const std::string& name : listed(options.networks)) {
      net::TrainData& data = name == "vit" ? images : texts;
      if (name == "vit" && !data.train_images) {
        data.train_images = options.images.empty() ? made_up_images(50000)
                                                   : load_cifar10(cifar10_files(options.images, "train"));
        data.test_images = made_up_images(options.cuda ? 10000 : 100);
      } else if (name != "vit" && !data.train_texts) {
        data.train_texts = options.tokens.empty() ? made_up_texts(25000) : load_token_set(options.tokens);
        data.test_texts = data.train_texts;
      }
      for (const std::string& optimizer : listed(options.optimizers))
        for (const std::string& graphs : listed(options.graphs))
          run(data, config_for(options, name, optimizer, graphs), options);
    }
  } catch (const Error& error) {
    std::fprintf(stderr, "network_bench: %s\n", error.what());
    return 1;
  }
  return 0;
}
