// The certificate of a problem whose unknowns are scores themselves. Internal.
//
//   min ||s||_p   s.t.   s_i - s_j >= 1  or  = 0
//
// This is what is left of one query when embeddings are one-hot: constraints are two numbers, not two vectors. The
// bound is the one of margin/certificate.hpp, sum_k c_k lambda_k / ||sum_k lambda_k (e_i - e_j)||_q, and rounding is
// charged to the answer in the same way; only the cost differs: linear in the constraints, where the dense verifier
// takes another factor of |V|. A problem that falls apart into such parts has the certificate
//
//   norm = (sum_c norm_c^p)^{1/p},     dual = (sum_c dual_c^p)^{1/p}
//
// because multipliers of a part may be scaled at will: with ||u_c||_q = dual_c^{p-1}, so that c^T lambda_c =
// dual_c^p, the whole has sum_c dual_c^p over (sum_c dual_c^{(p-1) q})^{1/q}, the formula above (p = infinity:
// the largest).
#pragma once

#include "next_token/difference_problem.hpp"
#include <attmirror/margin/certificate.hpp>

#include <cstddef>
#include <span>

namespace attmirror {

// `differences` count tokens from 0 to scores.size() - 1. Entrywise norms only.
Certificate certify_differences(std::span<const Difference> differences, const Norm& norm,
                                std::span<const double> scores, std::span<const double> lambda);

// Certificates of parts without common unknowns, put together one after the other.
class CombinedCertificate {
 public:
  explicit CombinedCertificate(const Norm& norm) : p_(norm.p()) {}

  // The next part, whose constraints have the numbers from `first` on.
  void add(const Certificate& part, std::ptrdiff_t first);
  Certificate result() const;

 private:
  // A norm over the parts that neither over- nor underflows: the largest, and the sum of p-th powers relative to it.
  struct PowerSum {
    long double largest = 0, sum = 0;
    void add(long double value, double p);
    long double root(double p) const;
  };

  double p_;
  PowerSum norms_, duals_;
  Certificate result_{};
  bool any_ = false;
};

}  // namespace attmirror
