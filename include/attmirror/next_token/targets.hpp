// Where P4's training goes: two max-margin problems.
//
//   W_ov* = argmin ||W||   s.t. (e_{n(x)} - e_v)^T W x >= 1    for every x with a successor, every v != n(x)
//   W_kq* = argmin ||W||   s.t. (x - x')^T W q >= 1            for every x >_q x'
//
// in the Frobenius norm for gradient descent, in any entrywise l_p norm for mirror descent. For orthonormal embeddings the
// first has a closed form, W_ov* = sum_x (e_{n(x)} - 1/|V|) x^T, and the second decouples: each query is a problem of its
// own, solved on its own and certified as a whole.
//
// Cyclic priorities (Graph-SVM, Li et al. 2024) and soft labels (Thrampoulidis 2024) have a direction and a finite part:
//
//   W_dir = argmin ||W||   s.t. (x - x')^T W q = 0 within a component, >= 1 for x >_q x' between components
//   W_fin = argmin L restricted to the tokens of the label's component, in the span of (x - x') q^T within components
//
// and training goes as W_fin + R W_dir with R growing.
#pragma once

#include <attmirror/margin/max_margin.hpp>
#include <attmirror/next_token/embedding.hpp>
#include <attmirror/next_token/partial_order.hpp>
#include <attmirror/next_token/priority_graph.hpp>

#include <span>
#include <vector>

namespace attmirror {

// The constraints themselves, for those who want to look or to certify. Group x (a token with successors), then group q.
MarginConstraints collocation_constraints(const Embedding& embedding, const Collocations& collocations);
MarginConstraints attention_constraints(const Embedding& embedding, const PartialOrders& orders);
// Graph-SVM's direction: equalities within components.
MarginConstraints graph_constraints(const Embedding& embedding, const PartialOrders& orders,
                                    const PriorityGraph& graph);

struct TargetOptions {
  MarginOptions margin{};
  // Solve each query on its own where that is exact (orthonormal rows and the Frobenius norm; one-hot rows and any l_p).
  enum class Decoupling { automatic, off } decoupling = Decoupling::automatic;
};

// Certified against collocation_constraints() / attention_constraints() as a whole, whatever way it was solved. Soft
// collocations: equalities between the successors of a token, >= 1 from them to the others.
MarginSolution collocation_target(const Embedding& embedding, const Collocations& collocations,
                                  const Norm& norm, const TargetOptions& options = {});
MarginSolution attention_target(const Embedding& embedding, const PartialOrders& orders, const Norm& norm,
                                const TargetOptions& options = {});
MarginSolution graph_direction(const Embedding& embedding, const PartialOrders& orders,
                               const PriorityGraph& graph, const Norm& norm,
                               const TargetOptions& options = {});

// The closed form for orthonormal rows and the Frobenius norm: |W_ov*|^2 = |V| - 1 where every token has a successor.
Matrix orthonormal_collocation_target(const Embedding& embedding, const Collocations& collocations);

// The finite part: a minimum of a convex function on a subspace, by Newton's method.
struct FinitePart {
  Matrix W;
  double loss = 0;           // the restricted loss there
  double gradient_norm = 0;  // Frobenius norm of its gradient within the subspace: how exact it is
  int iterations = 0;
  bool converged = false;
};
// Graph-SVM, for Readout::attention.
FinitePart graph_finite_part(const Embedding& embedding, const Sentences& sentences,
                             const Collocations& collocations, const PriorityGraph& graph);
// Soft collocations: (e_y - e_y')^T W x = log of the ratio of their weights, the smallest such W in the Frobenius norm.
Matrix collocation_finite_part(const Embedding& embedding, const Collocations& collocations);

// The score of each token under each query, E W_kq E^T: row x, column q.
Matrix attention_scores(const Embedding& embedding, const Matrix& W_kq);

// Extended order (P4): do scores put optimal tokens above those that were never compared, and these above non-optimal ones?
struct ExtendedOrder {
  double lowest_optimal = 0, highest_non_comparable = 0, lowest_non_comparable = 0,
         highest_non_optimal = 0;  // worst gaps' ends, over queries
  double optimal_above_non_comparable = 0, non_comparable_above_non_optimal = 0,
         optimal_above_non_optimal = 0;  // share of pairs
  bool holds = false;                    // all three shares are 1
};
// Scores of one query are compared with each other only. Scores below `tolerance` of the largest count as 0.
ExtendedOrder extended_order(const Matrix& scores, const PartialOrders& orders, double tolerance = 1e-9);

}  // namespace attmirror
