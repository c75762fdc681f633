// What the solvers of this room have in common. They work on ScaledConstraints and know nothing of certificates: what
// they return is unscaled, made feasible and judged in max_margin.cpp.
#pragma once

#include "margin/scaled_constraints.hpp"
#include <attmirror/base/thread_pool.hpp>
#include <attmirror/margin/max_margin.hpp>
#include <attmirror/mirror/norm.hpp>

#include <chrono>
#include <cmath>
#include <cstddef>
#include <string>

namespace attmirror {

// Limits that all solvers of one call share.
struct SolverLimits {
  double
      // The relative gap asked for; solvers aim at a tenth of it or less, so that rounding does not decide.
      tolerance;
  double max_norm;  // stop when c^T lambda / ||B^T lambda||_* exceeds it: infeasible
  int iterations_left;
  std::chrono::steady_clock::time_point deadline;
  ThreadPool* pool = nullptr;  // for one large problem; may be null
  StopRequest stop{};

  bool out_of_time() const { return stop.requested() || std::chrono::steady_clock::now() >= deadline; }
};

// The bound at which a solver may call a problem infeasible so that the verifier agrees for `max_norm`. The verifier
// measures in what the hardest constraint demands, at most 4 where the largest entries of every a, z and c lie in
// [1/2, 1), and in the norm at hand, of which the Frobenius norm is at most sqrt(rows cols) times another.
inline double solver_max_norm(std::ptrdiff_t rows, std::ptrdiff_t cols, double max_norm) {
  return 4 * std::sqrt(static_cast<double>(rows * cols)) * max_norm;
}

enum class Outcome {
  solved,      // to the tolerance, as far as the solver can tell
  infeasible,  // lambda is the proof
  stalled,     // rounding or degeneracy stopped it: another solver may get further
  out_of_iterations,
  out_of_time,
};

struct SolverAnswer {
  Outcome outcome = Outcome::stalled;
  PaddedMatrix W;        // near feasible; rescaled by the caller
  AlignedVector lambda;  // count() of them
  int iterations = 0;    // factorizations
};

// A start in the solvers' scale; empty parts are not known.
struct SolverStart {
  PaddedMatrix W{};
  AlignedVector lambda{};
  bool has_weights() const { return W.view().rows > 0; }
  bool has_multipliers() const { return !lambda.empty(); }
};

// frobenius.cpp: p = 2, a quadratic problem; also the first phase of all the others, which proves infeasibility.
SolverAnswer solve_frobenius(const ScaledConstraints& constraints, const SolverLimits& limits,
                             const SolverStart& start);

// lp_newton.cpp: entrywise l_p, 1 < p < infinity, p != 2. `start` is the Frobenius answer or a near p's.
SolverAnswer solve_lp(const ScaledConstraints& constraints, const Norm& norm, const SolverLimits& limits,
                      const SolverStart& start);

// interior_point.cpp: every norm. `start` is the Frobenius answer, a feasible W.
SolverAnswer solve_interior_point(const ScaledConstraints& constraints, const Norm& norm,
                                  const SolverLimits& limits, const SolverStart& start);

}  // namespace attmirror
