#include "next_token/difference_certificate.hpp"

#include "base/numbers.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace attmirror {

namespace {

using Real = long double;

constexpr Real unit = std::numeric_limits<Real>::epsilon() / 2;
constexpr Real double_rounding = std::numeric_limits<double>::epsilon();
constexpr Real negligible_doubt = 1e-14L;

// (sum v^p)^{1/p} of numbers >= 0, relative to the largest so that no power leaves the range.
Real entrywise_norm(const std::vector<Real>& values, Real p) {
  const Real largest = values.empty() ? 0 : *std::max_element(values.begin(), values.end());
  if (largest == 0 || std::isinf(p)) return largest;
  Real sum = 0;
  for (const Real v : values) {
    if (p == 1)
      sum += v / largest;
    else if (p == 2)
      sum += (v / largest) * (v / largest);
    else if (v != 0)
      sum += std::pow(static_cast<double>(v / largest), static_cast<double>(p));
  }
  return largest * (p == 2 ? std::sqrt(sum) : std::pow(sum, 1 / p));
}

Real dual_exponent(Real p) {
  if (p == 1) return infinity;
  if (std::isinf(p)) return 1;
  return p / (p - 1);
}

// Each difference alone demands a norm of 1 / |e_i - e_j|_q: the unit of Certificate::scaled_dual.
Real difference_size(Real p) { return std::pow(Real{2}, std::isinf(p) ? 1 : 1 - 1 / p); }

// How far the scores are from what the differences demand.
void check_margins(std::span<const Difference> differences, std::span<const double> scores,
                   Certificate& result) {
  Real worst_margin = infinity, worst_violation = 0;
  for (std::size_t k = 0; k < differences.size(); ++k) {
    const Difference& d = differences[k];
    const Real a = scores[static_cast<std::size_t>(d.better)], b = scores[static_cast<std::size_t>(d.worse)];
    const Real margin = a - b, size = std::fabs(a) + std::fabs(b);  // wrong by at most unit * size
    Real violation = 0;
    if (d.relation == Relation::at_least) {
      const Real doubt = unit * size;
      worst_margin = std::min(worst_margin, margin);
      violation = 1 - margin + (doubt > negligible_doubt ? doubt : 0);
    } else if (margin != 0) {
      violation = std::fabs(margin) / size;
    }
    if (violation > worst_violation) {
      worst_violation = violation;
      result.worst_constraint = static_cast<std::ptrdiff_t>(k);
    }
  }
  result.worst_margin = static_cast<double>(worst_margin);
  result.worst_violation = static_cast<double>(worst_violation);
}

// The lower bound of the multipliers on every norm.
Real dual_value(std::span<const Difference> differences, std::size_t unknowns, Real p,
                std::span<const double> lambda) {
  std::vector<Real> sum(unknowns, 0), sizes(unknowns, 0);
  Real gain = 0;
  for (std::size_t k = 0; k < differences.size(); ++k) {
    const Difference& d = differences[k];
    const Real value = lambda[k];
    if (value == 0 || (value < 0 && d.relation == Relation::at_least)) continue;
    gain += value * static_cast<Real>(d.bound());  // no term is negative: a relative error of m units at most
    sum[static_cast<std::size_t>(d.better)] += value;
    sum[static_cast<std::size_t>(d.worse)] -= value;
    sizes[static_cast<std::size_t>(d.better)] += std::fabs(value);
    sizes[static_cast<std::size_t>(d.worse)] += std::fabs(value);
  }
  if (gain == 0) return 0;
  const Real error = static_cast<Real>(differences.size() + 6) * unit;
  for (std::size_t i = 0; i < unknowns; ++i) sum[i] = std::fabs(sum[i]) + error * sizes[i];
  return gain * (1 - error) / (entrywise_norm(sum, dual_exponent(p)) * (1 + 8 * double_rounding));
}

}  // namespace

Certificate certify_differences(std::span<const Difference> differences, const Norm& norm,
                                std::span<const double> scores, std::span<const double> lambda) {
  Certificate result;
  const auto finite = [](double value) { return std::isfinite(value); };
  const bool finite_scores = std::all_of(scores.begin(), scores.end(), finite);
  result.norm = result.dual = result.scaled_dual = result.gap = result.worst_margin = nan_value;
  result.worst_violation = infinity;
  if (std::all_of(lambda.begin(), lambda.end(), finite)) {
    const Real dual = dual_value(differences, scores.size(), norm.p(), lambda);
    result.dual = static_cast<double>(dual);
    result.scaled_dual = static_cast<double>(dual * difference_size(norm.p()));
  }
  if (!finite_scores) return result;
  check_margins(differences, scores, result);
  std::vector<Real> sizes;
  for (const double s : scores) sizes.push_back(std::fabs(static_cast<Real>(s)));
  result.norm = static_cast<double>(entrywise_norm(sizes, norm.p()));
  if (!std::isnan(result.dual))
    result.gap = result.norm == 0 && result.dual == 0 ? 0 : (result.norm - result.dual) / result.norm;
  return result;
}

void CombinedCertificate::PowerSum::add(long double value, double p) {
  if (!(value > 0)) {
    if (std::isnan(value)) sum = value;
    return;
  }
  if (value > largest) {
    // Exactly 0 at first; at p = infinity only the largest counts.
    if (largest > 0) sum *= std::pow(largest / value, static_cast<long double>(p));
    largest = value;
  }
  sum += value == largest ? 1 : std::pow(value / largest, static_cast<long double>(p));
}

long double CombinedCertificate::PowerSum::root(double p) const {
  if (std::isnan(sum)) return sum;
  return std::isinf(p) ? largest : largest * std::pow(sum, 1 / static_cast<long double>(p));
}

void CombinedCertificate::add(const Certificate& part, std::ptrdiff_t first) {
  norms_.add(part.norm, p_);
  duals_.add(part.dual, p_);
  result_.worst_margin = any_ ? std::min(result_.worst_margin, part.worst_margin) : part.worst_margin;
  if (part.worst_constraint >= 0 && part.worst_violation > result_.worst_violation)
    result_.worst_constraint = first + part.worst_constraint;
  result_.worst_violation = std::max(result_.worst_violation, part.worst_violation);
  any_ = true;
}

Certificate CombinedCertificate::result() const {
  Certificate result = result_;
  if (!any_) result.worst_margin = infinity;
  result.norm = static_cast<double>(norms_.root(p_));
  // Every part was rounded once to a double: what that may have added is taken off again.
  const long double dual = duals_.root(p_) * (1 - 4 * double_rounding);
  result.dual = static_cast<double>(dual);
  result.scaled_dual = static_cast<double>(dual * difference_size(p_));
  result.gap = result.norm == 0 && result.dual == 0 ? 0 : (result.norm - result.dual) / result.norm;
  return result;
}

}  // namespace attmirror
