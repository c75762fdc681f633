// The curves that rates are read from: plain mirror descent on P1's data, step by step at first and then as a flow,
// against the max-margin solution of the tokens that it selects. Internal.
#pragma once

#include "papers/workers.hpp"
#include <attmirror/base/figure.hpp>
#include <attmirror/descent/mirror_flow.hpp>

#include <deque>
#include <span>
#include <vector>

namespace attmirror {

namespace rates {
constexpr std::int64_t plain_steps = 1000;  // before the flow
constexpr int per_decade = 10;
constexpr double first_fitted = 1e4, last_time = 1e12;
constexpr int far_times = 24;
}  // namespace rates

// From 1 to 1e12, and on to 1e300 by equal steps of log log k.
std::vector<double> near_and_far_times();

// The position of `time`, or of the next one.
std::size_t time_index(std::span<const double> times, double time);

// What the theorem's bound falls like (its constant is not known), its exponent of log k, and the exponent that D
// itself has in the limit: see p1_rates.cpp.
double rate_bound(double p, double k);
double bound_exponent(double p);
double limit_exponent(double p);

// One p and one seed.
struct RateCurve {
  FlowRun flow;
  MarginSolution svm;
  bool settled = false;  // the tokens of k = 1e4 are those of the end
  // At each record, the norm over |W_mm|. Empty where the flow or the solver did not get there.
  std::vector<double> divergence, norm;

  // a of D ~ (log k)^-a between two times.
  double exponent(std::span<const double> times, double from, double to) const;
  // d |W| / d log k over the decade before `time`, in units of |W_mm|.
  double slope(std::span<const double> times, double time) const;
};

// [p][seed]. Quick ones above p = 2 end at 1e12: there the far times take most of the work.
std::vector<std::vector<RateCurve>> follow_flows(const ExperimentContext& context,
                                                 std::span<const double> powers,
                                                 const std::deque<Dataset>& data,
                                                 const std::deque<Attention>& models,
                                                 std::span<const double> times);

// D against k with the bounds, the norm against log k, and the local exponents: of the curves that are settled.
std::vector<Figure> rate_figures(std::span<const double> powers,
                                 const std::vector<std::vector<RateCurve>>& curves,
                                 std::span<const double> times);

}  // namespace attmirror
