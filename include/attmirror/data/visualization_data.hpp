// The two data sets in the plane on which P3 draws how W and (K,Q) turn towards their max-margin solutions,
// with torch's generator in the order v, X, Z. All labels are +1; v and the queries have norm 1. Drawn and
// normalised in single precision, as there, then widened to double.
#pragma once

#include <attmirror/data/dataset.hpp>

#include <cstdint>

namespace attmirror {

// Two sequences of three tokens: 0.3 randn about (-1, 0) and about (1, 0). Tokens 0 and 2 are optimal, and the
// solution of least nuclear norm has rank 1.
struct Visualization1Data {
  std::uint64_t seed = 1;  // P3's; the lower 32 bits count

  void validate() const {}  // every seed will do
};

Dataset generate(const Visualization1Data& options);

// Two sequences of five tokens: first (1, 1/2) and (1, -1/2), the other four 0.5 randn about (-1, 0). The first
// tokens are optimal, and the solution of least nuclear norm has rank 2.
struct Visualization2Data {
  std::uint64_t seed = 3;  // P3's; the lower 32 bits count

  void validate() const {}  // every seed will do
};

Dataset generate(const Visualization2Data& options);

}  // namespace attmirror
