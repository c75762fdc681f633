// What a norm contributes to a primal-dual Newton step of an interior point method.
//
// The problem  min ||W||, B W - s = c, s >= 0  has the multipliers lambda of the constraints and, with U = B^T lambda,
// an optimality condition that ties W to U: U is a subgradient of (a function of) the norm at W. Each norm writes this
// tie as a curve or as products of nonnegative pairs which go to a common target tau, and linearizes it:
//
//   dW = D dU + offset,     D symmetric and positive definite on matrices of W's shape
//
// All that is left for the common loop (interior_point.cpp) is then one system for the multipliers, of B D B^T.
//
//   l_1       w = w+ - w-, pairs (w+, 1 - u), (w-, 1 + u)                                    entry_barriers.cpp
//   l_inf     |w| <= t, pairs (t - w, y+), (t + w, y-), y+ - y- = u, sum y+ + y- = 1
//   nuclear   X = [P W; W^T Q] and Z = [I -U; -U^T I] / 2 positive definite, X Z -> tau I     spectral_barriers.cpp
//   spectral  X = [tI W; W^T tI] and Z = [Y -U/2; -U^T/2 Y'], tr Y + tr Y' = 1
//   1<p<inf   the curve u = w^{p-1} of entries or singular values                            power_barrier.cpp
#pragma once

#include "margin/normal_matrix.hpp"
#include "margin/precise_constraints.hpp"
#include "margin/scaled_constraints.hpp"
#include <attmirror/base/matrix.hpp>
#include <attmirror/base/thread_pool.hpp>
#include <attmirror/mirror/norm.hpp>

#include <cstddef>
#include <memory>

namespace attmirror {

// B and B^T between plain matrices and vectors; the sums in doubles, or in double-double numbers and rounded last.
class MarginOperator {
 public:
  enum class Sums { in_doubles, precise };
  explicit MarginOperator(const ScaledConstraints& constraints, ThreadPool* pool,
                          Sums sums = Sums::in_doubles);
  const ScaledConstraints& constraints() const { return *constraints_; }
  ThreadPool* pool() const { return pool_; }
  Vector forward(const Matrix& W);
  Matrix adjoint(const Vector& lambda);

 private:
  const ScaledConstraints* constraints_;
  ThreadPool* pool_;
  Sums sums_;
  PaddedMatrix scratch_, buffer_;
};

// How far to go along a direction: W and what goes with it, U and what goes with it.
struct StepLength {
  double primal = 1, dual = 1;
};

class NormBarrier {
 public:
  virtual ~NormBarrier() = default;

  // Begins near W, with U in the direction given. Returns what U, and so the multipliers, are to be multiplied by.
  virtual double begin(const Matrix& W, const Matrix& U) = 0;
  virtual const Matrix& weights() const = 0;

  // The sum of the products of all pairs, and their number.
  virtual double products() const = 0;
  virtual std::ptrdiff_t pairs() const = 0;

  // Forms D at the present point. False where rounding has made it indefinite.
  virtual bool linearize() = 0;
  // The lower triangle of B D B^T; D dU.
  virtual void normal_matrix(MarginOperator& B, MatrixView out) const = 0;
  virtual PreciseMatrix precise_normal_matrix(const PreciseConstraints& B) const = 0;
  virtual Matrix apply(const Matrix& dU) const = 0;

  // The part of dW that does not depend on dU, for a target of the products. The corrector takes away the products of
  // the direction found before, which the linearization has neglected.
  enum class Order { predictor, corrector };
  virtual Matrix offset(double target, Order order) = 0;
  // Completes the direction for this dU and the last offset, and returns dW.
  virtual const Matrix& direct(const Matrix& dU) = 0;
  // The longest steps along the direction that keep all pairs nonnegative; at least 1 means no limit matters.
  virtual StepLength longest_step() const = 0;
  virtual double products_after(StepLength step) const = 0;
  // Goes there. U is B^T lambda after the step.
  virtual void advance(StepLength step, const Matrix& U) = 0;

  // A curve is followed by Newton steps that are not exact for any length: both lengths are then to be the same, and
  // the residual (of W against U, relative) is to be watched. back() undoes the last advance.
  virtual bool is_curve() const { return false; }
  virtual double residual() const { return 0; }
  virtual void back() {}
  // Chooses the scale of W anew; returns what U is to be multiplied by. `gap` is the relative gap that remains.
  virtual double rescale(double gap) { return static_cast<void>(gap), 1; }
};

std::unique_ptr<NormBarrier> make_norm_barrier(const Norm& norm);
std::unique_ptr<NormBarrier> make_entry_barrier(const Norm& norm);     // l_1, l_inf
std::unique_ptr<NormBarrier> make_spectral_barrier(const Norm& norm);  // nuclear, spectral
std::unique_ptr<NormBarrier> make_power_barrier(const Norm& norm);     // 1 < p < infinity

// a = P diag(values) Q^T with square orthogonal P and Q, also where a is not square or singular.
struct FullSvd {
  Matrix P, Q;
  Vector values;
};
FullSvd full_svd(const Matrix& a);

}  // namespace attmirror
