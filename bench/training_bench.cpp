// What a training step costs: on the papers' size in several geometries, and as the data grow.
//
//   attmirror_bench_descent --benchmark_filter=PaperSize     the step of P1's experiments
//   attmirror_bench_descent --benchmark_filter=Growth        one gradient and step over n, T and d; time per
//   token too
#include <attmirror/data/generators.hpp>
#include <attmirror/descent/descend.hpp>

#include <benchmark/benchmark.h>

namespace attmirror {
namespace {

// Whole runs of `steps` steps without records, so that what is set up once does not count.
void measure(benchmark::State& state, const Dataset& data, const Optimizer& optimizer, std::int64_t steps,
             int threads) {
  const Attention model(data);
  DescentOptions options{.steps = steps, .record = RecordSchedule::none(), .threads = threads};
  double seconds = 0;
  for (auto _ : state) {
    const DescentRun run = descend(model, optimizer, options);
    state.SetIterationTime(run.seconds);
    seconds += run.seconds;
  }
  // A run evaluates the gradient once more than it steps.
  const auto taken = static_cast<double>(state.iterations() * (steps + 1));
  state.counters["us/step"] = 1e6 * seconds / taken;
  state.counters["ns/token"] = 1e9 * seconds / taken / static_cast<double>(data.total_tokens());
}

// p * 100, then 1 for the papers' eps policy.
void PaperSize(benchmark::State& state) {
  const Dataset data = generate(SphereData{});
  const MirrorDescent rule{.p = static_cast<double>(state.range(0)) / 100,
                           .lr = 0.1,
                           .normalized = true,
                           .eps = state.range(1) != 0 ? EpsPolicy::paper : EpsPolicy::exact};
  measure(state, data, rule, 2000, 1);
}
BENCHMARK(PaperSize)
    ->ArgNames({"100p", "paper"})
    ->ArgsProduct({{110, 133, 150, 175, 200, 250, 300, 400}, {0, 1}})
    ->UseManualTime();

void Growth(benchmark::State& state) {
  const Dataset data =
      generate(SphereData{.samples = state.range(0), .tokens = state.range(1), .dim = state.range(2)});
  measure(state, data, MirrorDescent{.p = 2, .lr = 0.1, .normalized = true},
          std::max<std::int64_t>(9, 20'000'000 / (data.total_tokens() * data.dim())),
          static_cast<int>(state.range(3)));
}
BENCHMARK(Growth)
    ->ArgNames({"n", "T", "d", "threads"})
    ->Args({6, 8, 10, 1})
    ->Args({12, 8, 10, 1})
    ->Args({48, 8, 10, 1})
    ->Args({192, 8, 10, 1})
    ->Args({768, 8, 10, 1})
    ->Args({3072, 8, 10, 1})
    ->Args({12288, 8, 10, 1})
    ->Args({6, 32, 10, 1})
    ->Args({6, 128, 10, 1})
    ->Args({6, 512, 10, 1})
    ->Args({6, 2048, 10, 1})
    ->Args({6, 8192, 10, 1})
    ->Args({64, 32, 16, 1})
    ->Args({64, 32, 32, 1})
    ->Args({64, 32, 64, 1})
    ->Args({64, 32, 128, 1})
    ->Args({1024, 64, 64, 1})
    ->Args({1024, 64, 64, 2})
    ->Args({4096, 128, 128, 1})
    ->Args({4096, 128, 128, 2})
    ->UseManualTime()
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace attmirror
