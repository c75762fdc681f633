// The method of Dormand and Prince (orders 5 and 4, seven stages of which the last is the first of the next step) on
// dy/dtau = -(1 + t) grad L.
//
// Is an explicit method enough? Along a direction that constraint k of the max-margin problem sees, the flow relaxes
// at the rate (1 + t) e^{-margin} |a_k|^2 dw/dy = lambda_k |a_k|^2 dw/dy. For p = 2 this is of order 1 for good:
// lambda_k converges. For other p dw/dy ~ |w|^{2-p} changes like tau^{2-p} while lambda_k changes like tau^{p-2}:
// again of order 1, for entries of the size of the largest. For p > 2 an entry that is x times smaller relaxes
// x^{p-2} times faster, so that small entries, and those that cross 0, make the steps short: that is why p = 3 takes
// more gradients than p = 2, and p = 5 more than one has. To t = 1e12 on P1's data: about 1,500 gradients at p = 1.1
// to 2 (a millisecond or two), 4,500 to 9,300 at p = 3, 350,000 at p = 4.
#include "descent/rules.hpp"
#include <attmirror/attention/tokens.hpp>
#include <attmirror/base/error.hpp>
#include <attmirror/base/thread_pool.hpp>
#include <attmirror/descent/descend.hpp>
#include <attmirror/descent/mirror_flow.hpp>
#include <attmirror/mirror/mirror_map.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include <fmt/format.h>

namespace attmirror {

namespace {

constexpr std::size_t stages = 7;
// Row s: how much of stages 0 to s - 1 makes stage s. The last row is the step itself.
constexpr std::array<std::array<double, 6>, stages> weight_of_stage{{
    {},
    {1.0 / 5},
    {3.0 / 40, 9.0 / 40},
    {44.0 / 45, -56.0 / 15, 32.0 / 9},
    {19372.0 / 6561, -25360.0 / 2187, 64448.0 / 6561, -212.0 / 729},
    {9017.0 / 3168, -355.0 / 33, 46732.0 / 5247, 49.0 / 176, -5103.0 / 18656},
    {35.0 / 384, 0, 500.0 / 1113, 125.0 / 192, -2187.0 / 6784, 11.0 / 84},
}};
constexpr std::array<double, stages> node{0, 1.0 / 5, 3.0 / 10, 4.0 / 5, 8.0 / 9, 1, 1};
// The step of order 5 minus that of order 4.
constexpr std::array<double, stages> error_weight{71.0 / 57600,      0,          -71.0 / 16695, 71.0 / 1920,
                                                  -17253.0 / 339200, 22.0 / 525, -1.0 / 40};

// A run that leaves one token for another does so within a time of order 1, whatever t is by then: in tau that is a
// jump, shorter than tau's own rounding. Steps may be as short as they must. A step that does not change tau is still
// one: tau only enters through the factor 1 + t, which is constant meanwhile.
constexpr double smallest_step = 1e-290;

// A step that leaves the numbers is tried again, shorter. A run that leaves them does so time and again: it comes
// near the end of the range and cannot pass it.
constexpr int most_overflows = 1000;

// The method of which the flow is the limit.
MirrorDescent descent_of(const MirrorFlow& flow) {
  return {.p = flow.p, .lr = flow.lr, .geometry = flow.geometry, .beta = flow.beta};
}

class Integrator {
 public:
  Integrator(const Attention& model, const MirrorFlow& flow)
      : model_(model),
        flow_(flow),
        map_(make_map(descent_of(flow))),
        pool_(flow.threads),
        engine_(model, Jacobian::safe, pool_),
        weights_(model.blocks()),
        trained_(model.trained_blocks(), weights_),
        gradient_(engine_.make_gradient()),
        y_(model.trained_blocks()),
        next_(model.trained_blocks()),
        lower_(model.trained_blocks()),
        lower_weights_(model.trained_blocks()) {
    slope_.fill(ParameterBlocks(model.trained_blocks()));
    weights_.assign(initial_parameters(model, flow.init));
    for (std::ptrdiff_t b = 0; b < y_.count(); ++b) map_->map(trained_.of(weights_, b), y_.view(b));
  }

  FlowRun run() {
    if (descend_plainly()) integrate();
    run_.final_parameters = weights_.parameters();
    if (run_.status != FlowStatus::diverged) run_.selected = selected_tokens(model_, run_.final_parameters);
    return std::move(run_);
  }

 private:
  bool next_record_is(double time) const {
    return run_.records.size() < flow_.times.size() && flow_.times[run_.records.size()] <= time;
  }

  bool finished() const { return run_.records.size() == flow_.times.size(); }

  void record() {
    FlowRecord record;
    record.time = run_.time;
    record.loss = value_.loss;
    record.max_softmax = value_.max_softmax;
    Parameters now = weights_.parameters();
    record.norm = attention_norm(now, measuring_norm(descent_of(flow_)));
    if (flow_.keep == Keep::parameters) record.parameters = std::move(now);
    run_.records.push_back(std::move(record));
  }

  bool evaluate() {
    value_ = engine_.evaluate(weights_, gradient_);
    ++run_.evaluations;
    return std::isfinite(value_.loss);
  }

  // The first steps as mirror descent takes them. False: the run ends with them.
  bool descend_plainly() {
    const std::unique_ptr<UpdateRule> rule = make_rule(descent_of(flow_), model_, weights_);
    for (std::int64_t k = 0;; ++k) {
      run_.time = flow_.lr * static_cast<double>(k);
      if (!evaluate()) {
        run_.status = FlowStatus::diverged;
        return false;
      }
      while (next_record_is(run_.time + (k < flow_.plain_steps ? 0.5 * flow_.lr : 0.0))) record();
      if (finished()) return false;
      if (flow_.stop.requested()) {
        run_.status = FlowStatus::interrupted;
        return false;
      }
      if (k == flow_.plain_steps) break;
      rule->step(gradient_, {k, value_.loss}, weights_);
    }
    for (const auto& [name, blocks] : rule->state())
      if (name == "dual") y_ = *blocks;
    return true;
  }

  void integrate() {
    double tau = std::log1p(run_.time);
    double step = 1e-3;
    int overflows = 0;
    set_slope(0, tau);  // of the gradient that the plain steps ended with
    while (!finished()) {
      if (flow_.stop.requested()) {
        run_.status = FlowStatus::interrupted;
        return restore();
      }
      const double target = std::log1p(flow_.times[run_.records.size()]);
      // A target that is almost reached is met now, rather than by a step too short to be worth one.
      const bool arrives = tau + 1.01 * step >= target;
      const double length = arrives ? target - tau : step;
      if (run_.evaluations + static_cast<std::int64_t>(stages) - 1 > flow_.max_evaluations) {
        run_.status = FlowStatus::out_of_evaluations;
        return restore();
      }
      const double error = try_step(tau, length) / flow_.tol;
      const double scale = std::isfinite(error) ? std::clamp(0.9 * std::pow(error, -0.2), 0.2, 5.0) : 0.2;
      if (!(error <= 1)) {
        ++run_.rejected;
        step = length * std::min(scale, 0.9);
        if (!std::isfinite(error)) ++overflows;
        if (step > smallest_step && overflows < most_overflows) continue;
        run_.status = FlowStatus::diverged;
        return restore();
      }
      ++run_.accepted;
      std::swap(y_, next_);
      std::swap(slope_.front(), slope_.back());
      tau = arrives ? target : tau + length;
      run_.time = arrives ? flow_.times[run_.records.size()] : std::expm1(tau);
      // A step that was cut short for a record says little about how long the next may be, unless it says more.
      step = arrives ? std::max(step, length * scale) : length * scale;
      while (next_record_is(run_.time)) record();
    }
  }

  // The weights of y_ again, after a step that was not taken.
  void restore() {
    for (std::ptrdiff_t b = 0; b < y_.count(); ++b) map_->inverse(y_.view(b), trained_.of(weights_, b));
  }

  // dy/dtau from the gradient at hand. e^{tau + log_scale} is of order 1, its two factors are not.
  void set_slope(std::size_t stage, double tau) {
    for (std::ptrdiff_t b = 0; b < y_.count(); ++b) {
      const double factor = -std::exp(tau + gradient_.log_scale[static_cast<std::size_t>(b)]);
      const ConstMatrixView g = gradient_.blocks.view(b);
      const MatrixView slope = slope_[stage].view(b);
      for (std::ptrdiff_t j = 0; j < g.flat_size(); ++j) slope.data[j] = factor * g.data[j];
    }
  }

  // One step from y_ into next_, with weights_ and the last slope at its end. Returns its error; NaN where a stage is
  // not finite.
  double try_step(double tau, double length) {
    for (std::size_t s = 1; s < stages; ++s) {
      for (std::ptrdiff_t b = 0; b < y_.count(); ++b) {
        const ConstMatrixView y = std::as_const(y_).view(b);
        const MatrixView next = next_.view(b);
        std::copy_n(y.data, y.flat_size(), next.data);
        for (std::size_t r = 0; r < s; ++r) {
          const double weight = length * weight_of_stage[s][r];
          if (weight == 0) continue;
          const double* slope = slope_[r].view(b).data;
          for (std::ptrdiff_t j = 0; j < next.flat_size(); ++j) next.data[j] += weight * slope[j];
        }
        map_->inverse(next, trained_.of(weights_, b));
      }
      if (!evaluate()) return std::numeric_limits<double>::quiet_NaN();
      set_slope(s, tau + node[s] * length);
    }
    return error_of(length);
  }

  double error_of(double length) {
    long double error = 0, size = 0;  // for its range: weights of 1e200 are weights still
    for (std::ptrdiff_t b = 0; b < y_.count(); ++b) {
      const ConstMatrixView next = std::as_const(next_).view(b), w = trained_.of(std::as_const(weights_), b);
      const MatrixView lower = lower_.view(b), v = lower_weights_.view(b);
      for (std::ptrdiff_t j = 0; j < next.flat_size(); ++j) {
        double difference = 0;
        for (std::size_t s = 0; s < stages; ++s) difference += error_weight[s] * slope_[s].view(b).data[j];
        lower.data[j] = next.data[j] - length * difference;
      }
      map_->inverse(lower, v);
      for (std::ptrdiff_t j = 0; j < next.flat_size(); ++j) {
        error += static_cast<long double>(next.data[j] - lower.data[j]) * (w.data[j] - v.data[j]);
        size += static_cast<long double>(next.data[j]) * w.data[j];
      }
    }
    if (error == 0) return 0;
    return static_cast<double>(std::sqrt(std::max(error, 0.0L) / size));
  }

  const Attention& model_;
  const MirrorFlow& flow_;
  std::unique_ptr<MirrorMap> map_;
  ThreadPool pool_;
  GradientEngine engine_;
  ParameterBlocks weights_;
  TrainedBlocks trained_;
  Gradient gradient_;
  ParameterBlocks y_, next_, lower_, lower_weights_;
  std::array<ParameterBlocks, stages> slope_;
  Evaluation value_;
  FlowRun run_;
};

}  // namespace

void MirrorFlow::validate() const {
  descent_of(*this).validate();
  if (times.empty()) throw bad_input("times is empty: expected at least one time to record at");
  for (std::size_t i = 0; i < times.size(); ++i) {
    if (!(times[i] >= 0) || std::isinf(times[i]))
      throw bad_input(fmt::format("times[{}] is {}: expected a finite time, 0 or greater", i, times[i]));
    if (i > 0 && !(times[i] > times[i - 1]))
      throw bad_input(
          fmt::format("times[{}] is {} after {}: expected ascending times", i, times[i], times[i - 1]));
  }
  if (!(tol >= 1e-14 && tol <= 0.1))
    throw bad_input(fmt::format("tol is {}: expected a number between 1e-14 and 0.1", tol));
  if (plain_steps < 0) throw bad_input(fmt::format("plain_steps is {}: expected 0 or more", plain_steps));
  if (max_evaluations < 1)
    throw bad_input(fmt::format("max_evaluations is {}: expected 1 or more", max_evaluations));
  if (threads < 0) throw bad_input(fmt::format("threads is {}: expected 0 or more", threads));
  init.validate();
}

std::string_view to_string(FlowStatus status) {
  switch (status) {
    case FlowStatus::completed:
      return "completed";
    case FlowStatus::out_of_evaluations:
      return "out_of_evaluations";
    case FlowStatus::diverged:
      return "diverged";
    case FlowStatus::interrupted:
      return "interrupted";
  }
  return "unknown";
}

std::string summary(const FlowRun& run) {
  return fmt::format("{} at time {:.6g}: {} gradients, {} steps, {} rejected", to_string(run.status),
                     run.time, run.evaluations, run.accepted, run.rejected);
}

FlowRun mirror_flow(const Attention& model, const MirrorFlow& flow) {
  flow.validate();
  return Integrator(model, flow).run();
}

std::vector<double> log_times(double first, double last, int per_decade) {
  if (!(first > 0) || !(last >= first) || std::isinf(last))
    throw bad_input(fmt::format("times from {} to {}: expected 0 < first <= last, both finite", first, last));
  if (per_decade < 1)
    throw bad_input(
        fmt::format("per_decade is {}: expected 1 or more times for each factor of ten", per_decade));
  std::vector<double> times;
  // By whole powers of ten where `first` is one, to the last bit: 1e12, not 999999999999.9.
  for (int j = 0;; ++j) {
    const double time = first * std::pow(10.0, j / per_decade) *
                        std::pow(10.0, j % per_decade / static_cast<double>(per_decade));
    if (!(time < last * (1 - 1e-12))) break;
    times.push_back(time);
  }
  times.push_back(last);
  return times;
}

}  // namespace attmirror
