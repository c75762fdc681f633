#include "next_token/decoupled_target.hpp"
#include "next_token/target_problems.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/next_token/targets.hpp>

#include <fmt/format.h>

namespace attmirror {

void TargetOptions::validate(const Norm& norm) const { margin.validate(norm); }

MarginSolution solve_target(const DifferenceProblem& problem, const Norm& norm,
                            const TargetOptions& options) {
  options.validate(norm);
  if (options.decoupling == TargetOptions::Decoupling::automatic && decouples(problem, norm))
    return solve_decoupled(problem, norm, options.margin);
  return max_margin(dense_constraints(problem), norm, options.margin);
}

MarginConstraints collocation_constraints(const Embedding& embedding, const Collocations& collocations) {
  return dense_constraints(collocation_problem(embedding, collocations));
}

MarginConstraints attention_constraints(const Embedding& embedding, const PartialOrders& orders) {
  return dense_constraints(attention_problem(embedding, orders));
}

MarginSolution collocation_target(const Embedding& embedding, const Collocations& collocations,
                                  const Norm& norm, const TargetOptions& options) {
  return solve_target(collocation_problem(embedding, collocations), norm, options);
}

MarginSolution attention_target(const Embedding& embedding, const PartialOrders& orders, const Norm& norm,
                                const TargetOptions& options) {
  return solve_target(attention_problem(embedding, orders), norm, options);
}

// A successor gets 1 - a/|V| and every other token -a/|V|, where a is the number of successors: differences of 1, and
// column sums of 0, which is the smallest shift.
Matrix orthonormal_collocation_target(const Embedding& embedding, const Collocations& collocations) {
  check_vocabulary(embedding, collocations.vocabulary_size(), "collocations");
  if (const double error = embedding.orthonormality_error(); !(error <= orthonormality_tolerance))
    throw bad_input(
        fmt::format("the embedding's rows are orthonormal up to {:.1e} only: the closed form holds "
                    "up to {:.0e}",
                    error, orthonormality_tolerance));
  const std::ptrdiff_t size = embedding.vocabulary_size();
  Matrix logits = Matrix::Zero(size, size);  // row x
  for (Token x = 0; x < size; ++x) {
    const auto successors = collocations.successors(x);
    logits.row(x).setConstant(-static_cast<double>(successors.size()) / static_cast<double>(size));
    for (const Collocations::Successor& s : successors) logits(x, s.token) += 1;
  }
  if (embedding.is_one_hot()) return logits.transpose();
  return logits.transpose() * embedding.vectors.view().eigen();
}

Matrix attention_scores(const Embedding& embedding, const Matrix& W_kq) {
  const std::ptrdiff_t d = embedding.dim();
  if (W_kq.rows() != d || W_kq.cols() != d)
    throw bad_input(
        fmt::format("W_kq has shape ({}, {}): expected ({}, {})", W_kq.rows(), W_kq.cols(), d, d));
  if (embedding.is_one_hot()) return W_kq;
  const auto E = embedding.vectors.view().eigen();
  return E * W_kq * E.transpose();
}

}  // namespace attmirror
