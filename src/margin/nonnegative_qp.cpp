// Two ways of exchanging indices between the passive set P (x_k solves for g_k = 0) and the rest (x_k = 0).
//
// Block principal pivoting (Judice and Pires; Kim and Park): solve M_PP x_P = b_P, then exchange all indices with the
// wrong sign at once: x_k < 0 leaves, g_k < 0 enters. A handful of factorizations whatever the size, but nothing
// decreases, so it may cycle, and it needs M_PP regular. The last exchanges are of a few indices: their systems are
// solved with the factor of the set before (bordered_factor.hpp).
//
// When the number of wrong signs stops falling, or M_PP is singular in a way that matters, the careful method
// (active_set_qp.hpp) takes over from the positive part of x: one index at a time, and it always ends.
#include "margin/nonnegative_qp.hpp"

#include "base/numbers.hpp"

#include <algorithm>
#include <cmath>

namespace attmirror {

namespace {

// Rounds of block exchanges that may pass without fewer wrong signs than ever before.
constexpr int qp_patience = 4;

// A step of refinement that moves x by less than this leaves nothing to the next.
constexpr double refined = 1e-10;

}  // namespace

NonnegativeQp::NonnegativeQp(std::ptrdiff_t largest_size, Factor factor)
    : factor_(factor), careful_(largest_size) {
  factored_.reserve(at(largest_size));
}

QpResult NonnegativeQp::solve(ConstMatrixView M, std::span<const double> b,
                              std::span<const unsigned char> is_free, std::span<double> x,
                              int most_factorizations, ThreadPool* pool) {
  const QpProblem<double> problem{M.data, M.stride, b, is_free, x};
  QpResult result;
  last_factor_ = {};
  if (!careful_.begin(problem)) {
    std::fill(x.begin(), x.end(), 0.0);
    return result;
  }
  switch (exchange_blocks(problem, result, most_factorizations, pool)) {
    case Pivoting::solved:
      result.outcome = QpOutcome::solved;
      break;
    case Pivoting::singular:
    case Pivoting::no_progress: {
      ++result.factorizations;
      result.outcome = careful_.solve(problem);
      const auto count = static_cast<std::ptrdiff_t>(careful_.passive().size());
      last_factor_ = {careful_.factor(), count, count, careful_.stride()};
      break;
    }
    case Pivoting::limit:
    case Pivoting::not_finite:
      break;
  }
  for (std::ptrdiff_t k = 0; k < problem.size(); ++k)
    if (!(problem.free(k) ? std::isfinite(x[at(k)]) : x[at(k)] >= 0)) x[at(k)] = 0;
  return result;
}

NonnegativeQp::Pivoting NonnegativeQp::exchange_blocks(const QpProblem<double>& problem, QpResult& result,
                                                       int most_factorizations, ThreadPool* pool) {
  const std::ptrdiff_t size = problem.size();
  const auto x = problem.x;
  auto& passive = careful_.passive();
  auto& is_passive = careful_.is_passive();
  auto& solution = careful_.workspace();
  bool guessed = false;
  for (std::ptrdiff_t k = 0; k < size; ++k) {
    is_passive[at(k)] = problem.free(k) || x[at(k)] > 0;
    guessed = guessed || x[at(k)] > 0;
  }
  if (!guessed)
    for (std::ptrdiff_t k = 0; k < size; ++k) is_passive[at(k)] = problem.free(k) || problem.b[at(k)] > 0;

  std::ptrdiff_t fewest = size + 1;
  int rounds_left = qp_patience;
  MatrixView factor{careful_.factor(), 0, 0, 0};
  bool may_border = false;  // whether factor and factored_ belong together, and the last border was of use
  for (;;) {
    passive.clear();
    for (std::ptrdiff_t k = 0; k < size; ++k)
      if (is_passive[at(k)]) passive.push_back(k);
    last_factor_ = {};
    const bool borders = may_border && bordered_.form(problem, factor, factored_, is_passive);

    // Factor M_PP; rows that depend on earlier ones leave P.
    bool singular = false;
    for (std::ptrdiff_t done = 0; !borders;) {
      if (result.factorizations >= most_factorizations || careful_.must_stop()) {
        passive.clear();
        return Pivoting::limit;
      }
      ++result.factorizations;
      const auto count = static_cast<std::ptrdiff_t>(passive.size());
      factor = {careful_.factor(), count, count, padded(count)};
      for (std::ptrdiff_t i = 0; i < count; ++i) {
        const double* from = problem.row(passive[at(i)]);
        double* to = factor.data + i * factor.stride;
        for (std::ptrdiff_t l = 0; l <= i; ++l) to[l] = from[passive[at(l)]];
      }
      done = cholesky(factor, ActiveSetQp<double>::least_pivot(count), pool);
      if (done == count) break;
      is_passive[at(passive[at(done)])] = 0;
      passive.erase(passive.begin() + done);
      // One at a time costs a factorization each: few of them are worth it, many are the other method's business.
      if (singular && count > 8) return Pivoting::singular;
      singular = true;
    }
    const auto count = static_cast<std::ptrdiff_t>(passive.size());
    if (borders) {
      bordered_.solve(problem.b, x);
    } else {
      last_factor_ = factor;
      factored_.assign(passive.begin(), passive.end());
      may_border = factor_ == Factor::not_needed;
      for (std::ptrdiff_t i = 0; i < count; ++i) solution[at(i)] = problem.b[at(passive[at(i)])];
      cholesky_solve(factor, count, solution.data());
      std::fill(x.begin(), x.end(), 0.0);
      for (std::ptrdiff_t i = 0; i < count; ++i) x[at(passive[at(i)])] = solution[at(i)];
    }
    careful_.form_gradient(problem);

    const auto is_wrong = [&](std::ptrdiff_t k) {
      return is_passive[at(k)] ? !problem.free(k) && !(x[at(k)] >= 0) : careful_.excess(problem, k) > 0;
    };
    std::ptrdiff_t wrong = 0;
    for (std::ptrdiff_t k = 0; k < size; ++k) wrong += is_wrong(k) ? 1 : 0;

    // Right signs: two steps of iterative refinement, which also show whether the signs were a matter of rounding.
    // What one step moves relative to x, the next moves relative to that step: where it is little, one will do.
    double moved = 1, length = 1;
    for (int step = 0; wrong == 0 && step < 2 && !(moved <= refined * length); ++step) {
      moved = length = 0;
      const auto move = [&](std::ptrdiff_t k, double by) {
        x[at(k)] -= by;
        moved += std::fabs(by);
        length += std::fabs(x[at(k)]);
      };
      if (borders) {
        bordered_.solve(careful_.gradients(), solution);
        for (const std::ptrdiff_t k : passive) move(k, solution[at(k)]);
      } else {
        for (std::ptrdiff_t i = 0; i < count; ++i) solution[at(i)] = careful_.gradient(passive[at(i)]);
        cholesky_solve(factor, count, solution.data());
        for (std::ptrdiff_t i = 0; i < count; ++i) move(passive[at(i)], solution[at(i)]);
      }
      careful_.form_gradient(problem);
      for (std::ptrdiff_t k = 0; k < size; ++k) wrong += is_wrong(k) ? 1 : 0;
    }
    if (borders && (!careful_.finite() || careful_.blurs() || (wrong == 0 && !careful_.precise(problem)))) {
      may_border = false;  // the same set again, with its own factor
      continue;
    }
    if (!careful_.finite()) return Pivoting::not_finite;
    if (careful_.blurs()) return Pivoting::singular;
    if (wrong == 0) return careful_.precise(problem) ? Pivoting::solved : Pivoting::singular;

    if (wrong < fewest) {
      fewest = wrong;
      rounds_left = qp_patience;
    } else if (--rounds_left == 0) {
      return Pivoting::no_progress;
    }
    bool again = false;  // a row that depends on the others wants to enter
    for (std::ptrdiff_t k = 0; k < size; ++k)
      if (is_wrong(k)) {
        again = again || (singular && !is_passive[at(k)]);
        is_passive[at(k)] = !is_passive[at(k)];
      }
    if (again) return Pivoting::singular;
  }
}

}  // namespace attmirror
