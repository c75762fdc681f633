#include "papers/share_interval.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace attmirror {

ShareInterval share_interval(std::ptrdiff_t hits, std::ptrdiff_t count) {
  constexpr double z = 1.959963984540054;  // the normal distribution has 95 % within +- z
  ShareInterval share{hits, count, std::nan("")};
  if (count <= 0) return share;
  const auto n = static_cast<double>(count), p = static_cast<double>(hits) / n;
  const double middle = (p + z * z / (2 * n)) / (1 + z * z / n);
  const double half = z / (1 + z * z / n) * std::sqrt(p * (1 - p) / n + z * z / (4 * n * n));
  share.value = p;
  share.low = hits == 0 ? 0 : std::max(0.0, middle - half);
  share.high = hits == count ? 1 : std::min(1.0, middle + half);
  return share;
}

std::string to_string(const ShareInterval& share) {
  if (share.count == 0) return "–";
  return fmt::format("{:.3f} ({:.3f}, {:.3f})", share.value, share.low, share.high);
}

bool apart(const ShareInterval& one, const ShareInterval& other) {
  return one.low > other.high || other.low > one.high;
}

}  // namespace attmirror
