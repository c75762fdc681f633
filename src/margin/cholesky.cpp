// Small matrices are one call of a kernel. Large ones go panel by panel of 128 columns; the rows below a panel and the
// tiles of what is left are independent of each other, so threads may share them without a trace in the result.
#include "margin/cholesky.hpp"

#include "base/share_chunks.hpp"
#include "margin/chosen_kernels.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace attmirror {

namespace {

// A little longer than the panel, so that rows do not compete for the same lines of the cache.
constexpr std::ptrdiff_t diagonal_stride = kernels::cholesky_panel + 8;

struct Workspace {
  AlignedVector least, diagonal, strips;
  std::array<double, kernels::cholesky_panel> inverse_pivots;
};

// Eliminates the columns of a diagonal block that factor() has done from the rows below.
void eliminate(MatrixView m, std::ptrdiff_t begin, Workspace& space, ThreadPool* pool) {
  constexpr std::ptrdiff_t width = kernels::cholesky_panel, strip = kernels::cholesky_strip;
  for (std::ptrdiff_t i = 0; i < width; ++i) {
    const double* row = m.data + (begin + i) * m.stride + begin;
    std::copy_n(row, i + 1, space.diagonal.data() + i * diagonal_stride);
    space.inverse_pivots[static_cast<std::size_t>(i)] = 1 / row[i];
  }
  const std::ptrdiff_t end = begin + width, rows = m.rows - end;
  const kernels::CholeskyPanel panel{
      .first = m.data + end * m.stride + begin,
      .stride = m.stride,
      .rows = rows,
      .diagonal = space.diagonal.data(),
      .diagonal_stride = diagonal_stride,
      .inverse_pivots = space.inverse_pivots.data(),
      .strips = space.strips.data(),
      .trailing = m.data + end * m.stride + end,
  };
  const auto& kernel = cholesky_kernels();
  const std::ptrdiff_t strips = (rows + strip - 1) / strip;
  share(pool, strips, [&](std::ptrdiff_t s) { kernel.solve_panel(panel, s); });
  // Squares of 4 x 4 strips, numbered along the rows of their lower triangle: 0; 1, 2; 3, 4, 5; ...
  constexpr std::ptrdiff_t side = 4;
  const std::ptrdiff_t squares = (strips + side - 1) / side;
  share(pool, squares * (squares + 1) / 2, [&](std::ptrdiff_t chunk) {
    auto r = static_cast<std::ptrdiff_t>((std::sqrt(8.0 * static_cast<double>(chunk) + 1) - 1) / 2);
    while (r * (r + 1) / 2 > chunk) --r;
    while ((r + 1) * (r + 2) / 2 <= chunk) ++r;
    const std::ptrdiff_t c = chunk - r * (r + 1) / 2;
    kernel.update(panel, r * side, std::min(r * side + side, strips), c * side,
                  std::min(c * side + side, strips));
  });
}

}  // namespace

std::ptrdiff_t cholesky(MatrixView m, double least_pivot, ThreadPool* pool) {
  if (m.rows <= kernels::cholesky_smallest) {
    std::array<double, kernels::cholesky_smallest> least;
    for (std::ptrdiff_t k = 0; k < m.rows; ++k)
      least[static_cast<std::size_t>(k)] = least_pivot * m.data[k * m.stride + k];
    return cholesky_kernels().factor(m.data, m.stride, m.rows, least.data());
  }
  static thread_local Workspace space;
  space.least.resize(static_cast<std::size_t>(m.rows));
  for (std::ptrdiff_t k = 0; k < m.rows; ++k)
    space.least[static_cast<std::size_t>(k)] = least_pivot * m.data[k * m.stride + k];
  space.diagonal.resize(static_cast<std::size_t>(kernels::cholesky_panel * diagonal_stride));
  constexpr std::ptrdiff_t strip = kernels::cholesky_strip;
  space.strips.resize(
      static_cast<std::size_t>((m.rows + strip - 1) / strip * strip * kernels::cholesky_panel));
  Workspace& ours = space;  // of this thread, also in what the pool's threads run
  for (std::ptrdiff_t begin = 0;;) {
    const std::ptrdiff_t left = m.rows - begin;
    const std::ptrdiff_t width = left <= kernels::cholesky_smallest ? left : kernels::cholesky_panel;
    const std::ptrdiff_t done = cholesky_kernels().factor(m.data + begin * m.stride + begin, m.stride, width,
                                                          ours.least.data() + begin);
    if (done < width || width == left) return begin + done;
    eliminate(m, begin, ours, pool);
    begin += width;
  }
}

void cholesky_solve(ConstMatrixView factor, std::ptrdiff_t size, double* x) {
  cholesky_solve_lower(factor, size, x);
  cholesky_solve_upper(factor, size, x);
}

void cholesky_solve_lower(ConstMatrixView factor, std::ptrdiff_t size, double* x) {
  cholesky_kernels().solve_lower(factor.data, factor.stride, size, x);
}

void cholesky_solve_upper(ConstMatrixView factor, std::ptrdiff_t size, double* x) {
  cholesky_kernels().solve_upper(factor.data, factor.stride, size, x);
}

}  // namespace attmirror
