// A share of runs with its 95 % interval. Internal.
//
// Wilson's interval: the shares p for which the observed one is within z standard errors sqrt(p (1 - p) / n). It stays
// within 0 and 1 and has a width at 0 and 1 hits, where the usual +- z standard errors of the observed share has none.
#pragma once

#include <cstddef>
#include <string>

namespace attmirror {

struct ShareInterval {
  std::ptrdiff_t hits = 0, count = 0;
  double value = 0, low = 0, high = 1;  // NaN, 0 and 1 where there are no runs
};

ShareInterval share_interval(std::ptrdiff_t hits, std::ptrdiff_t count);

// "0.843 (0.819, 0.864)"; "–" where there are no runs.
std::string to_string(const ShareInterval& share);

// Whether two intervals do not overlap: the shares differ, with more than 95 % confidence.
bool apart(const ShareInterval& one, const ShareInterval& other);

}  // namespace attmirror
