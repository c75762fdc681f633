// The hard cases of step_cases.hpp in device memory, and the bookkeeping of the programs that check steps on a GPU.
#pragma once

#include "base/half_floats.hpp"
#include "device/device_memory.hpp"
#include "mirror/make_step_plan.hpp"
#include "support/step_cases.hpp"
#include <attmirror/mirror/cuda_step.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

namespace attmirror::test {

inline int failures = 0;

inline ThreadPool& pool() {
  static ThreadPool threads;
  return threads;
}

inline void expect(bool holds, const std::string& what) {
  if (holds) return;
  ++failures;
  std::printf("FAILED: %s\n", what.c_str());
}

template <class T>
constexpr StepElement element_of = std::is_same_v<T, float>      ? StepElement::float32
                                   : std::is_same_v<T, BFloat16> ? StepElement::bfloat16
                                   : std::is_same_v<T, Half>     ? StepElement::float16
                                                                 : StepElement::float64;
template <class T>
using State = std::conditional_t<std::is_same_v<T, double>, double, float>;

// The arrays of a step on both sides. The cases are cut into tensors of all sizes, 0 among them, at all alignments,
// with a number between two tensors that nobody may touch.
template <class T>
class Arrays {
 public:
  Arrays(const std::vector<StepCase>& cases, bool has_master, double momentum)
      : w(place(cases, [](const StepCase& c) { return narrow<T>(c.w); })),
        g(place(cases, [](const StepCase& c) { return narrow<T>(c.d); })),
        y(w.size(), State<T>(7)),
        m(w.size(), momentum > 0 ? State<T>(1e-4) : State<T>(7)),
        device_w(w),
        device_g(g),
        device_y(y),
        device_m(m),
        workspace(std::size_t{1} << 24) {
    for (const auto& [at, size] : ranges)
      tensors.push_back({device_w.data() + at, device_g.data() + at,
                         has_master ? device_y.data() + at : nullptr,
                         momentum > 0 ? device_m.data() + at : nullptr, size});
  }

  // Sizes 0, 1, 2, ... 9, then longer and longer.
  template <class F>
  std::vector<T> place(const std::vector<StepCase>& cases, F&& f) {
    std::vector<T> values;
    ranges.clear();
    std::size_t next = 0;
    for (std::ptrdiff_t i = 0; next < cases.size(); ++i) {
      const std::ptrdiff_t wanted = i < 200 ? i % 10 : (i - 190) * 700 + i % 16;
      const auto size = std::min<std::ptrdiff_t>(wanted, static_cast<std::ptrdiff_t>(cases.size() - next));
      values.push_back(narrow<T>(7));  // nobody's
      while (i % 3 == 0 && values.size() % 16 != 0) values.push_back(narrow<T>(7));
      ranges.push_back({static_cast<std::ptrdiff_t>(values.size()), size});
      for (std::ptrdiff_t j = 0; j < size; ++j) values.push_back(f(cases[next++]));
    }
    values.push_back(narrow<T>(7));
    return values;
  }

  void fetch() {
    device_w.copy_to(w);
    device_y.copy_to(y);
    device_m.copy_to(m);
  }

  // What lies between the tensors is as it was.
  bool borders_hold() const {
    std::ptrdiff_t at = 0;
    for (const auto& [begin, size] : ranges) {
      for (; at < begin; ++at)
        if (widen(w[static_cast<std::size_t>(at)]) != 7 || widen(y[static_cast<std::size_t>(at)]) != 7)
          return false;
      at = begin + size;
    }
    return widen(w.back()) == 7;
  }

  struct Range {
    std::ptrdiff_t begin, size;
  };
  std::vector<Range> ranges;
  std::vector<T> w, g;
  std::vector<State<T>> y, m;
  DeviceArray<T> device_w, device_g;
  DeviceArray<State<T>> device_y, device_m;
  DeviceArray<char> workspace;
  std::vector<StepTensor> tensors;
};

// The largest of f(i), i < count, by all threads.
template <class F>
double largest(std::ptrdiff_t count, F&& f) {
  std::vector<double> parts(static_cast<std::size_t>((count + 999) / 1000), 0.0);
  pool().run(static_cast<std::ptrdiff_t>(parts.size()), [&](std::ptrdiff_t c) {
    double& part = parts[static_cast<std::size_t>(c)];
    for (std::ptrdiff_t i = c * 1000; i < std::min(count, (c + 1) * 1000); ++i) {
      const double error = f(i);
      part = error > part || std::isnan(error) ? error : part;
    }
  });
  double result = 0;
  for (const double part : parts) result = part > result || std::isnan(part) ? part : result;
  return result;
}

inline void report(const std::string& what, double error, double bound) {
  std::printf("%-64s %8.3f of %g\n", what.c_str(), error, bound);
  std::fflush(stdout);
  expect(error <= bound, what);
}

template <class T>
bool same_bits(T a, T b) {
  return std::memcmp(&a, &b, sizeof a) == 0;
}

}  // namespace attmirror::test
