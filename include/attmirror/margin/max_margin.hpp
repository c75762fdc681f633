// The smallest W that satisfies the constraints of a max-margin problem, with a proof:
//
//   min ||W||  subject to  <A_k, W> >= c_k or = c_k
//
//   MarginSolution svm = max_margin(data, tokens, Norm::l(1.1));   // the attention SVM
//   svm.status == MarginStatus::certified, svm.gap <= 1e-10
//
// Norms: entrywise l_p and Schatten-p, 1 <= p <= infinity. W and lambda are separate results; each is checked as is.
#pragma once

#include <attmirror/base/stop.hpp>
#include <attmirror/margin/certificate.hpp>
#include <attmirror/margin/constraints.hpp>
#include <attmirror/margin/problems.hpp>
#include <attmirror/mirror/norm.hpp>

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace attmirror {

// What is known about an answer.
enum class MarginStatus {
  certified,   // W satisfies the constraints, and certify() found a gap of at most the tolerance
  infeasible,  // lambda proves that no W with a norm up to max_norm satisfies the constraints
  stopped,     // neither; W and lambda are the best found, with their gap
};
std::string_view to_string(MarginStatus status);

// Which solver works on a problem.
enum class MarginMethod {
  automatic,       // by norm and size
  active_set,      // Newton steps on the constraints that are active; 1 < p < infinity
  interior_point,  // slower, but unaffected by degenerate constraints; every norm
};
std::string_view to_string(MarginMethod method);
MarginMethod parse_margin_method(std::string_view name);

// How exactly a problem is solved, by which method, and when to give up.
struct MarginOptions {
  // The relative gap to reach. Default: 1e-10 for l_p with 1 < p < infinity, 1e-8 for the other norms.
  std::optional<double> tol{};
  // Call the problem infeasible when every solution is proved to have a larger norm, in units of the data
  // (Certificate::scaled_dual): beyond 1e10, the rounding of the data alone decides.
  double max_norm = 1e10;
  // Newton steps (factorizations) in total; a well-behaved problem takes tens.
  int max_iterations = 2000;
  // Give up after this many seconds, with status stopped.
  double max_seconds = 3600;
  MarginMethod method = MarginMethod::automatic;
  // Solve with few constraints and add those that are violated. Worthwhile if there are many more constraints
  // than unknowns; automatic decides by size.
  enum class Generation { automatic, on, off } generation = Generation::automatic;
  // For one large problem, and in max_margins() for the batch. 0: as many as the machine runs at once.
  // Results do not depend on it.
  int threads = 1;
  // The largest rank that W may have, for the nuclear norm; 0: any. `certified` then means that the convex
  // optimum has such a rank; otherwise the status is stopped and `dual` is the convex lower bound.
  std::ptrdiff_t max_rank = 0;
  // Ends the work early, with status stopped and MarginSolution::interrupted (base/stop.hpp). Checked between Newton
  // steps and between the exchanges of an active set. Problems of a batch that were not started are stopped, too.
  StopRequest stop{};

  void validate(const Norm& norm) const;
  double tolerance(const Norm& norm) const;
};

// A guess to start from: the answer for a nearby p, a nearby selection, the previous step of a sweep. A wrong
// guess costs time, never correctness.
struct WarmStart {
  Matrix W{};       // empty: none
  Vector lambda{};  // empty: none; else one per constraint
};

// The answer to a max-margin problem, with both halves of its proof.
struct MarginSolution {
  MarginStatus status = MarginStatus::stopped;
  Norm kind = Norm::frobenius();
  Matrix W;                            // (rows, cols); NaN if the problem is infeasible
  Vector lambda;                       // one per constraint: the multipliers, or the proof of infeasibility
  double norm = 0, dual = 0, gap = 0;  // as in Certificate; norm and gap are NaN if infeasible
  Certificate certificate;
  std::vector<std::ptrdiff_t>
      support;  // constraints that hold with equality, see support.hpp; none if W violates one
  std::vector<std::ptrdiff_t>
      conflict;            // infeasible: the constraints with lambda > 0, which contradict each other
  Vector singular_values;  // of W, largest first
  // Schatten norms: how many singular values of sum lambda_k A_k equal the largest, up to 1e-6 of it. For the
  // nuclear norm, no optimum has a larger rank.
  std::ptrdiff_t dual_multiplicity = 0;
  int iterations = 0;
  double seconds = 0;
  std::string method;        // "active set, 3 rounds of constraints", ...
  std::string reason;        // stopped: why
  bool interrupted = false;  // stopped because MarginOptions::stop was requested

  // One line, and several.
  std::string brief() const;
  std::string report() const;
};

// The attention SVM for a selection; any problem of the papers; and any constraints at all.
MarginSolution max_margin(const Dataset& data, const Selection& tokens, const Norm& norm,
                          const MarginOptions& options = {}, const WarmStart& start = {});
MarginSolution max_margin(const Dataset& data, const MarginProblem& problem, const Norm& norm,
                          const MarginOptions& options = {}, const WarmStart& start = {});
MarginSolution max_margin(const MarginConstraints& constraints, const Norm& norm,
                          const MarginOptions& options = {}, const WarmStart& start = {});

// Many problems at once, divided among options.threads threads, each solved on one. Results are in order and
// have the same bits as those of max_margin() for each.
struct MarginTask {
  const Dataset* data;  // not owned
  MarginProblem problem;
  Norm norm = Norm::frobenius();
};
std::vector<MarginSolution> max_margins(std::span<const MarginTask> tasks, const MarginOptions& options = {});

}  // namespace attmirror
