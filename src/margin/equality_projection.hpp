// The nearest W, in the Frobenius norm, that meets the equalities: W + B_E^T (B_E B_E^T)^-1 (c_E - B_E W).
//
// An interior point method meets them up to rounding times the condition of its last system; a certificate asks for rounding
// alone. What is left is of 1e-12 or so, and so is the change of the norm.
#pragma once

#include "margin/norm_barrier.hpp"
#include <attmirror/base/aligned.hpp>

#include <cstddef>
#include <vector>

namespace attmirror {

class EqualityProjection {
 public:
  explicit EqualityProjection(const ScaledConstraints& constraints);

  bool is_needed() const { return !equalities_.empty(); }
  Matrix operator()(Matrix W, MarginOperator& B) const;

 private:
  std::vector<std::ptrdiff_t> equalities_;
  PaddedMatrix factor_;
  std::ptrdiff_t size_ = 0;
};

}  // namespace attmirror
