#include "mirror/newton_schulz.hpp"

#include "mirror/chosen_kernels.hpp"
#include "mirror/entries.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/mirror/lp_map.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

namespace attmirror {

namespace {

// out = shift add + factor rows
void combine(ConstMatrixView factor, ConstMatrixView rows, double shift, ConstMatrixView add,
             MatrixView out) {
  dense_kernels().combine({.factor = factor.data,
                           .factor_stride = factor.stride,
                           .rows = rows.data,
                           .rows_stride = rows.stride,
                           .shift = shift,
                           .add = add.data,
                           .add_stride = add.stride,
                           .out = out.data,
                           .out_stride = out.stride,
                           .count = factor.rows,
                           .inner = factor.cols,
                           .size = rows.stride});
}

void transpose(ConstMatrixView in, MatrixView out) {
  for (std::ptrdiff_t i = 0; i < in.rows; ++i)
    for (std::ptrdiff_t j = 0; j < in.cols; ++j) out.data[j * out.stride + i] = in.data[i * in.stride + j];
}

}  // namespace

void NewtonSchulzOptions::validate() const {
  for (const auto& [name, value] : {std::pair("a", a), std::pair("b", b), std::pair("c", c)})
    if (!std::isfinite(value))
      throw bad_input(fmt::format("{} is {}: expected a finite number", name, value));
  if (iterations < 1) throw bad_input(fmt::format("iterations is {}: expected at least 1", iterations));
}

NewtonSchulz::NewtonSchulz(std::ptrdiff_t rows, std::ptrdiff_t cols, NewtonSchulzOptions options)
    : rows_(rows),
      cols_(cols),
      options_((options.validate(), options)),
      x_(std::min(rows, cols), std::max(rows, cols)),
      next_(x_),
      transposed_(std::max(rows, cols), std::min(rows, cols)),
      gram_(std::min(rows, cols), std::min(rows, cols)),
      scaled_gram_(gram_),
      polynomial_(gram_) {}

void NewtonSchulz::orthogonalize(ConstMatrixView g, MatrixView out) {
  if (g.rows != rows_ || g.cols != cols_)
    throw bad_input(
        fmt::format("the matrix has shape ({}, {}): expected ({}, {})", g.rows, g.cols, rows_, cols_));
  const double largest = max_abs(g);
  if (largest == 0 || !std::isfinite(largest)) return fill_entries(out, largest == 0 ? 0.0 : std::nan(""));

  const bool wide = rows_ <= cols_;
  scale_by_power(g, -scale_exponent(largest), out);
  if (wide)
    std::copy_n(out.data, out.flat_size(), x_.view().data);
  else
    transpose(out, x_.view());
  const double norm = LpMap(2).norm(x_.view());
  for (std::ptrdiff_t j = 0; j < x_.view().flat_size(); ++j) x_.view().data[j] /= norm;

  for (int turn = 0; turn < options_.iterations; ++turn) {
    transpose(x_.view(), transposed_.view());
    combine(x_.view(), transposed_.view(), 0, {}, gram_.view());
    for (std::ptrdiff_t j = 0; j < gram_.view().flat_size(); ++j)
      scaled_gram_.view().data[j] = options_.c * gram_.view().data[j];
    combine(scaled_gram_.view(), gram_.view(), options_.b, gram_.view(), polynomial_.view());
    combine(polynomial_.view(), x_.view(), options_.a, x_.view(), next_.view());
    std::swap(x_, next_);
  }
  if (wide)
    std::copy_n(x_.view().data, out.flat_size(), out.data);
  else
    transpose(x_.view(), out);
}

}  // namespace attmirror
