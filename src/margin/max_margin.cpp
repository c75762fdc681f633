// From constraints to an answer with a status: scale, solve, make feasible, certify.
//
// Every problem is solved for the Frobenius norm first. That is a quadratic problem, the cheapest of the family; its
// multipliers prove infeasibility where there is any (norms of a finite space bound each other), and otherwise its W is
// the feasible start of the others. Then the solver of the norm at hand; where that stalls, the interior point method,
// which is slower and does not mind degenerate constraints. An answer is whatever certify() says about it: the solvers'
// own opinion only decides what is tried next.
#include "margin/generation.hpp"
#include "margin/precise_constraints.hpp"
#include "margin/scaled_constraints.hpp"
#include "margin/solver.hpp"
#include "mirror/spectral.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/margin/max_margin.hpp>
#include <attmirror/margin/support.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>

namespace attmirror {

namespace {

using Clock = std::chrono::steady_clock;
using Certifier = std::function<Certificate(const Matrix& W, const Vector& lambda)>;
// A W that satisfies its constraints up to this is as good as one that does exactly: rescaling it would change
// digits only.
constexpr double rounding_of_margins = 1e-13;

// In units of the data (in the solvers' scale): from here on rounding of a double may be what stops a method, and one
// that has not come to an end after this many steps will not.
constexpr double large_weights = 1e5;
constexpr int few_iterations = 200;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

// The work of one call of max_margin().
class Solve {
 public:
  Solve(const MarginConstraints& constraints, const Norm& norm, const MarginOptions& options,
        Certifier certifier)
      : constraints_(constraints),
        norm_(norm),
        solved_norm_(effective_norm(constraints, norm)),
        options_(options),
        certify_(std::move(certifier)),
        begin_(Clock::now()),
        scaled_(constraints) {
    if (options.threads != 1) pool_ = std::make_unique<ThreadPool>(options.threads);
    limits_ = {.tolerance = options.tolerance(norm),
               .max_norm = solver_max_norm(constraints.rows(), constraints.cols(), options.max_norm),
               .iterations_left = options.max_iterations,
               .deadline = deadline(options.max_seconds),
               .pool = pool_.get(),
               .stop = options.stop};
  }

  MarginSolution run(const WarmStart& warm) {
    if (scaled_.contradiction()) {
      Vector lambda = Vector::Zero(constraints_.count());
      const std::ptrdiff_t k = *scaled_.contradiction();
      lambda[k] = constraints_.bounds()[static_cast<std::size_t>(k)] > 0 ? 1 : -1;
      method_ = "none needed";
      return infeasible(std::move(lambda));
    }
    if (std::ranges::all_of(scaled_.bounds(), [](double c) { return c == 0; })) {
      method_ = "none needed";  // W = 0 satisfies everything
      best_ =
          judge(Matrix::Zero(constraints_.rows(), constraints_.cols()), Vector::Zero(constraints_.count()));
      return finish();
    }
    if (auto proof = attempt(scaled_start(warm))) return infeasible(std::move(*proof));
    if (doubles_are_too_short()) {
      limits_.precise = true;
      if (auto proof = attempt(best_start())) return infeasible(std::move(*proof));
    }
    return finish();
  }

 private:
  // Solves and keeps the answer if it is the best; or returns the proof that there is none.
  std::optional<Vector> attempt(const SolverStart& start) {
    const SolverAnswer answer = use_generation() ? generate(start) : solve(scaled_, start);
    if (answer.outcome == Outcome::infeasible) {
      Vector lambda = scaled_.unscale_multipliers(answer.lambda);
      if (certify_(Matrix(), lambda).proves_norm_above(options_.max_norm)) return lambda;
      last_outcome_ = Outcome::stalled;  // nearly infeasible, but not proved
    }
    consider(answer);
    return std::nullopt;
  }

  // Whether rounding has ended the work, and of numbers that are large against the margins.
  bool doubles_are_too_short() const {
    if (best_.certificate.certifies(limits_.tolerance) || limits_.iterations_left <= 0 ||
        limits_.out_of_time() || last_outcome_ == Outcome::out_of_iterations ||
        best_.certificate.proves_norm_above(options_.max_norm))
      return false;
    if (best_.W.size() == 0 || !best_.certificate.feasible()) return true;
    return scaled_.scale_weights(best_.W).norm() > large_weights;
  }

  SolverStart best_start() const {
    SolverStart start;
    start.lambda.assign(static_cast<std::size_t>(scaled_.count()), 0.0);
    if (best_.lambda.size() == constraints_.count() && best_.lambda.allFinite()) {
      const Vector lambda = scaled_.scale_multipliers(best_.lambda);
      if (lambda.allFinite()) start.lambda.assign(lambda.begin(), lambda.end());
    }
    return start;
  }

  struct Judged {
    Matrix W;
    Vector lambda;
    Certificate certificate;
  };

  // Singular values of a vector are its length.
  static Norm effective_norm(const MarginConstraints& constraints, const Norm& norm) {
    const bool vector = constraints.rows() == 1 || constraints.cols() == 1;
    return norm.kind() == Norm::Kind::schatten && vector ? Norm::frobenius() : norm;
  }

  static Clock::time_point deadline(double seconds) {
    const auto now = Clock::now();
    if (seconds > 1e9) return now + std::chrono::hours(24 * 365 * 30);
    return now + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  }

  SolverStart scaled_start(const WarmStart& warm) const {
    SolverStart start;
    if (warm.W.size() > 0) {
      if (warm.W.rows() != constraints_.rows() || warm.W.cols() != constraints_.cols())
        throw bad_input(fmt::format("start.W is {} x {}: expected {} x {}", warm.W.rows(), warm.W.cols(),
                                    constraints_.rows(), constraints_.cols()));
      if (warm.W.allFinite()) start.W = PaddedMatrix(scaled_.scale_weights(warm.W));
    }
    if (warm.lambda.size() > 0) {
      if (warm.lambda.size() != constraints_.count())
        throw bad_input(fmt::format("start.lambda has {} entries: expected {}, one per constraint",
                                    warm.lambda.size(), constraints_.count()));
      const Vector lambda = scaled_.scale_multipliers(warm.lambda);
      if (lambda.allFinite()) start.lambda.assign(lambda.begin(), lambda.end());
    }
    return start;
  }

  bool use_generation() const {
    switch (options_.generation) {
      case MarginOptions::Generation::on:
        return true;
      case MarginOptions::Generation::off:
        return false;
      case MarginOptions::Generation::automatic:
        break;
    }
    return worth_generating(scaled_);
  }

  SolverAnswer generate(const SolverStart& start) {
    const int before = limits_.iterations_left;
    const GeneratedAnswer result = solve_by_generation(
        scaled_, solved_norm_, limits_, start,
        [this](const ScaledConstraints& part, const SolverStart& from) { return solve(part, from); });
    if (result.rounds == 0) return count(result.answer, "ascent by groups");
    method_ += fmt::format(", {} round{} of constraints", result.rounds, result.rounds == 1 ? "" : "s");
    limits_.iterations_left = before - result.answer.iterations;  // those of all rounds
    last_outcome_ = result.answer.outcome;
    return result.answer;
  }

  // Phase one, then the norm's own solver, then the interior point method.
  SolverAnswer solve(const ScaledConstraints& problem, const SolverStart& start) {
    if (limits_.precise) return solve_precisely(problem, start);
    if (solved_norm_ != Norm::frobenius() && start.has_weights() && start.has_multipliers() &&
        is_active_set()) {
      SolverAnswer answer = count(solve_lp(problem, solved_norm_, limits_, start), "active set");
      if (answer.outcome == Outcome::solved) return answer;
    }
    SolverAnswer first = count(solve_frobenius(problem, limits_, start), "active set");
    if (first.outcome == Outcome::infeasible || first.outcome == Outcome::out_of_iterations ||
        first.outcome == Outcome::out_of_time)
      return first;
    if (solved_norm_ == Norm::frobenius() && is_active_set() && first.outcome == Outcome::solved)
      return first;

    SolverStart next{.W = first.W, .lambda = first.lambda};
    SolverAnswer answer = first;
    if (is_active_set() && solved_norm_ != Norm::frobenius()) {
      answer = count(solve_lp(problem, solved_norm_, limits_, next), "active set");
      if (answer.outcome == Outcome::solved || options_.method == MarginMethod::active_set) return answer;
      next = {.W = answer.W, .lambda = answer.lambda};
    }
    if (options_.method == MarginMethod::active_set || limits_.iterations_left <= 0 || limits_.out_of_time())
      return answer;
    if (&problem == &scaled_) consider(answer);  // it may be the better one after all
    const bool patient = first.outcome == Outcome::solved && first.W.view().eigen().norm() < large_weights;
    return interior_point(problem, next, patient ? limits_.iterations_left : few_iterations,
                          "interior point");
  }

  SolverAnswer interior_point(const ScaledConstraints& problem, const SolverStart& start, int most,
                              const char* name) {
    SolverLimits limits = limits_;
    limits.iterations_left = std::min(limits.iterations_left, most);
    SolverAnswer answer = solve_interior_point(problem, solved_norm_, limits, start);
    if (answer.outcome == Outcome::out_of_iterations && answer.iterations < limits_.iterations_left)
      answer.outcome = Outcome::stalled;
    return count(std::move(answer), name);
  }

  // The same in double-double numbers. A Frobenius solution is exact there up to its rounding, and so is feasible.
  SolverAnswer solve_precisely(const ScaledConstraints& problem, const SolverStart& start) {
    constexpr const char* active_set = "active set in double-double";
    SolverAnswer first = count(solve_frobenius_precisely(problem, limits_, start), active_set);
    if (first.outcome != Outcome::solved || (solved_norm_ == Norm::frobenius() && is_active_set()))
      return first;
    SolverStart next{.W = first.W, .lambda = first.lambda};
    if (&problem == &scaled_) consider(first);
    if (is_active_set() && solved_norm_ != Norm::frobenius()) {
      SolverAnswer answer = count(solve_lp(problem, solved_norm_, limits_, next), active_set);
      if (answer.outcome == Outcome::solved || options_.method == MarginMethod::active_set ||
          limits_.iterations_left <= 0 || limits_.out_of_time())
        return answer;
      if (&problem == &scaled_) consider(answer);
      if (&problem == &scaled_ && only_rounding_is_left()) return answer;
      next = {.W = answer.W, .lambda = answer.lambda};
    }
    const bool smooth = solved_norm_.p() > 1 && std::isfinite(solved_norm_.p());
    if (!solved_norm_.is_entrywise() && smooth && options_.method == MarginMethod::automatic &&
        problem.count() <= PreciseConstraints::most_rows)
      return count(solve_schatten_precisely(problem, solved_norm_, limits_, next), active_set);
    return interior_point(problem, next, few_iterations, "interior point in double-double");
  }

  // Whether the gap is what rounding W to doubles makes of its margins, more or less.
  bool only_rounding_is_left() const {
    constexpr double epsilon = std::numeric_limits<double>::epsilon();
    return best_.certificate.feasible() &&
           best_.certificate.gap <= 100 * epsilon * scaled_.scale_weights(best_.W).norm();
  }

  bool is_active_set() const {
    const double p = solved_norm_.p();
    return options_.method != MarginMethod::interior_point && solved_norm_.is_entrywise() && p > 1 &&
           std::isfinite(p);
  }

  SolverAnswer count(SolverAnswer answer, const char* method) {
    limits_.iterations_left -= answer.iterations;
    last_outcome_ = answer.outcome;
    if (method_.find(method) == std::string::npos)
      method_ += (method_.empty() ? "" : ", then ") + std::string(method);
    return answer;
  }

  // What the verifier says of W. It is made feasible by its worst margin: as double precision has it first, which
  // mostly saves verifying twice, then as the verifier finds it.
  Judged judge(Matrix W, Vector lambda) const {
    Judged result{std::move(W), std::move(lambda), {}};
    result.certificate = certify_(result.W, result.lambda);
    // Once is enough, unless margins all but cancel: then the division itself rounds them.
    for (int round = 0; round < 3 && !has_nonzero_equalities(); ++round) {
      const double worst = result.certificate.worst_margin;
      const bool loose = round == 0 ? std::fabs(worst - 1) > rounding_of_margins
                                    : worst < 1 && !result.certificate.feasible();
      if (!(worst > 0) || !std::isfinite(worst) || !loose) break;
      result.W /= worst;
      result.certificate = certify_(result.W, result.lambda);
    }
    if (!result.certificate.feasible() && !has_nonzero_equalities()) lift(result);
    return result;
  }

  // Where W is large against its margins, dividing it rounds them by more than a certificate allows. A little more
  // than what is missing makes up for it.
  void lift(Judged& judged) const {
    const Certificate first = judged.certificate;
    if (!(first.worst_margin > 0.5 && first.worst_margin <= 1) || first.worst_violation > 0.5) return;
    const Matrix W = judged.W;
    double missing = std::max(first.worst_violation, 1e-15);
    for (int round = 0; round < 12 && missing < 0.5; ++round, missing *= 1.5) {
      judged.W = W * (1 + missing);
      judged.certificate = certify_(judged.W, judged.lambda);
      if (judged.certificate.feasible()) return;
    }
    judged.W = W;
    judged.certificate = first;
  }

  // Divides W by its worst margin, where that is possible and there is one.
  void rescale(PaddedMatrix& W) const {
    if (has_nonzero_equalities()) return;
    PaddedMatrix scratch = scaled_.make_scratch();
    AlignedVector margins(static_cast<std::size_t>(scaled_.count()));
    scaled_.forward(W.view(), scratch, margins, pool_.get());
    double worst = std::numeric_limits<double>::infinity();
    for (std::ptrdiff_t k = 0; k < scaled_.count(); ++k)
      if (const double c = scaled_.bounds()[static_cast<std::size_t>(k)]; c > 0 && !scaled_.is_equality(k))
        worst = std::min(worst, margins[static_cast<std::size_t>(k)] / c);
    if (worst > 0 && std::isfinite(worst)) W.view().eigen() /= worst;
  }

  bool has_nonzero_equalities() const {
    for (std::ptrdiff_t k = 0; k < constraints_.count(); ++k)
      if (constraints_.is_equality(k) && constraints_.bounds()[static_cast<std::size_t>(k)] != 0) return true;
    return false;
  }

  // Keeps the better of this answer and the best so far.
  void consider(const SolverAnswer& answer) {
    if (answer.W.view().rows == 0) return;
    PaddedMatrix W = answer.W;
    rescale(W);
    Judged judged = judge(scaled_.unscale_weights(W.view()), scaled_.unscale_multipliers(answer.lambda));
    if (best_.W.size() == 0 || badness(judged.certificate) < badness(best_.certificate))
      best_ = std::move(judged);
  }

  static double badness(const Certificate& c) {
    const double infinity = std::numeric_limits<double>::infinity();
    if (std::isnan(c.gap)) return infinity;
    return c.feasible() ? c.gap : 1 + std::max(c.gap, c.worst_violation);
  }

  MarginSolution begin_solution() const {
    MarginSolution s;
    s.kind = norm_;
    s.iterations = options_.max_iterations - limits_.iterations_left;
    s.method = method_;
    return s;
  }

  MarginSolution infeasible(Vector lambda) const {
    MarginSolution s = begin_solution();
    s.status = MarginStatus::infeasible;
    s.certificate = certify_(Matrix(), lambda);
    s.W = Matrix::Constant(constraints_.rows(), constraints_.cols(), nan);
    s.norm = s.gap = nan;
    s.dual = s.certificate.dual;
    s.conflict = conflict(constraints_, lambda);
    s.lambda = std::move(lambda);
    s.seconds = elapsed();
    return s;
  }

  double elapsed() const { return std::chrono::duration<double>(Clock::now() - begin_).count(); }

  MarginSolution finish() {
    MarginSolution s = begin_solution();
    if (best_.W.size() == 0) {
      best_.W = Matrix::Constant(constraints_.rows(), constraints_.cols(), nan);
      best_.lambda = Vector::Zero(constraints_.count());
      best_.certificate.norm = best_.certificate.gap = nan;
    }
    if (options_.max_rank > 0) s.reason = limit_rank();
    s.W = best_.W;
    s.lambda = best_.lambda;
    s.certificate = best_.certificate;
    s.norm = best_.certificate.norm;
    s.dual = best_.certificate.dual;
    s.gap = best_.certificate.gap;
    s.status = s.reason.empty() && best_.certificate.certifies(limits_.tolerance) ? MarginStatus::certified
                                                                                  : MarginStatus::stopped;
    if (s.status == MarginStatus::stopped && best_.certificate.proves_norm_above(options_.max_norm))
      return infeasible(std::move(best_.lambda));
    s.interrupted = s.status == MarginStatus::stopped && limits_.stop.requested();
    if (s.status == MarginStatus::stopped && s.reason.empty()) s.reason = why_stopped();
    if (s.W.allFinite()) {
      if (s.certificate.feasible()) s.support = support(constraints_, s.W);
      Svd svd(s.W.rows(), s.W.cols());
      svd.compute_values(PaddedMatrix(s.W).view());
      s.singular_values = svd.values().eigen().transpose();
    }
    if (!norm_.is_entrywise()) s.dual_multiplicity = top_multiplicity(s.lambda);
    s.seconds = elapsed();
    return s;
  }

  std::string why_stopped() const {
    if (limits_.stop.requested()) return "interrupted";
    if (limits_.out_of_time()) return fmt::format("the time limit of {} s is reached", options_.max_seconds);
    if (limits_.iterations_left <= 0 || last_outcome_ == Outcome::out_of_iterations)
      return fmt::format("the limit of {} iterations is reached", options_.max_iterations);
    if (!best_.W.allFinite()) return "no W within the range of a double was found";
    if (!best_.certificate.feasible())
      return fmt::format("constraint {} is violated by {:.1e} of its bound",
                         best_.certificate.worst_constraint, best_.certificate.worst_violation);
    return fmt::format("rounding: the gap does not fall below {:.1e}", best_.certificate.gap);
  }

  // Cuts W to the largest max_rank singular values. If nothing is lost, the optimum has that rank and stays certified;
  // otherwise this returns why not, and W stays the convex optimum.
  std::string limit_rank() {
    if (!best_.W.allFinite()) return {};
    const PaddedMatrix full(best_.W);
    Svd svd(best_.W.rows(), best_.W.cols());
    svd.compute(full.view());
    const std::ptrdiff_t kept = std::min<std::ptrdiff_t>(options_.max_rank, svd.values().cols);
    PaddedMatrix cut(best_.W.rows(), best_.W.cols());
    svd.compose({svd.values().data, static_cast<std::size_t>(kept)}, cut.view());
    Judged limited = judge(cut.view().eigen(), best_.lambda);
    if (limited.certificate.certifies(limits_.tolerance)) {
      best_ = std::move(limited);
      return {};
    }
    if (!best_.certificate.certifies(limits_.tolerance)) return {};
    const std::string reason =
        fmt::format("the convex optimum has rank above {}; its norm {:.9g} is a lower bound for this rank",
                    options_.max_rank, best_.certificate.norm);
    if (limited.certificate.feasible()) best_ = std::move(limited);
    return reason;
  }

  // How many singular values of sum lambda_k A_k equal the largest.
  std::ptrdiff_t top_multiplicity(const Vector& lambda) const {
    const Vector scaled = scaled_.scale_multipliers(lambda);
    PaddedMatrix scratch = scaled_.make_scratch(), U(constraints_.rows(), constraints_.cols());
    if (scaled_.count() == 0) return 0;
    scaled_.adjoint({scaled.data(), static_cast<std::size_t>(scaled.size())}, scratch, U.view());
    Svd svd(constraints_.rows(), constraints_.cols());
    svd.compute_values(U.view());
    std::ptrdiff_t result = 0;
    while (result < svd.values().cols && svd.value(result) >= (1 - 1e-6) * svd.value(0) && svd.value(0) > 0)
      ++result;
    return result;
  }

  const MarginConstraints& constraints_;
  Norm norm_, solved_norm_;
  const MarginOptions& options_;
  Certifier certify_;
  Clock::time_point begin_;
  ScaledConstraints scaled_;
  std::unique_ptr<ThreadPool> pool_;
  SolverLimits limits_{};
  std::string method_;
  Outcome last_outcome_ = Outcome::solved;
  Judged best_;
};

}  // namespace

MarginSolution max_margin(const MarginConstraints& constraints, const Norm& norm,
                          const MarginOptions& options, const WarmStart& start) {
  options.validate(norm);
  return Solve(constraints, norm, options,
               [&](const Matrix& W, const Vector& lambda) { return certify(constraints, norm, W, lambda); })
      .run(start);
}

MarginSolution max_margin(const Dataset& data, const MarginProblem& problem, const Norm& norm,
                          const MarginOptions& options, const WarmStart& start) {
  options.validate(norm);
  const MarginConstraints rows = constraints(data, problem);
  return Solve(rows, norm, options,
               [&](const Matrix& W, const Vector& lambda) { return certify(data, problem, norm, W, lambda); })
      .run(start);
}

MarginSolution max_margin(const Dataset& data, const Selection& tokens, const Norm& norm,
                          const MarginOptions& options, const WarmStart& start) {
  return max_margin(data, MarginProblem(AttentionSvm{tokens}), norm, options, start);
}

std::vector<MarginSolution> max_margins(std::span<const MarginTask> tasks, const MarginOptions& options) {
  for (const MarginTask& task : tasks) options.validate(task.norm);
  MarginOptions each = options;
  each.threads = 1;
  std::vector<MarginSolution> solutions(tasks.size());
  ThreadPool pool(options.threads);
  pool.run(static_cast<std::ptrdiff_t>(tasks.size()), [&](std::ptrdiff_t t) {
    const auto i = static_cast<std::size_t>(t);
    solutions[i] = max_margin(*tasks[i].data, tasks[i].problem, tasks[i].norm, each);
  });
  return solutions;
}

}  // namespace attmirror
