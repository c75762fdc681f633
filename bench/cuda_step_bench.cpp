// Times the fused step on a GPU, beside a copy of as many bytes: cuda_step_bench [--parameters N] [--repeats N]
// [--plain yes]
//
// Every row is the median over repeats, measured with events on the stream; "GB/s" counts what a step must read
// and write.
#include "device/device_memory.hpp"
#include <attmirror/mirror/cuda_step.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

namespace {

using attmirror::StepElement;
using attmirror::StepOptions;
using attmirror::StepRule;
using attmirror::StepTensor;
using attmirror::test::DeviceArray;
using attmirror::test::require_cuda;

int repeats = 20;

double median_ms(const std::function<void()>& work) {
  cudaEvent_t begin, end;
  require_cuda(cudaEventCreate(&begin), "create an event");
  require_cuda(cudaEventCreate(&end), "create an event");
  for (int i = 0; i < 20; ++i) work();  // clocks rise, too
  std::vector<float> times;
  for (int i = 0; i < repeats; ++i) {
    cudaEventRecord(begin);
    work();
    cudaEventRecord(end);
    require_cuda(cudaEventSynchronize(end), "wait for the GPU");
    float ms = 0;
    cudaEventElapsedTime(&ms, begin, end);
    times.push_back(ms);
  }
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

// A megabyte of normal numbers, over and over. `Bits` are those of the format.
template <class Bits>
std::vector<Bits> normal_numbers(float deviation, std::uint64_t seed) {
  std::mt19937_64 engine(seed);
  std::normal_distribution<float> normal(0, deviation);
  std::vector<Bits> numbers(1 << 20);
  for (Bits& number : numbers) {
    const float x = normal(engine);
    std::uint32_t bits;
    std::memcpy(&bits, &x, 4);
    number = static_cast<Bits>(sizeof(Bits) == 4 ? bits : bits >> 16);
  }
  return numbers;
}

template <class Bits>
void fill(const DeviceArray<Bits>& array, float deviation, std::uint64_t seed) {
  const std::vector<Bits> numbers = normal_numbers<Bits>(deviation, seed);
  for (std::size_t at = 0; at < array.size(); at += numbers.size())
    require_cuda(
        cudaMemcpy(array.data() + at, numbers.data(),
                   std::min(numbers.size(), array.size() - at) * sizeof(Bits), cudaMemcpyHostToDevice),
        "copy to the GPU");
}

struct Memory {
  explicit Memory(std::size_t n) : w(n), g(n), y(n), m(n), workspace(64 << 20) {
    fill(g, 1e-3f, 2);
    require_cuda(cudaMemset(m.data(), 0, n * 4), "clear memory");
  }
  DeviceArray<std::uint32_t> w, g, y, m;
  DeviceArray<char> workspace;
};

// The tensors of a network with n parameters in all: sizes of 2:1:1:4 and a few small ones, as transformers have.
std::vector<std::size_t> sizes_of(std::size_t n, int tensors) {
  if (tensors == 1) return {n};
  std::vector<std::size_t> sizes;
  std::size_t left = n;
  for (int i = 0; i < tensors - 1; ++i) {
    const std::size_t size =
        i % 3 == 2 ? 384 : std::min(left, 2 * n / static_cast<std::size_t>(tensors) * 3 / 4);
    sizes.push_back(size / 8 * 8);
    left -= sizes.back();
  }
  sizes.push_back(left);
  return sizes;
}

double time_step(Memory& memory, StepElement element, std::size_t n, int tensors, StepOptions options,
                 bool has_master) {
  if (element == StepElement::float32) {
    fill(memory.w, 0.02f, 1);
    fill(memory.g, 1e-3f, 2);
  } else {
    const std::vector<std::uint16_t> w = normal_numbers<std::uint16_t>(0.02f, 1),
                                     g = normal_numbers<std::uint16_t>(1e-3f, 2);
    for (std::size_t at = 0; at < n; at += w.size()) {
      const std::size_t bytes = std::min(w.size(), n - at) * 2;
      cudaMemcpy(reinterpret_cast<std::uint16_t*>(memory.w.data()) + at, w.data(), bytes,
                 cudaMemcpyHostToDevice);
      cudaMemcpy(reinterpret_cast<std::uint16_t*>(memory.g.data()) + at, g.data(), bytes,
                 cudaMemcpyHostToDevice);
    }
  }
  std::vector<StepTensor> list;
  std::size_t at = 0;
  for (const std::size_t size : sizes_of(n, tensors)) {
    const std::size_t bytes = at * size_of(element);
    list.push_back(
        {reinterpret_cast<char*>(memory.w.data()) + bytes, reinterpret_cast<char*>(memory.g.data()) + bytes,
         has_master ? memory.y.data() + at : nullptr, options.momentum > 0 ? memory.m.data() + at : nullptr,
         static_cast<std::ptrdiff_t>(size)});
    at += size;
  }
  if (has_master) attmirror::fill_masters_on_device(element, list, options, nullptr);
  return median_ms([&] { fused_step_on_device(element, list, options, memory.workspace.data(), nullptr); });
}

void row(const std::string& name, double ms, double bytes) {
  std::printf("%-44s %9.4f ms %8.0f GB/s\n", name.c_str(), ms, bytes / ms / 1e6);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  std::size_t n = std::size_t{1} << 28;
  bool only_plain = false;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--parameters") == 0)
      n = std::strtoull(argv[i + 1], nullptr, 10);
    else if (std::strcmp(argv[i], "--repeats") == 0)
      repeats = std::atoi(argv[i + 1]);
    else if (std::strcmp(argv[i], "--plain") == 0)
      only_plain = std::strcmp(argv[i + 1], "yes") == 0;
  }
  if (n < 1024 || repeats < 1) {
    std::fprintf(stderr,
                 "cuda_step_bench: expected --parameters of 1024 or more and --repeats of 1 or more\n");
    return 2;
  }
  if (!attmirror::test::has_gpu()) {
    std::fprintf(stderr, "cuda_step_bench: there is no GPU\n");
    return attmirror::test::no_gpu;
  }
  Memory memory(n);
  const double numbers = static_cast<double>(n);
  row("copy of 4 N bytes (8 N moved)",
      median_ms([&] { cudaMemcpyAsync(memory.w.data(), memory.y.data(), n * 4, cudaMemcpyDeviceToDevice); }),
      8 * numbers);

  const auto named = [](const char* what, double p, const char* more) {
    char text[80];
    std::snprintf(text, sizeof text, "%s p = %g%s", what, p, more);
    return std::string(text);
  };
  std::printf("one tensor of %zu parameters\n", n);
  for (const double p : {1.1, 1.5, 1.75, 2.0, 3.0, 10.0}) {
    StepOptions options{.p = p, .rate = 1e-3};
    const double plain = time_step(memory, StepElement::float32, n, 1, options, false);
    row(named("float32", p, ""), plain, 12 * numbers);
    if (only_plain) continue;
    options.normalized = true;
    const double normalized = time_step(memory, StepElement::float32, n, 1, options, false);
    row(named("float32", p, ", normalised"), normalized, 16 * numbers);
    std::printf("%44s %9.3f times plain\n", "", normalized / plain);
  }
  for (const double p : {1.1, 2.0}) {
    if (only_plain) break;
    StepOptions options{.p = p, .rate = 1e-3};
    row(named("float32", p, ", dual state"), time_step(memory, StepElement::float32, n, 1, options, true),
        16 * numbers);
    row(named("bfloat16", p, ", dual state"), time_step(memory, StepElement::bfloat16, n, 1, options, true),
        12 * numbers);
    row(named("bfloat16", p, ""), time_step(memory, StepElement::bfloat16, n, 1, options, false),
        6 * numbers);
    options.skip_nonfinite = true;
    row(named("float32", p, ", skips Inf and NaN"),
        time_step(memory, StepElement::float32, n, 1, options, false), 16 * numbers);
    options.skip_nonfinite = false;
    options.momentum = 0.9;
    row(named("float32", p, ", momentum"), time_step(memory, StepElement::float32, n, 1, options, false),
        20 * numbers);
  }
  row("float32 sign",
      time_step(memory, StepElement::float32, n, 1, {.rule = StepRule::sign, .rate = 1e-3}, false),
      12 * numbers);
  row("float32 steepest p = 1.5",
      time_step(memory, StepElement::float32, n, 1, {.rule = StepRule::steepest, .p = 1.5, .rate = 1e-3},
                false),
      16 * numbers);

  const std::size_t small = std::min<std::size_t>(n, 17'000'000);
  std::printf("%zu parameters in 40 tensors\n", small);
  for (const double p : {1.1, 1.75, 2.0, 3.0}) {
    StepOptions options{.p = p, .rate = 1e-3};
    row(named("float32", p, ""), time_step(memory, StepElement::float32, small, 40, options, false),
        12.0 * static_cast<double>(small));
    options.normalized = true;
    row(named("float32", p, ", normalised"),
        time_step(memory, StepElement::float32, small, 40, options, false),
        16.0 * static_cast<double>(small));
  }
  return 0;
}
