// Elementary functions of whole arrays, on the vector units of the processor.
//
// out[i] = f(in[i]) for arrays of any length; `in` and `out` may be the same array but must not overlap otherwise,
// and must have the same length (Error, bad input). A result depends on its own argument only: not on its position,
// the length of the array or its neighbours. Error bounds are in units in the last place of the exact result and hold
// on every instruction set (isa.hpp); the last bits may differ between instruction sets.
#pragma once

#include <span>

namespace attmirror {

// e^x to 0.7 ulp; denormal results to 0.85. exp(0) = 1 and exp(-inf) = 0 exactly.
void vexp(std::span<const double> in, std::span<double> out);

// log x to 0.95 ulp, denormal x included. log(0) = -inf, log(1) = 0 exactly, NaN for x < 0.
void vlog(std::span<const double> in, std::span<double> out);

// log(1 + x) for x >= 0 to 0.95 ulp. (Unspecified for x < 0.)
void vlog1p(std::span<const double> in, std::span<double> out);

// |x|^r to 0.75 ulp for |r| <= 100 and to 1 ulp for every finite r, denormal x included; denormal results to
// 0.1 more. As in C, |x|^0 = 1 for all x; 0^r = 0 for r > 0 and inf for r < 0; inf^r the other way round.
// Throws Error (bad input) unless r is finite.
void vpow(std::span<const double> in, double r, std::span<double> out);

// The square root, correctly rounded. NaN for x < 0.
void vsqrt(std::span<const double> in, std::span<double> out);

// The cube root, with the sign of x, to 0.501 ulp. cbrt of 0, -0, inf, -inf, NaN is that value itself.
void vcbrt(std::span<const double> in, std::span<double> out);

}  // namespace attmirror
