// Let t be the tall one of a and a^T, m x n. With a pivoted QR, t = Q R P^T, and rotations J that make the columns of
// P R^T J orthogonal,
//
//   P R^T J = V S    hence    t = (Q J) S V^T
//
// R^T is much nearer to having orthogonal columns than t: two to four sweeps do instead of eight. The pivots are not
// moved in memory; entry c of a row of R belongs to column c of t, so P never appears.
#include "mirror/spectral.hpp"

#include "mirror/chosen_kernels.hpp"
#include "mirror/entries.hpp"
#include <attmirror/base/error.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include <fmt/format.h>

namespace attmirror {

namespace {

constexpr double epsilon = std::numeric_limits<double>::epsilon();

// Squares of what is left of a column, relative to the largest entry: below this there is nothing left. Far above
// the smallest double, so that products of two columns do not underflow.
constexpr double nothing_left = 1e-280;

// Rounding stops the rotations after about five sweeps; this many never happen.
constexpr int sweep_limit = 40;

double* row_of(PaddedMatrix& matrix, std::ptrdiff_t k) {
  const MatrixView view = matrix.view();
  return view.data + k * view.stride;
}

void set_zero(PaddedMatrix& matrix) { std::fill_n(matrix.view().data, matrix.view().flat_size(), 0.0); }

}  // namespace

Svd::Svd(std::ptrdiff_t rows, std::ptrdiff_t cols)
    : rows_(rows),
      cols_(cols),
      reflectors_(std::min(rows, cols), std::max(rows, cols)),
      triangle_(rank_limit(), rank_limit()),
      rotations_(rank_limit(), rank_limit()),
      long_(reflectors_),
      short_(triangle_),
      values_(1, rank_limit()),
      weighted_(rows, rank_limit()),
      taus_(static_cast<std::size_t>(rank_limit())),
      norms_(taus_),
      pivots_(taus_.size()),
      order_(taus_.size()) {}

void Svd::compute(ConstMatrixView a, SmallValues small) { decompose(a, small, Vectors::both); }

void Svd::compute_values(ConstMatrixView a) { decompose(a, SmallValues::keep, Vectors::none); }

double Svd::rounding_level() const { return static_cast<double>(std::max(rows_, cols_)) * epsilon; }

void Svd::decompose(ConstMatrixView a, SmallValues small, Vectors vectors) {
  if (a.rows != rows_ || a.cols != cols_)
    throw bad_input(fmt::format("the matrix has shape ({}, {}): this decomposition is for ({}, {})", a.rows,
                                a.cols, rows_, cols_));
  sweeps_ = 0;
  const double largest = max_abs(a);
  if (!std::isfinite(largest)) {
    for (PaddedMatrix* result : {&values_, &long_, &short_}) fill_entries(result->view(), std::nan(""));
    return;
  }
  const int exponent = scale_exponent(largest);
  load(a, -exponent);
  const std::ptrdiff_t count = triangularize(small == SmallValues::drop ? rounding_level() : 0.0);
  orthogonalize(count, vectors);
  finish(count, exponent, vectors);
  if (small == SmallValues::keep) return;
  for (std::ptrdiff_t k = rank(); k < count; ++k) {  // what the remainder's bound let through
    values_.view().data[k] = 0;
    std::fill_n(row_of(long_, k), long_.view().stride, 0.0);
    std::fill_n(row_of(short_, k), short_.view().stride, 0.0);
  }
}

// The columns of the tall one of a and a^T, times a power of two, become rows.
void Svd::load(ConstMatrixView a, int exponent) {
  if (rows_ < cols_) {
    scale_by_power(a, exponent, reflectors_.view());
    return;
  }
  const double first = std::ldexp(1.0, exponent / 2), second = std::ldexp(1.0, exponent - exponent / 2);
  for (std::ptrdiff_t j = 0; j < cols_; ++j) {
    double* column = row_of(reflectors_, j);
    for (std::ptrdiff_t i = 0; i < rows_; ++i) column[i] = a.data[i * a.stride + j] * first * second;
  }
}

// Householder's QR; the longest remaining column is next. Finished components of the columns move to the rows of R
// and leave zeros behind, so that the kernels may start at the last multiple of four. Returns the number of rows.
//
// Once the Frobenius norm of what remains is at most `negligible` times the first diagonal entry, which sigma_1
// exceeds, the rest is left out: no singular value moves further than that (Weyl).
std::ptrdiff_t Svd::triangularize(double negligible) {
  const kernels::DenseTable& dense = dense_kernels();
  const std::ptrdiff_t columns = rank_limit(), length = reflectors_.view().stride;
  set_zero(triangle_);
  std::iota(pivots_.begin(), pivots_.end(), std::ptrdiff_t{0});
  for (std::ptrdiff_t c = 0; c < columns; ++c)
    norms_[static_cast<std::size_t>(c)] = dense.dot(row_of(reflectors_, c), row_of(reflectors_, c), length);

  for (std::ptrdiff_t k = 0; k < columns; ++k) {
    const auto left = [&](std::ptrdiff_t c) { return norms_[static_cast<std::size_t>(c)]; };
    std::iter_swap(pivots_.begin() + k,
                   std::max_element(pivots_.begin() + k, pivots_.end(),
                                    [&](std::ptrdiff_t a, std::ptrdiff_t b) { return left(a) < left(b); }));
    const std::ptrdiff_t pivot = pivots_[static_cast<std::size_t>(k)];
    if (left(pivot) < nothing_left) return k;
    if (k > 0) {
      double remainder = 0;
      for (std::ptrdiff_t j = k; j < columns; ++j) remainder += left(pivots_[static_cast<std::size_t>(j)]);
      const double diagonal = triangle_.view().data[pivots_[0]];
      if (std::sqrt(remainder) <= negligible * std::abs(diagonal)) return k;
    }

    // I - tau x x^T takes the column to diagonal e_k.
    const std::ptrdiff_t first = k / 4 * 4, size = length - first;
    double* x = row_of(reflectors_, pivot);
    const double norm = std::sqrt(left(pivot)), diagonal = x[k] >= 0 ? -norm : norm;
    const double tau = 1 / (norm * (norm + std::abs(x[k])));
    x[k] -= diagonal;
    taus_[static_cast<std::size_t>(k)] = tau;
    double* row = row_of(triangle_, k);
    row[pivot] = diagonal;
    for (std::ptrdiff_t j = k + 1; j < columns; ++j) {
      const std::ptrdiff_t c = pivots_[static_cast<std::size_t>(j)];
      double* column = row_of(reflectors_, c);
      dense.add_scaled(-tau * dense.dot(x + first, column + first, size), x + first, column + first, size);
      row[c] = column[k];
      column[k] = 0;
      norms_[static_cast<std::size_t>(c)] = dense.dot(column + first, column + first, size);
    }
  }
  return columns;
}

// Rotates pairs of rows of the triangle until all are orthogonal. The longer of a pair comes first (de Rijk), by
// exchange of their numbers.
void Svd::orthogonalize(std::ptrdiff_t count, Vectors vectors) {
  const kernels::DenseTable& dense = dense_kernels();
  const std::ptrdiff_t length = triangle_.view().stride;
  const double tolerance = epsilon * std::sqrt(static_cast<double>(rank_limit()));
  std::iota(order_.begin(), order_.end(), std::ptrdiff_t{0});
  if (vectors == Vectors::both) {
    set_zero(rotations_);
    for (std::ptrdiff_t k = 0; k < count; ++k) row_of(rotations_, k)[k] = 1;
  }
  bool rotated = count > 1;
  while (rotated && sweeps_ < sweep_limit) {
    rotated = false;
    ++sweeps_;
    for (std::ptrdiff_t i = 0; i < count; ++i)
      for (std::ptrdiff_t j = i + 1; j < count; ++j) {
        std::ptrdiff_t &a = order_[static_cast<std::size_t>(i)], &b = order_[static_cast<std::size_t>(j)];
        kernels::PairProducts of = dense.products(row_of(triangle_, a), row_of(triangle_, b), length);
        if (of.aa < of.bb) {
          std::swap(a, b);
          std::swap(of.aa, of.bb);
        }
        if (of.bb < nothing_left * nothing_left ||
            std::abs(of.ab) <= tolerance * std::sqrt(of.aa) * std::sqrt(of.bb))
          continue;
        // t = tan of the angle: the smaller root of t^2 + 2 zeta t = 1.
        const double zeta = (of.bb - of.aa) / (2 * of.ab), size = std::abs(zeta);
        const double t =
            std::copysign(size > 1e8 ? 0.5 / size : 1 / (size + std::sqrt(1 + zeta * zeta)), zeta);
        const double c = 1 / std::sqrt(1 + t * t), s = c * t;
        dense.rotate(row_of(triangle_, a), row_of(triangle_, b), length, c, s);
        if (vectors == Vectors::both)
          dense.rotate(row_of(rotations_, a), row_of(rotations_, b), length, c, s);
        rotated = true;
      }
  }
}

void Svd::finish(std::ptrdiff_t count, int exponent, Vectors vectors) {
  const kernels::DenseTable& dense = dense_kernels();
  const std::ptrdiff_t length = triangle_.view().stride;
  set_zero(values_);
  for (std::ptrdiff_t k = 0; k < count; ++k)
    norms_[static_cast<std::size_t>(k)] =
        std::sqrt(dense.dot(row_of(triangle_, k), row_of(triangle_, k), length));
  std::sort(order_.begin(), order_.begin() + count, [&](std::ptrdiff_t a, std::ptrdiff_t b) {
    const double x = norms_[static_cast<std::size_t>(a)], y = norms_[static_cast<std::size_t>(b)];
    return x != y ? x > y : a < b;
  });
  for (std::ptrdiff_t k = 0; k < count; ++k)
    values_.view().data[k] =
        std::ldexp(norms_[static_cast<std::size_t>(order_[static_cast<std::size_t>(k)])], exponent);
  if (vectors == Vectors::none) return;

  set_zero(short_);
  set_zero(long_);
  for (std::ptrdiff_t k = 0; k < count; ++k) {
    const std::ptrdiff_t from = order_[static_cast<std::size_t>(k)];
    const double norm = norms_[static_cast<std::size_t>(from)];
    if (norm == 0) continue;
    const double* scaled = row_of(triangle_, from);
    double* unit = row_of(short_, k);
    for (std::ptrdiff_t c = 0; c < rank_limit(); ++c) unit[c] = scaled[c] / norm;

    double* image = row_of(long_, k);  // Q J e_k: the reflections, last one first
    std::copy_n(row_of(rotations_, from), count, image);
    for (std::ptrdiff_t r = count - 1; r >= 0; --r) {
      const std::ptrdiff_t first = r / 4 * 4, size = long_.view().stride - first;
      const double* x = row_of(reflectors_, pivots_[static_cast<std::size_t>(r)]) + first;
      const double tau = taus_[static_cast<std::size_t>(r)];
      dense.add_scaled(-tau * dense.dot(x, image + first, size), x, image + first, size);
    }
  }
}

std::ptrdiff_t Svd::rank() const {
  if (rank_limit() == 0) return 0;
  const double threshold = rounding_level() * value(0);
  std::ptrdiff_t count = 0;
  while (count < rank_limit() && value(count) > threshold) ++count;
  return count;
}

void Svd::compose(std::span<const double> weights, MatrixView out) {
  const auto count = std::min(static_cast<std::ptrdiff_t>(weights.size()), rank_limit());
  const ConstMatrixView u = left(), v = right();
  for (std::ptrdiff_t k = 0; k < count; ++k)
    if (!std::isfinite(weights[static_cast<std::size_t>(k)])) return fill_entries(out, std::nan(""));
  const MatrixView factor = weighted_.view();
  for (std::ptrdiff_t i = 0; i < rows_; ++i)
    for (std::ptrdiff_t k = 0; k < count; ++k)
      factor.data[i * factor.stride + k] = weights[static_cast<std::size_t>(k)] * u.data[k * u.stride + i];
  dense_kernels().combine({.factor = factor.data,
                           .factor_stride = factor.stride,
                           .rows = v.data,
                           .rows_stride = v.stride,
                           .shift = 0,
                           .add = nullptr,
                           .add_stride = 0,
                           .out = out.data,
                           .out_stride = out.stride,
                           .count = rows_,
                           .inner = count,
                           .size = v.stride});
}

void Svd::polar(MatrixView out) {
  const std::ptrdiff_t count = rank();
  std::fill_n(norms_.begin(), count, 1.0);
  if (rank_limit() > 0 && std::isnan(value(0))) return fill_entries(out, std::nan(""));
  compose({norms_.data(), static_cast<std::size_t>(count)}, out);
}

}  // namespace attmirror
