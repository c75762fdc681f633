// Mirror descent to times that no loop reaches: the flow dy/dt = -grad L(w(y)), y = grad psi(w), in the
// logarithm of time.
//
// Plain (not normalized) mirror descent y <- y - lr g moves the weights like log k, and their direction like
// a power of 1/log k: to see the law you need k = 1e12 steps and more. For small lr its limit is the mirror
// flow at t = lr k. In the variable tau = log(1 + t) it is
//
//   dy/dtau = -(1 + t) grad L(w(y)),
//
// and there the flow is tame: once attention has selected its tokens, gradients fall like 1/t, so the right
// side stays of order 1 (of order tau^{p-2} for l_p), and 1e12 steps are 28 units of tau. A Runge-Kutta
// method with adaptive steps covers that in a few thousand gradients.
//
//   FlowRun run = mirror_flow(model, {.p = 1.5, .times = log_times(1, 1e12)});
//
// Descent and flow differ in the first steps, where lr is not small, by about lr/t of a unit of tau.
// `plain_steps` takes that many steps of descent before the flow continues from there.
#pragma once

#include <attmirror/base/stop.hpp>
#include <attmirror/data/selection.hpp>
#include <attmirror/descent/initialization.hpp>
#include <attmirror/descent/optimizer.hpp>
#include <attmirror/descent/record.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace attmirror {

// Settings of mirror_flow(): the geometry, the times to record, the accuracy.
struct MirrorFlow {
  // Of lp and schatten, as in MirrorDescent; above about 4 the flow is too stiff for this method.
  double p = 2;
  Geometry geometry = Geometry::lp;
  double beta = 1;  // of the hyperbolic entropy
  // When to record, ascending; the flow ends at the last. Times are lr k, of any size that a double can hold.
  std::vector<double> times{};
  // The error of a step, relative to the weights: sqrt(<dy, dw> / <y, w>), with dy and dw the difference between
  // solutions of order 5 and 4. <dy, dw> is the symmetrized Bregman divergence, so neither the mirror image nor
  // the weights go wrong unnoticed, however steep the map between them. Below 1e-12 rounding gets in the way.
  double tol = 1e-8;
  std::int64_t plain_steps = 0;  // of mirror descent before the flow
  double lr = 1;                 // of these steps
  Initialization init{};
  Keep keep = Keep::parameters;              // what records contain
  std::int64_t max_evaluations = 1'000'000;  // of the gradient, before the flow gives up
  // For gradients of large data; 0 = as many as the machine has. Results do not depend on it.
  int threads = 1;
  StopRequest stop{};  // checked between steps

  void validate() const;  // throws Error (bad input) naming the field and its value
};

// How a flow ended.
enum class FlowStatus {
  completed,           // the last time was reached
  out_of_evaluations,  // max_evaluations were not enough
  diverged,            // loss or weights are not finite
  interrupted,         // `stop` was requested
};

std::string_view to_string(FlowStatus status);

// The state of a flow at one time.
struct FlowRecord {
  double time = 0;         // t; within the plain steps, lr k of the step closest to the requested time
  double loss = 0;         // at the weights at that time
  double max_softmax = 0;  // mean over queries of the largest attention probability
  double norm = 0;         // of the attention weights, in the geometry of the flow
  Parameters parameters;   // empty for Keep::metrics
};

// What a flow reached.
struct FlowRun {
  FlowStatus status = FlowStatus::completed;
  double time = 0;  // reached
  std::int64_t evaluations = 0, accepted = 0,
               rejected = 0;        // gradients, plain steps included; steps of the flow
  Selection selected;               // at the last weights; empty when diverged
  std::vector<FlowRecord> records;  // of the times reached
  Parameters final_parameters;

  const Parameters& last() const { return final_parameters; }
};

std::string summary(const FlowRun& run);  // one line

// The same bits for any number of threads. Throws Error (bad input) for options that are invalid in
// themselves or for this model.
FlowRun mirror_flow(const Attention& model, const MirrorFlow& flow);

// From `first` to `last`, both included, with `per_decade` for each factor of ten. Throws Error (bad input)
// unless 0 < first <= last < infinity and per_decade >= 1.
std::vector<double> log_times(double first, double last, int per_decade = 10);

}  // namespace attmirror
