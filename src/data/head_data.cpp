#include "data/torch_random.hpp"
#include "data/torch_rows.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/data/generators.hpp>

#include <cstddef>
#include <vector>

#include <Eigen/QR>
#include <fmt/format.h>

namespace attmirror {
namespace {

// Orthonormal rows with the span of the first 1, 2, ... given rows. Householder's reflections stay orthonormal
// to rounding however close to dependent the rows are; only the signs are left to fix.
Matrix orthonormal_rows(const Matrix& rows) {
  const Eigen::HouseholderQR<Matrix> qr(rows.transpose());
  Matrix q = qr.householderQ() * Matrix::Identity(rows.cols(), rows.rows());
  for (std::ptrdiff_t k = 0; k < rows.rows(); ++k)
    if (qr.matrixQR()(k, k) < 0) q.col(k) *= -1;
  return q.transpose();
}

}  // namespace

void ReluHeadData::validate() const {
  check_sizes(samples, tokens, dim);
  check_fits(1, dim, dim, fmt::format("dim is {}, and V has dim x dim weights", dim));
}

Dataset generate(const ReluHeadData& options) {
  options.validate();
  const auto n = static_cast<std::size_t>(options.samples), T = static_cast<std::size_t>(options.tokens),
             d = static_cast<std::size_t>(options.dim);
  TorchGenerator generator(options.seed);
  const std::vector<float> V = unit_rows(generator, 1, d * d);
  const std::vector<float> X = unit_rows(generator, n * T, d);
  const std::vector<float> Y = generator.randn(n);
  const std::vector<float> Z = unit_rows(generator, n, d);

  DatasetArrays arrays;
  arrays.tokens = widened(X, options.samples * options.tokens, options.dim);
  arrays.lengths.assign(n, options.tokens);
  arrays.queries = widened(Z, options.samples, options.dim);
  for (const float y : Y) arrays.labels.push_back(y > 0.0f ? 1.0 : -1.0);
  arrays.head = widened(V, options.dim, options.dim);
  return Dataset(arrays);
}

void OrthonormalData::validate() const {
  check_sizes(samples, tokens, dim);
  if (tokens > dim)
    throw bad_input(fmt::format(
        "tokens is {}: expected at most {}, the dimension, for them to be orthonormal", tokens, dim));
}

Dataset generate(const OrthonormalData& options) {
  options.validate();
  const auto n = static_cast<std::size_t>(options.samples), T = static_cast<std::size_t>(options.tokens),
             d = static_cast<std::size_t>(options.dim);
  TorchGenerator generator(options.seed);
  const std::vector<float> v = unit_rows(generator, 1, d);
  const std::vector<float> X = generator.randn(n * T * d);
  const std::vector<float> Z = unit_rows(generator, n, d);

  DatasetArrays arrays;
  arrays.tokens = widened(X, options.samples * options.tokens, options.dim);
  for (std::int64_t i = 0; i < options.samples; ++i) {
    auto sequence = arrays.tokens.middleRows(i * options.tokens, options.tokens);
    sequence = orthonormal_rows(sequence);
  }
  arrays.lengths.assign(n, options.tokens);
  arrays.queries = widened(Z, options.samples, options.dim);
  arrays.labels.assign(n, 1.0);
  arrays.decoder = widened(v, options.dim, 1);
  return Dataset(arrays);
}

}  // namespace attmirror
