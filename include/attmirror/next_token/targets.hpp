// Where P4's training goes: two max-margin problems.
//
//   W_ov* = argmin ||W||   s.t. (e_{n(x)} - e_v)^T W x >= 1    for every x with a successor, every v != n(x)
//   W_kq* = argmin ||W||   s.t. (x - x')^T W q >= 1            for every x >_q x'
//
// in the Frobenius norm for gradient descent, in any entrywise l_p norm for mirror descent. For orthonormal
// embeddings the first has a closed form, W_ov* = sum_x (e_{n(x)} - 1/|V|) x^T, and the second decouples into
// one problem per query. Then, under each query, the scores of tokens that were never compared are 0, those
// of its optimal tokens are >= 0, those of tokens that beat no other are <= 0, and all of them add up to 0.
#pragma once

#include <attmirror/margin/max_margin.hpp>
#include <attmirror/next_token/embedding.hpp>
#include <attmirror/next_token/partial_order.hpp>

namespace attmirror {

// The constraints themselves, to look at or to certify. There is a group for each token with successors (its
// origins: the token, its successor, the other token), and for each query with preferences (the query, the
// better token, the worse). Both throw Error (bad input) if vocabularies differ or the constraints take more
// than 2 GB: about 640 tokens for W_ov*.
MarginConstraints collocation_constraints(const Embedding& embedding, const Collocations& collocations);
MarginConstraints attention_constraints(const Embedding& embedding, const PartialOrders& orders);

// How the max-margin targets of the two stages are solved.
struct TargetOptions {
  // Tolerance, time and threads. Each part of a decoupled problem is solved on one thread.
  MarginOptions margin{};
  // Solve each query separately where that is exact: one-hot with any l_p, orthonormal (up to 1e-12) with
  // Frobenius. At p = 1 and infinity, where answers are not unique, each query's part is then smallest.
  enum class Decoupling { automatic, off } decoupling = Decoupling::automatic;

  void validate(const Norm& norm) const;
};

// `lambda` has an entry for each constraint of collocation_constraints() / attention_constraints(), and the
// certificate is about all of them, however the problem was solved: if the dense constraints are large (above
// 128 MB) and the problem decouples, it is assembled from those of its parts, and `method` says so. An order
// with a cycle is infeasible, and `conflict` has the preferences of one.
//
// Soft collocations: the successors of a token are equal, and each is >= 1 above all others.
MarginSolution collocation_target(const Embedding& embedding, const Collocations& collocations,
                                  const Norm& norm, const TargetOptions& options = {});
MarginSolution attention_target(const Embedding& embedding, const PartialOrders& orders, const Norm& norm,
                                const TargetOptions& options = {});

// The closed form of W_ov* for orthonormal rows and the Frobenius norm: |W_ov*|^2 = |V| - 1 if every token
// has one successor. Throws Error (bad input) for other rows.
Matrix orthonormal_collocation_target(const Embedding& embedding, const Collocations& collocations);

// The score of each token under each query, E W_kq E^T: row x, column q. Throws Error (bad input) where W_kq is not d
// x d.
Matrix attention_scores(const Embedding& embedding, const Matrix& W_kq);

}  // namespace attmirror
