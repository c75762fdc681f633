// The loss that decides about the finite part: cross-entropy among tokens that training cannot separate. Internal.
//
// Under one looking token z let C be a set of tokens whose scores stay at a finite distance (a strongly connected
// component of priorities, the successors of a soft collocation). A term is a list of positions that hold tokens of
// C, some of them optimal, with weight pi:
//
//   - pi log( sum_{optimal t} e^{s_t} / sum_t e^{s_t} )
//
// as a function of the scores s_c = c^T W z, c in C. Only their differences matter. Sums over all components are
// minimised over W in the span of (c - c') z^T: the part of weight space that the directions of growth leave alone.
#pragma once

#include "next_token/difference_problem.hpp"
#include <attmirror/next_token/graph_svm.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace attmirror {

struct RestrictedComponent {
  struct Position {
    std::int32_t token = 0;  // its place in `tokens`
    bool optimal = false;
  };
  struct Term {
    double weight = 0;
    std::vector<Position> positions;
  };

  Token looking = no_token;
  std::vector<Token> tokens;  // at least two
  std::vector<Term> terms;

  std::ptrdiff_t dimension() const { return std::ssize(tokens) - 1; }
};

// Value, gradient and Hessian in the scores of tokens 1, 2, ... of the component, that of token 0 being 0.
struct RestrictedDerivatives {
  double loss = 0;
  Vector gradient;
  Matrix hessian;
};
RestrictedDerivatives derivatives(const RestrictedComponent& component,
                                  const Eigen::Ref<const Vector>& scores);
double restricted_loss(const RestrictedComponent& component, const Eigen::Ref<const Vector>& scores);

// The minimum over W. Components are minimised one by one where embeddings are orthonormal, otherwise together, which
// may then have at most max_coupled_dimension unknowns.
constexpr std::ptrdiff_t max_coupled_dimension = 2000;
FinitePart minimize_restricted(const Embedding& embedding, LeftVectors left,
                               const std::vector<RestrictedComponent>& components);

}  // namespace attmirror
