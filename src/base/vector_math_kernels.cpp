// The loops behind vector_math.hpp, compiled once per instruction set.
//
// An array is treated in Wide vectors; what remains goes through one vector of each smaller width down to a
// single double. That is allowed because a value's result has the same bits at every width, and it keeps that
// promise tested: arrays of different lengths send the same value through different widths.
#include "base/vector_math_kernels.hpp"

#include "base/vector_math_inline.hpp"

namespace attmirror::ATTMIRROR_ISA {
namespace {

template <class V, class Function>
[[gnu::always_inline]] inline std::ptrdiff_t apply(Function function, const double* in, double* out,
                                                   std::ptrdiff_t begin, std::ptrdiff_t size) {
  for (; begin + lanes<V> <= size; begin += lanes<V>) store<V>(out + begin, function(load<V>(in + begin)));
  return begin;
}

template <class Function>
[[gnu::always_inline]] inline void map(Function function, const double* in, double* out,
                                       std::ptrdiff_t size) {
  std::ptrdiff_t done = apply<Wide>(function, in, out, 0, size);
  if constexpr (sizeof(Wide) > sizeof(F64x4)) done = apply<F64x4>(function, in, out, done, size);
  if constexpr (sizeof(Wide) > sizeof(F64x2)) done = apply<F64x2>(function, in, out, done, size);
  apply<double>(function, in, out, done, size);
}

void exp_array(const double* in, double* out, std::ptrdiff_t size) {
  map([](auto x) { return exp(x); }, in, out, size);
}
void log_array(const double* in, double* out, std::ptrdiff_t size) {
  map([](auto x) { return log(x); }, in, out, size);
}
void log1p_array(const double* in, double* out, std::ptrdiff_t size) {
  map([](auto x) { return log1p(x); }, in, out, size);
}
void sqrt_array(const double* in, double* out, std::ptrdiff_t size) {
  map([](auto x) { return sqrt(x); }, in, out, size);
}
void cbrt_array(const double* in, double* out, std::ptrdiff_t size) {
  map([](auto x) { return cbrt(x); }, in, out, size);
}
void pow_array(const double* in, double r, double* out, std::ptrdiff_t size) {
  map([r](auto x) { return pow_abs(x, broadcast<decltype(x)>(r)); }, in, out, size);
}
void exp_of_term_array(const double* in, double* out, std::ptrdiff_t size) {
  map([](auto x) { return exp_of_term(x); }, in, out, size);
}

}  // namespace

const VectorMathKernels vector_math_kernels{.exp = &exp_array,
                                            .log = &log_array,
                                            .log1p = &log1p_array,
                                            .sqrt = &sqrt_array,
                                            .cbrt = &cbrt_array,
                                            .pow = &pow_array,
                                            .exp_of_term = &exp_of_term_array};

}  // namespace attmirror::ATTMIRROR_ISA
