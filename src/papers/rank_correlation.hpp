// Whether two numbers rise together, whatever their scales. Internal.
#pragma once

#include <vector>

namespace attmirror {

// Spearman's: Pearson's correlation of the ranks, where equal numbers share the mean of their ranks. NaN where all
// numbers of one kind are equal. Both lists have the same length.
double rank_correlation(const std::vector<double>& x, const std::vector<double>& y);

}  // namespace attmirror
