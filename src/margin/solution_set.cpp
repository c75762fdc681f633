#include "margin/solution_set.hpp"

#include "base/numbers.hpp"
#include "margin/nearest_solution.hpp"
#include "margin/norm_barrier.hpp"
#include <attmirror/base/error.hpp>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace attmirror {

namespace {

// How much of the largest margin a member of the set may lack.
constexpr double set_tolerance = 1e-6;
// Beyond that the linear program, dense in the entries of W, takes minutes.
constexpr std::ptrdiff_t most_constraints = 4000, most_entries = 2500;

// min over k of (B W)_k / c_k
double worst_ratio(const ScaledConstraints& constraints, const Matrix& W) {
  const Vector margins = MarginOperator(constraints, nullptr).forward(W);
  double worst = infinity;
  for (std::ptrdiff_t k = 0; k < margins.size(); ++k)
    if (const double bound = constraints.bounds()[static_cast<std::size_t>(k)]; bound > 0)
      worst = std::min(worst, margins[k] / bound);
  return worst;
}

}  // namespace

Solutions solutions_of(const Norm& norm) {
  if (norm.p() > 1 && std::isfinite(norm.p())) return Solutions::one;
  if (norm == Norm::nuclear()) return Solutions::seldom_several;
  return Solutions::several;
}

SolutionSet::SolutionSet(const MarginConstraints& constraints, const Norm& norm, const Matrix& solution)
    : constraints_(constraints), norm_(norm) {
  if (!norm.is_entrywise() || solutions_of(norm) != Solutions::several)
    throw bad_input(fmt::format("norm is {}: a distance from the set of solutions is known for 1 and inf",
                                to_string(norm)));
  if (constraints_.count() > most_constraints || solution.size() > most_entries)
    throw bad_input(
        fmt::format("the problem has {} constraints on {} entries: a distance from the set of its solutions "
                    "takes at most {} and {}",
                    constraints_.count(), solution.size(), most_constraints, most_entries));
  if (constraints_.equalities() > 0)
    throw bad_input("the problem has equalities: expected inequalities alone for a set of solutions");
  const double worst = worst_ratio(constraints_, solution);
  if (!(worst > 0) || !std::isfinite(worst))
    throw bad_input("the solution violates a constraint: expected one that separates the selected tokens");
  solution_ = solution / attmirror::norm(solution, norm);
  const double margin = worst_ratio(constraints_, solution_);
  bounds_ = (1 - set_tolerance) * margin *
            Eigen::Map<const Vector>(constraints_.bounds().data(), constraints_.count());
}

std::optional<NearestSolution> SolutionSet::nearest(const Matrix& W) const {
  const double size = attmirror::norm(W, norm_);
  if (!(size > 0) || !std::isfinite(size)) return std::nullopt;
  const Matrix U = W / size;
  const Vector slacks = MarginOperator(constraints_, nullptr).forward(U) - bounds_;
  if (slacks.minCoeff() >= 0) return NearestSolution{0, 0, U};
  auto found = nearest_point(constraints_, bounds_, norm_, U, solution_);
  if (!found) return std::nullopt;
  // The distance is that of a point of which it has been checked that it is in the set, up to the method's gap.
  Matrix V = found->V / std::max(1.0, attmirror::norm(found->V, norm_));
  const Vector margins = MarginOperator(constraints_, nullptr).forward(V);
  for (std::ptrdiff_t k = 0; k < margins.size(); ++k)
    if (!(margins[k] >= bounds_[k] - set_tolerance * std::fabs(bounds_[k]))) return std::nullopt;
  const double distance = attmirror::norm(Matrix(V - U), norm_);
  return NearestSolution{distance, std::clamp(found->lower_bound, 0.0, distance), std::move(V)};
}

}  // namespace attmirror
