// The Bregman divergence of |.|^p / p between two numbers, which the l_p map takes of entries and the Schatten map of
// singular values.
#pragma once

namespace attmirror {

// |a|^p / p - |b|^p / p - sign(b) |b|^{p-1} (a - b), to nearly full relative accuracy also where a and b are close.
double lp_bregman(double a, double b, double p);

}  // namespace attmirror
