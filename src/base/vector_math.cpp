#include "base/vector_math.hpp"

#include "base/dispatch.hpp"
#include "base/vector_math_kernels.hpp"
#include <attmirror/base/error.hpp>

#include <cmath>
#include <cstddef>

#include <fmt/format.h>

namespace attmirror {

namespace {

const VectorMathKernels& vector_kernels() {
  return choose_kernels<isa_sse2::vector_math_kernels, isa_avx2::vector_math_kernels,
                        isa_avx512::vector_math_kernels>();
}

std::ptrdiff_t common_size(std::span<const double> in, std::span<double> out) {
  if (in.size() != out.size())
    throw bad_input(fmt::format("out has {} elements: expected {}, as many as in", out.size(), in.size()));
  return std::ssize(in);
}

void apply(VectorMathKernels::Map map, std::span<const double> in, std::span<double> out) {
  map(in.data(), out.data(), common_size(in, out));
}

}  // namespace

void vexp(std::span<const double> in, std::span<double> out) { apply(vector_kernels().exp, in, out); }
void vlog(std::span<const double> in, std::span<double> out) { apply(vector_kernels().log, in, out); }
void vlog1p(std::span<const double> in, std::span<double> out) { apply(vector_kernels().log1p, in, out); }
void vsqrt(std::span<const double> in, std::span<double> out) { apply(vector_kernels().sqrt, in, out); }
void vcbrt(std::span<const double> in, std::span<double> out) { apply(vector_kernels().cbrt, in, out); }

void vpow(std::span<const double> in, double r, std::span<double> out) {
  if (!std::isfinite(r)) throw bad_input(fmt::format("r is {}: expected a finite exponent", r));
  vector_kernels().pow(in.data(), r, out.data(), common_size(in, out));
}

}  // namespace attmirror
