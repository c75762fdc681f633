// The parts of an l_r norm (sum |w_j|^r)^{1/r} that follow its sum, for those who sum by themselves.
#pragma once

#include <attmirror/mirror/lp_map.hpp>

namespace attmirror {

// sum^{1/r}
double lp_root(double sum, const LpMap::Exponent& exponent);

// The plain sum serves almost always. Far from 1 its root would lose digits to the rounding of 1/r, and in the end
// overflow: there the sum of the |w_j / m|^r serves, with m = max |w_j|.
inline bool plain_sum_serves(double sum) { return sum > 1e-12 && sum < 1e12; }

// Below this 1/m might overflow, and the numbers must be lifted first.
inline constexpr double smallest_divisor = 0x1p-1000;

}  // namespace attmirror
