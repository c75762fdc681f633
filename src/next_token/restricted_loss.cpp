#include "next_token/restricted_loss.hpp"

#include <algorithm>
#include <cmath>

namespace attmirror {

namespace {

// The softmax over the positions of a term, and over its optimal ones alone.
struct TermState {
  std::vector<double> all, optimal;
  double loss = 0;

  void compute(const RestrictedComponent::Term& term, const Eigen::Ref<const Vector>& scores) {
    const auto score = [&](const RestrictedComponent::Position& at) {
      return at.token == 0 ? 0.0 : scores[at.token - 1];
    };
    // Relative to the best optimal score, so that a loss near 0 keeps its digits.
    double best = -HUGE_VAL;
    for (const auto& at : term.positions)
      if (at.optimal) best = std::max(best, score(at));
    double top = best;
    for (const auto& at : term.positions) top = std::max(top, score(at));
    double good = 0, other = 0;
    all.clear();
    optimal.clear();
    for (const auto& at : term.positions) {
      const double value = std::exp(score(at) - top);
      all.push_back(value);
      optimal.push_back(at.optimal ? std::exp(score(at) - best) : 0);
      good += optimal.back();
      other += at.optimal ? 0 : value;
    }
    // sum of others / sum of optimal = other e^top / (good e^best)
    const double log_ratio = std::log(other / good) + (top - best);
    loss = log_ratio > 0 ? log_ratio + std::log1p(std::exp(-log_ratio)) : std::log1p(std::exp(log_ratio));
    const double total = other + good * std::exp(best - top);
    for (double& value : all) value /= total;
    for (double& value : optimal) value /= good;
  }
};

}  // namespace

double restricted_loss(const RestrictedComponent& component, const Eigen::Ref<const Vector>& scores) {
  TermState state;
  double loss = 0;
  for (const auto& term : component.terms) {
    state.compute(term, scores);
    loss += term.weight * state.loss;
  }
  return loss;
}

// With a = softmax over all positions and o = softmax over the optimal ones, summed by token: the gradient is a - o
// and the Hessian diag(a) - a a^T - (diag(o) - o o^T).
RestrictedDerivatives derivatives(const RestrictedComponent& component,
                                  const Eigen::Ref<const Vector>& scores) {
  const std::ptrdiff_t n = component.dimension();
  RestrictedDerivatives result{0, Vector::Zero(n), Matrix::Zero(n, n)};
  TermState state;
  for (const auto& term : component.terms) {
    state.compute(term, scores);
    result.loss += term.weight * state.loss;
    for (std::size_t i = 0; i < term.positions.size(); ++i) {
      const std::ptrdiff_t a = term.positions[i].token - 1;
      if (a < 0) continue;
      result.gradient[a] += term.weight * (state.all[i] - state.optimal[i]);
      result.hessian(a, a) += term.weight * (state.all[i] - state.optimal[i]);
      for (std::size_t j = 0; j < term.positions.size(); ++j)
        if (const std::ptrdiff_t b = term.positions[j].token - 1; b >= 0)
          result.hessian(a, b) -=
              term.weight * (state.all[i] * state.all[j] - state.optimal[i] * state.optimal[j]);
    }
  }
  return result;
}

}  // namespace attmirror
