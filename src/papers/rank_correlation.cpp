#include "papers/rank_correlation.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace attmirror {

namespace {

// 1, 2, ... by size; equal numbers share the mean of their places.
std::vector<double> ranks_of(const std::vector<double>& values) {
  std::vector<double> ranks;
  for (const double value : values) {
    const auto below = std::ranges::count_if(values, [&](double other) { return other < value; });
    const auto equal = std::ranges::count(values, value);
    ranks.push_back(static_cast<double>(below) + (static_cast<double>(equal) + 1) / 2);
  }
  return ranks;
}

}  // namespace

double rank_correlation(const std::vector<double>& x, const std::vector<double>& y) {
  const std::vector<double> a = ranks_of(x), b = ranks_of(y);
  const double middle = (static_cast<double>(x.size()) + 1) / 2;
  double ab = 0, aa = 0, bb = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    ab += (a[i] - middle) * (b[i] - middle);
    aa += (a[i] - middle) * (a[i] - middle);
    bb += (b[i] - middle) * (b[i] - middle);
  }
  return ab / std::sqrt(aa * bb);
}

}  // namespace attmirror
