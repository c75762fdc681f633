#include "margin/generation.hpp"

#include "base/numbers.hpp"
#include "margin/group_ascent.hpp"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>
#include <vector>

namespace attmirror {

namespace {

// What is this close to its bound under the first guess may become active: it comes in before it is violated.
constexpr double nearly_violated = 0.02;
// Rounds for which a constraint without a multiplier stays.
constexpr int generation_patience = 2;

class Generation {
 public:
  Generation(const ScaledConstraints& constraints, const SolverLimits& limits)
      : all_(constraints),
        limits_(limits),
        margins_(at(constraints.count())),
        lambda_(margins_.size(), 0.0),
        W_(constraints.rows(), constraints.cols()),
        scratch_(constraints.make_scratch()),
        idle_(margins_.size(), absent) {}

  GeneratedAnswer solve(const SolverStart& guess, const RestrictedSolver& solver) {
    GeneratedAnswer result;
    if (guess.has_multipliers()) lambda_ = guess.lambda;
    if (guess.has_weights()) W_ = guess.W;
    for (std::ptrdiff_t k = 0; k < all_.count(); ++k)
      if (all_.is_equality(k) || lambda_[at(k)] != 0) idle_[at(k)] = 0;
    look();
    add(nearly_violated, std::max<std::ptrdiff_t>(200, 2 * all_.rows() * all_.cols()));
    for (;;) {
      list();
      result.largest_set = std::max(result.largest_set, static_cast<std::ptrdiff_t>(set_.size()));
      const ScaledConstraints some = all_.subset(set_);
      SolverAnswer answer = solver(some, restricted_start());
      ++result.rounds;
      result.answer.iterations += answer.iterations;
      result.answer.outcome = answer.outcome;
      std::fill(lambda_.begin(), lambda_.end(), 0.0);
      for (std::size_t i = 0; i < set_.size(); ++i) lambda_[at(set_[i])] = answer.lambda[i];
      W_ = std::move(answer.W);
      if (answer.outcome == Outcome::infeasible) break;
      look();
      drop();
      // A few at a time: most that are violated now cease to be once their neighbours are in.
      const auto most = std::max<std::ptrdiff_t>(200, static_cast<std::ptrdiff_t>(set_.size()) / 4);
      const std::ptrdiff_t added = add(-least_violation(), most);
      if (added == 0) break;
      if (answer.outcome == Outcome::out_of_time || limits_.out_of_time()) {
        result.answer.outcome = Outcome::out_of_time;
        break;
      }
      if (result.answer.iterations >= limits_.iterations_left) {
        result.answer.outcome = Outcome::out_of_iterations;
        break;
      }
    }
    result.answer.W = std::move(W_);
    result.answer.lambda = std::move(lambda_);
    return result;
  }

 private:
  static constexpr int absent = -1;

  void look() {
    all_.forward(W_.view(), scratch_, margins_, limits_.pool);
    size_ = W_.view().eigen().norm();
  }

  // Of margins near 1, below which a constraint is not added.
  double least_violation() const {
    const double least = limits_.tolerance / 100;
    return limits_.precise ? std::max(least, 8 * std::numeric_limits<double>::epsilon() * size_) : least;
  }

  // By how much W exceeds the bound, relative to it; where the bound is 0, to the size of W.
  double slack(std::ptrdiff_t k) const {
    const double c = all_.bounds()[at(k)];
    return (margins_[at(k)] - c) / (c > 0 ? c : size_ > 0 ? size_ : 1);
  }

  // Takes in at most `most` constraints whose slack is below `below`: the worst of each group first, then the second
  // worst, ... Returns how many.
  std::ptrdiff_t add(double below, std::ptrdiff_t most) {
    struct Candidate {
      std::ptrdiff_t rank;  // within its group
      double slack;
      std::ptrdiff_t k;
    };
    std::vector<Candidate> candidates, group;
    for (std::ptrdiff_t g = 0; g < all_.groups(); ++g) {
      group.clear();
      for (std::ptrdiff_t k = all_.first(g); k < all_.first(g + 1); ++k)
        if (idle_[at(k)] == absent && !(slack(k) >= below)) group.push_back({0, slack(k), k});
      std::sort(group.begin(), group.end(), [](const Candidate& a, const Candidate& b) {
        return std::pair(a.slack, a.k) < std::pair(b.slack, b.k);
      });
      for (std::size_t i = 0; i < group.size(); ++i) {
        group[i].rank = static_cast<std::ptrdiff_t>(i);
        candidates.push_back(group[i]);
      }
    }
    const auto count = std::min(most, static_cast<std::ptrdiff_t>(candidates.size()));
    std::sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
      return std::tuple(a.rank, a.slack, a.k) < std::tuple(b.rank, b.slack, b.k);
    });
    for (std::ptrdiff_t i = 0; i < count; ++i) idle_[at(candidates[at(i)].k)] = 0;
    return count;
  }

  void drop() {
    for (const std::ptrdiff_t k : set_) {
      int& idle = idle_[at(k)];
      if (all_.is_equality(k) || lambda_[at(k)] != 0 || slack(k) < nearly_violated)
        idle = 0;
      else if (++idle > generation_patience)
        idle = absent;
    }
  }

  void list() {
    set_.clear();
    for (std::ptrdiff_t k = 0; k < all_.count(); ++k)
      if (idle_[at(k)] != absent) set_.push_back(k);
  }

  SolverStart restricted_start() const {
    SolverStart start;
    start.W = W_;
    for (const std::ptrdiff_t k : set_) start.lambda.push_back(lambda_[at(k)]);
    return start;
  }

  const ScaledConstraints& all_;
  const SolverLimits& limits_;
  AlignedVector margins_, lambda_;
  PaddedMatrix W_, scratch_;
  double size_ = 0;        // |W|_2
  std::vector<int> idle_;  // rounds without a multiplier, for those in the set
  std::vector<std::ptrdiff_t> set_;
};

}  // namespace

bool worth_generating(const ScaledConstraints& constraints) {
  const std::ptrdiff_t unknowns = constraints.rows() * constraints.cols();
  return constraints.count() > 4000 || (constraints.count() > 500 && constraints.count() > 3 * unknowns);
}

GeneratedAnswer solve_by_generation(const ScaledConstraints& constraints, const Norm& norm,
                                    const SolverLimits& limits, const SolverStart& start,
                                    const RestrictedSolver& solve) {
  const bool by_groups = norm.is_entrywise() && norm.p() > 1 && norm.p() <= 2;
  if ((!by_groups || limits.precise) && (start.has_multipliers() || start.has_weights()))
    return Generation(constraints, limits).solve(start, solve);
  SolverLimits first = limits;
  if (!by_groups) {
    first.tolerance = 1;  // a gap of one percent, within few models unless there is no solution
    first.iterations_left = std::min(limits.iterations_left, 20);
  }
  SolverAnswer guess = solve_group_ascent(constraints, by_groups ? norm : Norm::frobenius(), first, start);
  if (guess.outcome == Outcome::infeasible || (by_groups && guess.outcome != Outcome::stalled))
    return {std::move(guess), 0, 0};
  const int before = guess.iterations;
  GeneratedAnswer result =
      Generation(constraints, limits).solve({std::move(guess.W), std::move(guess.lambda)}, solve);
  result.answer.iterations += before;
  return result;
}

}  // namespace attmirror
