#include <attmirror/margin/problems.hpp>

#include <cmath>
#include <vector>

#include <Eigen/QR>

namespace attmirror {

namespace {

// Sizes of data cancel in the margins; each row has a largest entry of 1 for the decompositions.
double take_scale(Matrix& rows, std::ptrdiff_t k) {
  const double largest = rows.row(k).cwiseAbs().maxCoeff();
  if (largest > 0) rows.row(k) /= largest;
  return largest;
}

// The shortest X with rows X = right, or nothing if the rows are dependent up to rounding.
std::optional<Matrix> shortest_solution(const Matrix& rows, const Matrix& right) {
  Eigen::CompleteOrthogonalDecomposition<Eigen::MatrixXd> factors(rows);
  if (factors.rank() < rows.rows()) return std::nullopt;
  return Matrix(factors.solve(right));
}

Matrix differences(const Dataset& data, std::ptrdiff_t j, std::int64_t alpha) {
  const auto X = data.tokens(data.sequence_of(j)).eigen();
  std::vector<std::ptrdiff_t> others;
  for (std::ptrdiff_t t = 0; t < data.attended_length(j); ++t)
    if (t != alpha && data.allows(j, t)) others.push_back(t);
  Matrix result(static_cast<std::ptrdiff_t>(others.size()), data.dim());
  for (std::size_t k = 0; k < others.size(); ++k)
    result.row(static_cast<std::ptrdiff_t>(k)) = X.row(alpha) - X.row(others[k]);
  return result;
}

}  // namespace

std::optional<Matrix> constructive_weights(const Dataset& data, const Selection& tokens) {
  tokens.validate(data);
  const std::ptrdiff_t d = data.dim();
  std::vector<std::ptrdiff_t> queries;  // those with constraints
  std::vector<Matrix> rows;
  for (std::ptrdiff_t j = 0; j < data.total_queries(); ++j) {
    Matrix differing = differences(data, j, tokens.tokens[static_cast<std::size_t>(j)]);
    if (differing.rows() > d || !differing.allFinite()) return std::nullopt;
    if (differing.rows() == 0) continue;
    queries.push_back(j);
    rows.push_back(std::move(differing));
  }
  const auto count = static_cast<std::ptrdiff_t>(queries.size());
  if (count > d) return std::nullopt;
  if (count == 0) return Matrix::Zero(d, d);

  Matrix left(d, count), Z(count, d);
  Vector z_scales(count);
  for (std::ptrdiff_t q = 0; q < count; ++q) {
    Z.row(q) = data.queries().eigen().row(queries[static_cast<std::size_t>(q)]);
    z_scales[q] = take_scale(Z, q);
    Matrix scaled = rows[static_cast<std::size_t>(q)];
    Vector demands(scaled.rows());
    for (std::ptrdiff_t k = 0; k < scaled.rows(); ++k) demands[k] = 1 / take_scale(scaled, k);
    if (!demands.allFinite()) return std::nullopt;  // a token equal to the selected one
    const auto b = shortest_solution(scaled, demands);
    if (!b) return std::nullopt;
    left.col(q) = *b;
  }
  const auto dual_basis = shortest_solution(Z, Matrix::Identity(count, count));  // d x count
  if (!dual_basis) return std::nullopt;
  for (std::ptrdiff_t q = 0; q < count; ++q) left.col(q) /= z_scales[q];
  Matrix W = left * dual_basis->transpose();

  for (std::ptrdiff_t q = 0; q < count; ++q) {
    const Vector margins = rows[static_cast<std::size_t>(q)] * (W * Z.row(q).transpose() * z_scales[q]);
    if (!((margins.array() - 1).abs() <= 1e-6).all()) return std::nullopt;
  }
  return W;
}

}  // namespace attmirror
