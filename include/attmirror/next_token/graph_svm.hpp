// Where training goes when priorities have cycles (Graph-SVM, Li et al. 2024) or labels are soft (Thrampoulidis
// 2024): a direction and a finite part.
//
//   W_dir = argmin ||W||   s.t. (x - x')^T W q = 0 within a component, >= 1 for x >_q x' between components
//   W_fin = argmin L restricted to the tokens of the label's component, in the span of (x - x') q^T within components
//
// and training follows W_fin + R W_dir with growing R: attention separates the components of a query's
// priority graph and keeps finite ratios within each. For collocations a component is the set of a token's
// successors, and the finite part gives them the ratios of their weights.
#pragma once

#include <attmirror/next_token/partial_order.hpp>
#include <attmirror/next_token/targets.hpp>

#include <vector>

namespace attmirror {

// Cyclic priorities (Li et al. 2024, "Mechanics of next token prediction with self-attention").
//
// The comparisons x >_q x' are the edges of a directed graph for each query. With cycles, the tokens of a
// strongly connected component cannot be ordered; attention keeps finite ratios within it.

// Which tokens sentences prefer to which, cycles included, and the classes of equals.
class PriorityGraph {
 public:
  explicit PriorityGraph(const PartialOrders& orders);

  std::ptrdiff_t vocabulary_size() const { return static_cast<std::ptrdiff_t>(component_of_.size()); }
  // Numbered in a topological order: every edge between components goes from a lower to a higher number. A
  // token that is not compared under the query has component -1. The numbers depend only on the comparisons,
  // not on the order of the sentences.
  std::int32_t component(Token query, Token token) const;
  bool same_component(Token query, Token a, Token b) const;  // false for tokens that are not compared
  // The tokens of each component, each list ascending.
  std::vector<std::vector<Token>> components(Token query) const;
  bool is_acyclic() const;  // every component is one token

 private:
  struct Member {
    Token token;
    std::int32_t component;
  };
  std::vector<std::vector<Member>> component_of_;  // by query, sorted by token
};

// The direction. A chain of equalities (bound 0) through each component, in the order of its tokens,
// then the preferences between components; origins as in attention_constraints(). Without cycles these
// are attention_constraints().
MarginConstraints graph_constraints(const Embedding& embedding, const PartialOrders& orders,
                                    const PriorityGraph& graph);
MarginSolution graph_direction(const Embedding& embedding, const PartialOrders& orders,
                               const PriorityGraph& graph, const Norm& norm,
                               const TargetOptions& options = {});

// The finite part: a minimum on a subspace, by Newton's method.
struct FinitePart {
  Matrix W;
  double loss = 0;               // the restricted loss there: what training cannot fall below
  double gradient_norm = 0;      // Frobenius norm of its gradient within the subspace: how exact W is
  int iterations = 0;            // of the part that took the most
  std::ptrdiff_t dimension = 0;  // of the subspace
  // The gradient is 0 up to rounding, and the curvature is positive: a minimum. If a sentence has a single
  // optimal token, the loss is convex and there always is one. Several optimal tokens in one component can
  // leave only a saddle, or a minimum at infinity.
  bool converged = false;
};

// For Readout::attention, with weights of sentences that sum to 1. Embeddings that are not orthonormal couple
// all queries; the subspace may then have at most 2,000 dimensions. Throws Error (bad input) beyond that, if
// vocabularies differ, or for a label that no token of its sentence explains.
FinitePart graph_finite_part(const Embedding& embedding, const Sentences& sentences,
                             const Collocations& collocations, const PriorityGraph& graph);

// Soft collocations: (e_y - e_y')^T W x = log of the ratio of their weights, the smallest such W in the
// Frobenius norm; if d < |V| leaves none, the W in the same span that minimizes the cross-entropy among the
// successors (each token with a successor counts equally).
FinitePart collocation_finite_part(const Embedding& embedding, const Collocations& collocations);

}  // namespace attmirror
