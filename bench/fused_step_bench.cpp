// How fast is a fused step on the CPU? Nanoseconds per parameter and bytes per second for each p, format and option,
// beside the loop w -= rate g in the same run: what any optimizer must read and write.
//
//   attmirror_bench_step [parameters] [threads]
#include <attmirror/base/thread_pool.hpp>
#include <attmirror/mirror/fused_step.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

using namespace attmirror;

namespace {

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// The best of a few runs of about a tenth of a second.
template <class F>
double best_seconds(F&& f) {
  f();
  double best = 1e9, spent = 0;
  for (int run = 0; run < 5 || (spent < 0.5 && run < 50); ++run) {
    const double start = seconds_now();
    f();
    const double taken = seconds_now() - start;
    best = std::min(best, taken);
    spent += taken;
  }
  return best;
}

// Numbers like those of a network: weights of a few hundredths, gradients of a few thousandths, both signs.
float draw(std::uint32_t& state, float size) {
  state = state * 1664525u + 1013904223u;
  const float uniform = static_cast<float>(state >> 8) * 0x1p-24f - 0.5f;
  return size * (uniform + (uniform < 0 ? -0.01f : 0.01f));
}

struct Arrays {
  std::vector<unsigned char> weights, gradient, master, momentum;
};

void put(std::vector<unsigned char>& bytes, StepElement element, std::size_t i, float x) {
  const auto bits = [&]<class T>(T value) {
    const auto* from = reinterpret_cast<const unsigned char*>(&value);
    std::copy(from, from + sizeof value, bytes.begin() + static_cast<std::ptrdiff_t>(i * sizeof value));
  };
  if (element == StepElement::float32) bits(x);
  if (element == StepElement::float64) bits(static_cast<double>(x));
  const auto* words = reinterpret_cast<const std::uint16_t*>(&x);
  if (element == StepElement::bfloat16) bits(words[1]);
  // Halves of this size have exponents from 2^-14 on: shift the exponent's origin from 127 to 15.
  if (element == StepElement::float16) {
    const auto word = static_cast<std::uint32_t>(words[1]) << 16 | words[0];
    bits(static_cast<std::uint16_t>((word >> 16 & 0x8000u) | ((word & 0x7fffffffu) - (112u << 23)) >> 13));
  }
}

Arrays make_arrays(StepElement element, std::size_t size) {
  Arrays a;
  const std::size_t bytes = size_of(element), state_bytes = std::max<std::size_t>(4, bytes);
  a.weights.resize(size * bytes);
  a.gradient.resize(size * bytes);
  a.master.resize(size * state_bytes);
  a.momentum.resize(size * state_bytes);
  std::uint32_t state = 7;
  for (std::size_t i = 0; i < size; ++i) {
    put(a.weights, element, i, draw(state, 0.1f));
    put(a.gradient, element, i, draw(state, 0.01f));
  }
  return a;
}

struct Case {
  StepElement element;
  StepOptions options;
  bool with_master;
};

void show(const std::string& what, double seconds, std::size_t size, double bytes, double plain) {
  fmt::print("{:<58} {:7.3f} ns {:7.1f} GB/s {:6.2f} x\n", what, seconds / static_cast<double>(size) * 1e9,
             bytes * static_cast<double>(size) / seconds * 1e-9, seconds / plain);
}

}  // namespace

int main(int argc, char** argv) {
  const auto size = static_cast<std::size_t>(argc > 1 ? std::atoll(argv[1]) : 1 << 24);
  const int threads = argc > 2 ? std::atoi(argv[2]) : 1;
  const std::unique_ptr<ThreadPool> pool = threads > 1 ? std::make_unique<ThreadPool>(threads) : nullptr;

  std::vector<float> w(size), g(size);
  std::uint32_t state = 3;
  for (std::size_t i = 0; i < size; ++i) {
    w[i] = draw(state, 0.1f);
    g[i] = draw(state, 0.01f);
  }
  const auto plain_loop = [&] {
    for (std::size_t i = 0; i < size; ++i) w[i] -= 1e-4f * g[i];
  };
  const double plain = best_seconds(plain_loop);
  fmt::print("{} parameters, {} thread(s); times of w -= rate g in floats, on one thread\n", size, threads);
  show("w -= rate g", plain, size, 12, plain);

  for (const StepElement element :
       {StepElement::float32, StepElement::bfloat16, StepElement::float16, StepElement::float64}) {
    Arrays arrays = make_arrays(element, size);
    const auto run = [&](const StepOptions& options, bool with_master) {
      StepTensor tensor{arrays.weights.data(), arrays.gradient.data(), nullptr, nullptr,
                        static_cast<std::ptrdiff_t>(size)};
      if (with_master) {
        tensor.master = arrays.master.data();
        fill_masters(element, {&tensor, 1}, options, pool.get());
      }
      if (options.momentum > 0) tensor.momentum = arrays.momentum.data();
      const double seconds = best_seconds([&] { fused_step(element, {&tensor, 1}, options, pool.get()); });
      const double unit = static_cast<double>(size_of(element)), state_unit = std::max(4.0, unit);
      const bool twice = options.normalized || options.rule == StepRule::steepest || options.skip_nonfinite;
      const double bytes = 3 * unit + (twice ? unit : 0) + (with_master ? 2 * state_unit : 0) +
                           (options.momentum > 0 ? (twice ? 3 : 2) * state_unit : 0);
      show(fmt::format("{} {} p = {}{}{}{}{}", to_string(element), to_string(options.rule), options.p,
                       with_master ? ", master" : "", options.normalized ? ", normalized" : "",
                       options.momentum > 0 ? ", momentum" : "",
                       options.weight_decay > 0 ? ", decay"
                       : options.skip_nonfinite ? ", skips Inf and NaN"
                                                : ""),
           seconds, size, bytes, plain);
    };
    const double rate = 1e-6;
    for (const double p : {2.0, 3.0, 1.5, 1.1, 1.75, 2.5, 10.0}) {
      run({.p = p, .rate = rate}, false);
      if (element != StepElement::float64) run({.p = p, .rate = rate}, true);
    }
    for (const double p : {2.0, 3.0, 1.1, 1.75}) run({.p = p, .rate = rate, .normalized = true}, false);
    run({.p = 2, .rate = rate, .momentum = 0.9}, false);
    run({.p = 1.75, .rate = rate, .momentum = 0.9}, false);
    run({.p = 1.5, .rate = rate, .weight_decay = 0.1}, false);
    run({.p = 2, .rate = rate, .skip_nonfinite = true}, false);
    run({.rule = StepRule::steepest, .p = 3, .rate = rate}, false);
    run({.rule = StepRule::steepest, .p = 1.1, .rate = rate}, false);
    run({.rule = StepRule::sign, .rate = rate}, false);
    show("w -= rate g, again", best_seconds(plain_loop), size, 12, plain);
  }
}
