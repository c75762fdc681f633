// The certificate of an attractor, from tokens, queries, labels and decoder alone. Levels of scores,
// constraints and logits are formed here again, in long double, and not taken from the search.
//
// The search knows W only up to its gap. How much may the deficits of the exact solution W* differ? W is
// feasible, so is the mean of W and W*, and no feasible matrix is smaller than W*, whose norm is at least
// `dual`. Then
//
//   p = 2        ||W - W*||^2 <= ||W||^2 - dual^2                      (the angle at W* is not acute)
//   1 < p < 2    (p - 1) ||W - W*||^2 <= 2 (||W||^2 - dual^2)          (Ball, Carlen and Lieb 1994)
//   p > 2        ||W - W*||^p <= 2^(p-1) (||W||^p - dual^p)            (Clarkson 1936)
//
// and a logit difference <A, W> of the exact solution is within ||A||_q ||W - W*||_p of ours.
#include "sweep/attractor_choices.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/margin/support.hpp>
#include <attmirror/sweep/attractors.hpp>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace attmirror {

namespace {

using LongRow = Eigen::Matrix<long double, 1, Eigen::Dynamic>;
using LongColumn = Eigen::Matrix<long double, Eigen::Dynamic, 1>;

// One query, its scores and the tokens as its logits see them.
struct QueryView {
  Eigen::Matrix<long double, Eigen::Dynamic, Eigen::Dynamic> X, keys;
  LongColumn z;  // (1) for a prompt
  LongColumn scores, sizes;

  QueryView(const Attention& model, std::ptrdiff_t j) {
    const Dataset& data = model.data();
    const LongColumn v = model.zero_parameters().v.cast<long double>();
    X = data.tokens(data.sequence_of(j)).eigen().cast<long double>();
    keys = X;
    if (const auto* prompt = std::get_if<Prompt>(&model.parameterization())) {
      if (prompt->key_weights.size() > 0) keys = X * prompt->key_weights.transpose().cast<long double>();
      z = LongColumn::Ones(1);
    } else {
      z = data.queries().eigen().row(j).transpose().cast<long double>();
    }
    scores = static_cast<long double>(data.labels()[static_cast<std::size_t>(j)]) * (X * v);
    sizes = X.cwiseAbs() * v.cwiseAbs();
  }

  // The score of token a minus that of token b; 0 if they are equal to rounding.
  long double advantage(std::ptrdiff_t a, std::ptrdiff_t b) const {
    const long double difference = scores[a] - scores[b];
    return std::fabs(difference) <= equal_score_tolerance * (sizes[a] + sizes[b]) ? 0 : difference;
  }
  LongRow difference(std::ptrdiff_t a, std::ptrdiff_t b) const { return keys.row(a) - keys.row(b); }
};

// ||W - W*|| at most; NaN where the solution need not be unique.
double distance_bound(const Certificate& certificate, const Norm& norm) {
  if (!norm.is_entrywise() || !(norm.p() > 1) || std::isinf(norm.p())) return std::nan("");
  const double p = norm.p(), size = certificate.norm * (1 + certificate.worst_violation);
  // What rounding may hide in a gap of 0.
  const double ratio = std::max(0.0, 1 - certificate.dual / size) + 4e-16;
  if (p == 2) return size * std::sqrt(2 * ratio);
  if (p < 2) return size * std::sqrt(4 * ratio / (p - 1));
  return size * std::pow(std::exp2(p - 1) * -std::expm1(p * std::log1p(-std::min(ratio, 1.0))), 1 / p);
}

void check_attractor_shapes(const Attention& model, const Attractor& attractor) {
  attractor.tokens.validate(model.data());
  const bool prompt = std::holds_alternative<Prompt>(model.parameterization());
  const std::ptrdiff_t rows = model.data().dim(), cols = prompt ? 1 : rows;
  const Matrix& W = attractor.solution.W;
  if (W.rows() != rows || W.cols() != cols)
    throw bad_input(fmt::format("W has shape ({}, {}): expected ({}, {})", W.rows(), W.cols(), rows, cols));
}

}  // namespace

bool AttractorCertificate::holds() const {
  const double needed = 1 + (std::isnan(deficit_error) ? support_tolerance : deficit_error);
  return margin.certifies(tolerance) && least_margin >= 1 - feasibility_tolerance && least_deficit > needed &&
         least_lead > support_tolerance && least_idle_lead >= -support_tolerance;
}

MarginConstraints attractor_constraints(const Attention& model, const Selection& tokens) {
  const Dataset& data = model.data();
  tokens.validate(data);
  const bool prompt = std::holds_alternative<Prompt>(model.parameterization());
  ConstraintArrays arrays;
  std::vector<Vector> rows;
  for (std::ptrdiff_t j = 0; j < data.total_queries(); ++j) {
    const QueryView query(model, j);
    const std::int64_t selected = tokens.tokens[static_cast<std::size_t>(j)];
    const std::ptrdiff_t i = data.sequence_of(j);
    const auto X = data.tokens(i).eigen();
    const std::size_t before = rows.size();
    for (std::ptrdiff_t t = 0; t < data.length(i); ++t)
      if (data.allows(j, t) && query.advantage(selected, t) > 0) {
        rows.emplace_back((X.row(selected) - X.row(t)).transpose());
        arrays.origins.push_back({i, j - data.first_query(i), t});
      }
    arrays.group_sizes.push_back(static_cast<std::int64_t>(rows.size() - before));
  }
  if (rows.empty()) throw bad_input("no selected token has a worse one: expected at least one constraint");
  arrays.left.resize(std::ssize(rows), data.dim());
  for (std::size_t k = 0; k < rows.size(); ++k)
    arrays.left.row(static_cast<std::ptrdiff_t>(k)) = rows[k].transpose();
  if (prompt)
    if (const Matrix& A = std::get<Prompt>(model.parameterization()).key_weights; A.size() > 0)
      arrays.left = (arrays.left * A.transpose()).eval();
  arrays.right = prompt ? Matrix(Matrix::Ones(data.total_queries(), 1)) : Matrix(data.queries().eigen());
  arrays.bounds.assign(rows.size(), 1.0);
  return MarginConstraints(arrays);
}

AttractorCertificate verify_attractor(const Attention& model, const Attractor& attractor) {
  check_attractor_shapes(model, attractor);
  const Dataset& data = model.data();
  const MarginSolution& solution = attractor.solution;
  AttractorCertificate result;
  result.tolerance = MarginOptions{}.tolerance(solution.kind);
  result.margin =
      certify(attractor_constraints(model, attractor.tokens), solution.kind, solution.W, solution.lambda);
  const double distance = distance_bound(result.margin, solution.kind);
  result.deficit_error = std::isnan(distance) ? distance : 0;
  const auto W = solution.W.cast<long double>().eval();
  for (std::ptrdiff_t j = 0; j < data.total_queries(); ++j) {
    const QueryView query(model, j);
    const LongColumn direction = W * query.z;
    const std::int64_t selected = attractor.tokens.tokens[static_cast<std::size_t>(j)];
    double margin = std::numeric_limits<double>::infinity(), lead = margin;
    for (std::ptrdiff_t t = 0; t < query.X.rows(); ++t) {
      if (t == selected || !data.allows(j, t)) continue;
      const LongRow a = query.difference(selected, t);
      const auto ahead = static_cast<double>(a.dot(direction));
      const long double advantage = query.advantage(selected, t);
      if (advantage > 0) margin = std::min(margin, ahead);
      if (advantage == 0 && !a.isZero(0)) lead = std::min(lead, ahead);
      if (advantage < 0) {
        result.least_deficit = std::min(result.least_deficit, ahead);
        if (std::isnan(distance)) continue;
        const Matrix A = (a.transpose() * query.z.transpose()).cast<double>();
        result.deficit_error = std::max(result.deficit_error, distance * norm(A, solution.kind.dual()));
      }
    }
    result.least_margin = std::min(result.least_margin, margin);
    double& kept = margin <= 1 + support_tolerance ? result.least_lead : result.least_idle_lead;
    kept = std::min(kept, lead);
  }
  return result;
}

}  // namespace attmirror
