// How long one element of an elementary function takes: ours on each instruction set, and a loop over libm.
//
// The time per element is in the counter per_element.
#include "base/vector_math.hpp"
#include <attmirror/base/isa.hpp>

#include <cmath>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

namespace {

using namespace attmirror;

using ArrayFunction = void (*)(std::span<const double>, std::span<double>);

struct Case {
  const char* name;
  ArrayFunction ours, libm;
  double low, high;  // range of the arguments
};

template <auto scalar>
void loop(std::span<const double> in, std::span<double> out) {
  for (std::size_t i = 0; i < in.size(); ++i) out[i] = scalar(in[i]);
}

// The exponent of the inverse mirror map at p = 1.75; no shorter way than a general power.
constexpr double exponent = 1 / 0.75;

const Case cases[] = {
    {"exp", vexp, loop<[](double x) { return std::exp(x); }>, -30.0, 0.0},
    {"log", vlog, loop<[](double x) { return std::log(x); }>, 0.01, 4.0},
    {"log1p", vlog1p, loop<[](double x) { return std::log1p(x); }>, 0.0, 1.0},
    {"pow", [](std::span<const double> in, std::span<double> out) { vpow(in, exponent, out); },
     loop<[](double x) { return std::pow(x, exponent); }>, 0.0, 4.0},
    {"sqrt", vsqrt, loop<[](double x) { return std::sqrt(x); }>, 0.0, 4.0},
    {"cbrt", vcbrt, loop<[](double x) { return std::cbrt(x); }>, 0.0, 4.0},
};

void measure(benchmark::State& state, ArrayFunction function, double low, double high) {
  std::mt19937_64 engine{1};
  std::uniform_real_distribution<double> uniform(low, high);
  std::vector<double> in(static_cast<std::size_t>(state.range(0))), out(in.size());
  for (double& x : in) x = uniform(engine);
  for (auto _ : state) {
    function(in, out);
    benchmark::DoNotOptimize(out.data());
    benchmark::ClobberMemory();
  }
  const double elements = static_cast<double>(state.iterations()) * static_cast<double>(in.size());
  state.counters["per_element"] =
      benchmark::Counter(elements, benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

void add(const std::string& name, const Case& c, ArrayFunction function, Isa isa) {
  benchmark::RegisterBenchmark(name.c_str(),
                               [=](benchmark::State& state) {
                                 set_isa(isa);
                                 measure(state, function, c.low, c.high);
                               })
      ->Arg(128)
      ->Arg(4096);
}

const bool registered = [] {
  for (const Case& c : cases) {
    add(std::string(c.name) + "/libm", c, c.libm, best_isa());
    for (Isa isa : {Isa::sse2, Isa::avx2, Isa::avx512})
      if (is_supported(isa)) add(std::string(c.name) + "/" + std::string(to_string(isa)), c, c.ours, isa);
  }
  return true;
}();

}  // namespace
