// What a step costs when runs share a vector (n = 6, T = 8, d = 10, attention weights W, safe Jacobian, normalised
// steps), beside the same run by descend() alone, and where the time goes.
//
//   attmirror_bench_sweep [--steps N] [--p P] [--width L]
//
// The first table has microseconds per run and step, best of several. Flops are those of the four matrix products of a
// step (u = W z, logits, r = X^T g, sum r z^T), two per multiply-add; their share is of what independent multiply-adds
// reach on this core. The second table times the kernels of a step by themselves, in nanoseconds per run and step:
// `exponentials` is the time of as many exponentials in an array, `products` what is left of the value and gradient,
// `scalars` what is left of the step.
#include "base/vector_math.hpp"
#include "sweep/lane_memory.hpp"
#include <attmirror/base/isa.hpp>
#include <attmirror/data/generators.hpp>
#include <attmirror/sweep/many.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <deque>
#include <string>
#include <vector>

#include <immintrin.h>

namespace attmirror {
namespace {

constexpr std::ptrdiff_t n = 6, T = 8, d = 10;
constexpr double flops = 2.0 * (2 * n * d * d + 2 * n * T * d);

struct Settings {
  std::int64_t steps = 2'000;
  double p = 0;  // 0: all
  std::ptrdiff_t width = 0;
};

// Processor time of this thread: what others do on the machine counts as little as may be.
double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Seconds that `work` takes, the best of a few.
template <class Work>
double best_time(Work work, int rounds = 40) {
  double best = 1e300;
  for (int round = 0; round < rounds; ++round) {
    const double start = processor_seconds();
    work();
    best = std::min(best, processor_seconds() - start);
  }
  return best;
}

// Twelve chains of multiply-adds that do not wait for each other; SSE2 has products and sums instead.
constexpr int chains = 12;
constexpr std::int64_t links = 2'000'000;

[[gnu::target("avx512f")]] void spin_avx512() {
  __m512d sums[chains];
  for (__m512d& sum : sums) sum = _mm512_setzero_pd();
  const __m512d factor = _mm512_set1_pd(0.5);
  for (std::int64_t k = 0; k < links; ++k)
    for (__m512d& sum : sums) asm volatile("vfmadd231pd %1, %1, %0" : "+v"(sum) : "v"(factor));
}
[[gnu::target("avx2,fma")]] void spin_avx2() {
  __m256d sums[chains];
  for (__m256d& sum : sums) sum = _mm256_setzero_pd();
  const __m256d factor = _mm256_set1_pd(0.5);
  for (std::int64_t k = 0; k < links; ++k)
    for (__m256d& sum : sums) asm volatile("vfmadd231pd %1, %1, %0" : "+x"(sum) : "x"(factor));
}
void spin_sse2() {
  __m128d products[chains / 2], sums[chains / 2];
  for (__m128d& product : products) product = _mm_setzero_pd();
  for (__m128d& sum : sums) sum = _mm_setzero_pd();
  const __m128d factor = _mm_set1_pd(0.5);
  for (std::int64_t k = 0; k < links; ++k) {
    for (__m128d& product : products) asm volatile("mulpd %1, %0" : "+x"(product) : "x"(factor));
    for (__m128d& sum : sums) asm volatile("addpd %1, %0" : "+x"(sum) : "x"(factor));
  }
}

// Flops per second of the core.
double measure_peak() {
  const Isa isa = active_isa();
  const double seconds = best_time(isa == Isa::avx512 ? spin_avx512
                                   : isa == Isa::avx2 ? spin_avx2
                                                      : spin_sse2);
  const double per_link = isa == Isa::avx512 ? 16.0 : isa == Isa::avx2 ? 8.0 : 2.0;
  return per_link * chains * static_cast<double>(links) / seconds;
}

struct Runs {
  std::deque<Dataset> data{};
  std::deque<Attention> models{};
  std::vector<DescentTask> tasks{};
};

Runs make_runs(std::ptrdiff_t count, double p, std::int64_t steps) {
  Runs runs;
  for (std::ptrdiff_t k = 0; k < count; ++k) {
    runs.data.push_back(generate(SphereData{.seed = static_cast<std::uint64_t>(k + 1)}));
    runs.models.emplace_back(runs.data.back());
    runs.tasks.push_back({&runs.models.back(), MirrorDescent{.p = p, .lr = 0.1, .normalized = true},
                          DescentOptions{.steps = steps, .record = RecordSchedule::none()}});
  }
  return runs;
}

void print_breakdown(double p, std::ptrdiff_t width, double step_seconds) {
  const Runs runs = make_runs(width, p, 0);
  std::vector<const Attention*> models;
  for (const Attention& model : runs.models) models.push_back(&model);
  LaneMemory memory(models, Jacobian::safe, LaneMemory::Rule::with_dual_image);
  const LpMap map(p);
  ParameterBlocks weights(runs.models.front().blocks());
  for (std::ptrdiff_t lane = 0; lane < width; ++lane) {  // where a run is after some steps
    DescentTask task = runs.tasks[static_cast<std::size_t>(lane)];
    task.options.steps = 2000;
    weights.assign(descend(*task.model, task.optimizer, task.options).last());
    memory.set_weights(lane, *task.model, weights);
    for (std::ptrdiff_t b = 0; b < weights.count(); ++b) map.map(weights.view(b), weights.view(b));
    memory.set_dual(lane, weights);
  }
  const kernels::LaneKernels* kernels = nullptr;
  for (const kernels::LaneKernels& candidate : lane_table().kernels)
    if (candidate.width == width) kernels = &candidate;
  const LaneBlock& block = memory.blocks.front();
  const LpMap::Exponent &dual = map.dual_exponent(), &inverse = map.inverse_exponent();
  alignas(64) double out[8], zero[8] = {};
  constexpr int repeats = 1'000;
  const auto per_run = [&](auto work) {
    return best_time([&] {
             for (int k = 0; k < repeats; ++k) work();
           }) /
           repeats / static_cast<double>(width) * 1e9;
  };
  const double gradient =
      per_run([&] { kernels->evaluate(memory.problem, memory.point, memory.scratch, memory.sums); });
  const double norms = per_run([&] {
    kernels->powers[dual.power].sum_power(block.gradient, block.shape, nullptr, {dual.value, dual.rest},
                                          block.terms, out);
  });
  const double powers = per_run([&] {
    kernels->powers[inverse.power].mirror_step(block.gradient, zero, block.dual, block.weights, block.shape,
                                               {inverse.value, inverse.rest});
  });
  AlignedVector numbers(static_cast<std::size_t>(2 * n * T * width), -0.5), results = numbers;
  const double exponentials = per_run([&] { vexp(numbers, results); });
  const double all = step_seconds * 1e9;
  std::printf("%6g %6td %9.0f %9.0f %13.0f %9.0f %9.0f %9.0f\n", p, width, all, gradient - exponentials,
              exponentials, powers, norms, all - gradient - powers - norms);
}

void run(const Settings& settings) {
  std::vector<double> all{2, 3, 1.9, 1.75, 1.5, 1.1};
  if (settings.p != 0) all = {settings.p};
  const double peak = measure_peak();
  const std::ptrdiff_t width = settings.width == 0 ? lane_width() : settings.width;
  std::printf("instruction set %s, %td lanes, multiply-adds of this core at %.1f GFLOP/s\n",
              std::string(to_string(active_isa())).c_str(), width, peak * 1e-9);
  std::printf("\n%6s %12s %12s %7s %9s %9s\n", "p", "us in lanes", "us alone", "ratio", "GFLOP/s", "of peak");
  std::vector<double> in_lanes;
  for (const double p : all) {
    const Runs runs = make_runs(width, p, settings.steps);
    const double steps = static_cast<double>(settings.steps);
    const double lanes = best_time([&] { descend_in_lanes(runs.tasks, {.width = width}); }) / steps /
                         static_cast<double>(width);
    const DescentTask& first = runs.tasks.front();
    const double alone = best_time([&] { descend(*first.model, first.optimizer, first.options); }) / steps;
    std::printf("%6g %12.3f %12.3f %7.2f %9.2f %8.1f%%\n", p, lanes * 1e6, alone * 1e6, alone / lanes,
                flops / lanes * 1e-9, 100 * flops / lanes / peak);
    in_lanes.push_back(lanes);
  }
  std::printf("\n%6s %6s %9s %9s %13s %9s %9s %9s  (ns)\n", "p", "lanes", "step", "products", "exponentials",
              "powers", "norms", "scalars");
  for (std::size_t k = 0; k < all.size(); ++k) print_breakdown(all[k], width, in_lanes[k]);
}

bool read_option(const std::string& name, const char* value, Settings& settings) {
  if (name == "--steps") settings.steps = std::atoll(value);
  if (name == "--p") settings.p = std::atof(value);
  if (name == "--width") settings.width = std::atoll(value);
  return name == "--steps" || name == "--p" || name == "--width";
}

}  // namespace
}  // namespace attmirror

int main(int count, char** words) {
  attmirror::Settings settings;
  for (int k = 1; k < count; k += 2)
    if (k + 1 == count || !attmirror::read_option(words[k], words[k + 1], settings)) {
      std::fprintf(stderr, "attmirror_bench_sweep: what is %s? Options: --steps N, --p P, --width L\n",
                   words[k]);
      return 2;
    }
  attmirror::run(settings);
}
