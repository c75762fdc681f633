// What the parts of network_check share: how a check is reported, and made-up data.
#pragma once

#include <attmirror/deep/token_set.hpp>

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include <ATen/ATen.h>

namespace device_checks {

inline const at::Device gpu(at::kCUDA, 0);
inline int failures = 0;

inline void report(const std::string& what, bool right) {
  std::printf("%-6s %s\n", right ? "ok" : "FAILED", what.c_str());
  failures += right ? 0 : 1;
  std::fflush(stdout);  // what was found is there even if a later check ends the program
}

inline double distance(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor wide = b.detach().to(at::kDouble).cpu();
  return ((a.detach().to(at::kDouble).cpu() - wide).norm() / (wide.norm() + 1e-300)).item<double>();
}

inline void close(const std::string& what, const at::Tensor& a, const at::Tensor& b, double bound) {
  const double d = distance(a, b);
  char text[64];
  std::snprintf(text, sizeof text, ": %.2e, at most %.0e", d, bound);
  report(what + text, d <= bound);
}

inline at::Tensor random(at::IntArrayRef sizes, std::uint64_t seed) {
  at::Generator generator = at::detail::createCPUGenerator(seed);
  return at::randn(sizes, generator, at::TensorOptions().dtype(at::kFloat));
}

inline at::Tensor leaf(const at::Tensor& x) { return x.detach().clone().set_requires_grad(true); }

inline attmirror::TokenSet texts(const std::vector<std::int64_t>& lengths, std::int64_t vocabulary) {
  attmirror::TokenSet set;
  set.vocabulary = vocabulary;
  set.length = 512;
  std::uint32_t state = 1;
  for (const std::int64_t length : lengths) {
    for (std::int64_t t = 0; t < length; ++t)
      set.ids.push_back(static_cast<std::int32_t>((state = state * 1664525u + 1013904223u) >> 8) %
                        static_cast<std::int32_t>(vocabulary));
    set.offsets.push_back(static_cast<std::int64_t>(set.ids.size()));
    set.labels.push_back(static_cast<std::int32_t>(set.labels.size() % 2));
  }
  return set;
}

// graph_checks.cpp
void check_graphs();

}  // namespace device_checks
