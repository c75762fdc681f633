#include "base/dispatch.hpp"
#include "base/words.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/base/isa.hpp>

#include <atomic>
#include <cstdlib>
#include <string>

#include <fmt/format.h>

namespace attmirror {

std::string_view to_string(Isa isa) {
  switch (isa) {
    case Isa::sse2:
      return "sse2";
    case Isa::avx2:
      return "avx2";
    case Isa::avx512:
      return "avx512";
  }
  return "unknown";
}

Isa parse_isa(std::string_view name) {
  for (Isa isa : {Isa::sse2, Isa::avx2, Isa::avx512})
    if (name == to_string(isa)) return isa;
  throw bad_input(
      fmt::format("isa is \"{}\": expected {}", name, expected_choice(name, {"sse2", "avx2", "avx512"})));
}

namespace {

// What this processor and operating system can run.
bool processor_has(Isa isa) {
  switch (isa) {
    case Isa::sse2:
      return true;
    case Isa::avx2:
      return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    case Isa::avx512:
      return processor_has(Isa::avx2) && __builtin_cpu_supports("avx512f") &&
             __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
             __builtin_cpu_supports("avx512bw");
  }
  return false;
}

}  // namespace

bool is_supported(Isa isa) { return is_built(isa) && processor_has(isa); }

Isa best_isa() {
  for (Isa isa : {Isa::avx512, Isa::avx2, Isa::sse2})
    if (is_supported(isa)) return isa;
  throw environment_error(
      "this attmirror was built with the kernels of another machine, which this processor lacks: build "
      "it here, or with -DATTMIRROR_KERNELS=all");
}

namespace {

Isa require_supported(Isa isa) {
  if (!is_built(isa))
    throw bad_input(
        fmt::format("isa is {}: this attmirror was built with the kernels of {} alone "
                    "(-DATTMIRROR_KERNELS=all builds them all)",
                    to_string(isa), to_string(best_isa())));
  if (!is_supported(isa))
    throw bad_input(
        fmt::format("isa is {}: this processor supports up to {}", to_string(isa), to_string(best_isa())));
  return isa;
}

Isa initial_isa() {
  const char* forced = std::getenv("ATTMIRROR_ISA");
  return forced == nullptr || *forced == '\0' ? best_isa() : require_supported(parse_isa(forced));
}

std::atomic<Isa>& current_isa() {
  static std::atomic<Isa> isa{initial_isa()};
  return isa;
}

}  // namespace

Isa active_isa() { return current_isa().load(std::memory_order_relaxed); }

void set_isa(Isa isa) { current_isa().store(require_supported(isa), std::memory_order_relaxed); }

}  // namespace attmirror
