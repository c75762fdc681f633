#include "papers/rate_curves.hpp"

#include "papers/rate_fit.hpp"
#include "papers/shorthand.hpp"
#include <attmirror/attention/tokens.hpp>
#include <attmirror/mirror/direction.hpp>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace attmirror {

using namespace rates;

std::vector<double> near_and_far_times() {
  std::vector<double> times = log_times(1, last_time, per_decade);
  for (int j = 1; j <= far_times; ++j)
    times.push_back(std::pow(10.0, 12 * std::pow(25.0, static_cast<double>(j) / far_times)));
  return times;
}

std::size_t time_index(std::span<const double> times, double time) {
  return static_cast<std::size_t>(std::ranges::lower_bound(times, 0.999 * time) - times.begin());
}

double rate_bound(double p, double k) {
  const double l = std::log(k), ll = std::log(l);
  return p > 2 ? ll / l : p == 2 ? ll * ll / l : std::pow(l, 1 - p);
}

double bound_exponent(double p) { return p < 2 ? p - 1 : 1; }
double limit_exponent(double p) { return std::min(2.0, 2 * (p - 1)); }

double RateCurve::exponent(std::span<const double> times, double from, double to) const {
  std::vector<double> x, y;
  for (std::size_t r = 0; r < divergence.size(); ++r)
    if (times[r] >= 0.999 * from && times[r] <= 1.001 * to) {
      x.push_back(std::log(std::log(times[r])));
      y.push_back(std::log(divergence[r]));
    }
  return -fit_line(x, y).slope;
}

double RateCurve::slope(std::span<const double> times, double time) const {
  return (norm[time_index(times, time)] - norm[time_index(times, time / 10)]) / std::log(10.0);
}

std::vector<std::vector<RateCurve>> follow_flows(const ExperimentContext& context,
                                                 std::span<const double> powers,
                                                 const std::deque<Dataset>& data,
                                                 const std::deque<Attention>& models,
                                                 std::span<const double> times) {
  const std::size_t seeds = models.size();
  std::vector<std::vector<RateCurve>> curves(powers.size(), std::vector<RateCurve>(seeds));
  const auto total = static_cast<std::ptrdiff_t>(powers.size() * seeds);
  for_all(context, total, [&](std::ptrdiff_t i) {
    const std::size_t a = static_cast<std::size_t>(i) / seeds, s = static_cast<std::size_t>(i) % seeds;
    const double p = powers[a];
    RateCurve& curve = curves[a][s];
    const auto end = context.quick() && p > 2 ? times.end() - far_times : times.end();
    curve.flow = mirror_flow(models[s], {.p = p, .times = {times.begin(), end}, .plain_steps = plain_steps});
    if (curve.flow.status != FlowStatus::completed) return;
    curve.svm = max_margin(data[s], curve.flow.selected, Norm::l(p));
    if (curve.svm.status != MarginStatus::certified) return;
    for (FlowRecord& record : curve.flow.records) {
      curve.divergence.push_back(directional_bregman(curve.svm.W, record.parameters.W, p));
      curve.norm.push_back(record.norm / curve.svm.norm);
    }
    curve.settled =
        selected_tokens(models[s], curve.flow.records[time_index(times, first_fitted)].parameters) ==
        curve.flow.selected;
  });
  return curves;
}

namespace {

std::string trimmed(std::string text) {
  while (text.ends_with(' ')) text.pop_back();
  return text;
}

}  // namespace

std::vector<Figure> rate_figures(std::span<const double> powers,
                                 const std::vector<std::vector<RateCurve>>& curves,
                                 std::span<const double> times) {
  Figure divergences{
      .id = "divergence",
      .title = "The direction converges faster than the theorem's bound",
      .caption =
          "Mean over seeds with its standard error. Dashed: the theorem's bound, scaled to the curve at k = 10^4.",
      .x = {.label = "steps k", .scale = Axis::Scale::log},
      .y = {.label = "directional Bregman divergence D(W_mm, W(k))", .scale = Axis::Scale::log}};
  Figure norms{.id = "norm",
               .title = "The norm grows by that of the max-margin solution for each unit of log k",
               .caption = "Mean over seeds. Dotted: log k, whose slope all curves approach.",
               .x = {.label = "steps k", .scale = Axis::Scale::log},
               .y = {.label = "norm of W relative to that of W_mm, in ℓp"}};
  Figure local{
      .id = "exponent",
      .title = "The exponent of the rate settles at min(2, 2(p − 1))",
      .caption =
          "Local slope −d log D / d log log k of the mean over seeds, taken over a factor of 1.16 in log k to "
          "either side. Dashed: the limits that we expect.",
      .x = {.label = "natural logarithm of the number of steps, log k", .scale = Axis::Scale::log},
      .y = {.label = "exponent a of D ~ (log k)^-a"}};
  for (std::size_t a = 0; a < powers.size(); ++a) {
    const double p = powers[a];
    const int color = static_cast<int>(a);
    Series divergence{.name = fmt::format("p = {}", p), .color = color}, norm = divergence,
                                                                         exponent = divergence;
    Series envelope{.name = fmt::format("bound, p = {}", p), .dash = Series::Dash::dashed, .color = color};
    std::vector<double> k, log_log, log_divergence;
    double constant = 0;
    for (std::size_t r = 0; r < times.size(); ++r) {
      if (times[r] < 10) continue;
      std::vector<double> d, w;
      for (const RateCurve& curve : curves[a])
        if (curve.settled && r < curve.divergence.size()) {
          d.push_back(curve.divergence[r]);
          w.push_back(curve.norm[r]);
        }
      if (d.empty()) continue;
      const Mean mean = mean_of(d);
      k.push_back(times[r]);
      log_log.push_back(std::log(std::log(times[r])));
      log_divergence.push_back(std::log(mean.value));
      if (times[r] > last_time) continue;
      divergence.x.push_back(times[r]);
      divergence.y.push_back(mean.value);
      divergence.low.push_back(mean.value - mean.error);
      divergence.high.push_back(mean.value + mean.error);
      norm.x.push_back(times[r]);
      norm.y.push_back(mean_of(w).value);
      if (times[r] < 0.999 * first_fitted) continue;
      if (envelope.x.empty()) constant = mean.value / rate_bound(p, times[r]);
      envelope.x.push_back(times[r]);
      envelope.y.push_back(constant * rate_bound(p, times[r]));
    }
    const std::vector<double> slopes = local_slopes(log_log, log_divergence, 0.15);
    for (std::size_t r = 0; r < slopes.size(); ++r)
      if (k[r] >= 0.999 * first_fitted) {
        exponent.x.push_back(std::log(k[r]));
        exponent.y.push_back(-slopes[r]);
      }
    const std::string sentence =
        fmt::format("p = {}: {:.3g} at 10^4, {:.3g} at 10^12. ", p,
                    divergence.y[time_index(divergence.x, 1e4)], divergence.y.back());
    divergences.description += sentence;
    norms.description += fmt::format("p = {}: {:.1f} at 10^12. ", p, norm.y.back());
    local.description += fmt::format("p = {}: {:.2f} at 10^5 steps, {:.2f} at 10^{:.0f}. ", p,
                                     exponent.y[time_index(exponent.x, std::log(1e5))], exponent.y.back(),
                                     std::log10(k.back()));
    local.series.push_back(exponent);
    local.series.push_back({.name = fmt::format("limit, p = {}", p),
                            .x = {exponent.x.front(), exponent.x.back()},
                            .y = {limit_exponent(p), limit_exponent(p)},
                            .dash = Series::Dash::dashed,
                            .color = color});
    divergences.series.push_back(std::move(divergence));
    divergences.series.push_back(std::move(envelope));
    norms.series.push_back(std::move(norm));
  }
  Series log_k{.name = "log k", .dash = Series::Dash::dotted};
  for (const double time : times)
    if (time >= 10 && time <= last_time) {
      log_k.x.push_back(time);
      log_k.y.push_back(std::log(time));
    }
  norms.series.push_back(std::move(log_k));
  for (Figure* figure : {&divergences, &norms, &local}) lead_with(*figure, trimmed(figure->description));
  divergences.description =
      "Four falling curves on logarithmic axes, each below its bound. Mean divergence: " +
      divergences.description;
  norms.description = "Curves that become parallel to log k, which is 27.6 at 10^12. " + norms.description;
  local.description = "Local exponents of the divergence against log k. " + local.description;
  return {std::move(divergences), std::move(norms), std::move(local)};
}

}  // namespace attmirror
