// Products with a symmetric matrix by rows of its lower triangle. What limits them is how fast the matrix arrives
// from the cache, so each number that arrives is used for its row and for its column. Compiled once per
// instruction set.
#include "margin/qp_kernels.hpp"

#include "base/strip_tiles.hpp"

namespace attmirror::ATTMIRROR_ISA {

using namespace kernels;

namespace {

static_assert(strip == qp_strip);

// Four rows at a time: one pass over x and out serves them all. The columns end at `first`, a multiple of four.
[[gnu::always_inline]] inline void four_rows(const double* rows, std::ptrdiff_t stride, std::ptrdiff_t first,
                                             const double* x, double* out) {
  const auto pass = [&]<class V>(V, std::ptrdiff_t begin, std::ptrdiff_t end) {
    V sums[4] = {};
    for (std::ptrdiff_t i = begin; i < end; i += lanes<V>) {
      const V here = load<V>(x + i);
      V added = load<V>(out + i);
      for (int h = 0; h < 4; ++h) {
        const V m = load<V>(rows + h * stride + i);
        sums[h] = mul_add(m, here, sums[h]);
        added = mul_add(m, broadcast<V>(x[first + h]), added);
      }
      store(out + i, added);
    }
    for (int h = 0; h < 4; ++h) out[first + h] += reduce_add(sums[h]);
  };
  const std::ptrdiff_t wide = first / lanes<Wide> * lanes<Wide>;
  for (int h = 0; h < 4; ++h) out[first + h] = 0;
  pass(Wide{}, 0, wide);
  pass(Narrow{}, wide, first);
}

// The same without the columns, where the four numbers of x are 0.
[[gnu::always_inline]] inline void four_dots(const double* rows, std::ptrdiff_t stride, std::ptrdiff_t first,
                                             const double* x, double* out) {
  const auto pass = [&]<class V>(V, std::ptrdiff_t begin, std::ptrdiff_t end) {
    V sums[4] = {};
    for (std::ptrdiff_t i = begin; i < end; i += lanes<V>) {
      const V here = load<V>(x + i);
      for (int h = 0; h < 4; ++h) sums[h] = mul_add(load<V>(rows + h * stride + i), here, sums[h]);
    }
    for (int h = 0; h < 4; ++h) out[first + h] += reduce_add(sums[h]);
  };
  const std::ptrdiff_t wide = first / lanes<Wide> * lanes<Wide>;
  for (int h = 0; h < 4; ++h) out[first + h] = 0;
  pass(Wide{}, 0, wide);
  pass(Narrow{}, wide, first);
}

void product(const SymmetricMatrix& M, const double* x, double* out) {
  std::ptrdiff_t k = 0;
  for (; k + 4 <= M.size; k += 4) {
    const double* rows = M.rows + k * M.stride;
    if (x[k] == 0 && x[k + 1] == 0 && x[k + 2] == 0 && x[k + 3] == 0)
      four_dots(rows, M.stride, k, x, out);
    else
      four_rows(rows, M.stride, k, x, out);
    for (int h = 0; h < 4; ++h) {
      const double* row = rows + h * M.stride + k;
      for (int g = 0; g < h; ++g) {
        out[k + h] += row[g] * x[k + g];
        out[k + g] += row[g] * x[k + h];
      }
      out[k + h] += row[h] * x[k + h];
    }
  }
  for (; k < M.size; ++k) {
    const double* row = M.rows + k * M.stride;
    double sum = row[k] * x[k];
    for (std::ptrdiff_t i = 0; i < k; ++i) {
      sum += row[i] * x[i];
      out[i] += row[i] * x[k];
    }
    out[k] = sum;
  }
}

[[gnu::always_inline]] inline double dot(const double* a, const double* b, std::ptrdiff_t size) {
  Wide sums[4] = {};
  std::ptrdiff_t i = 0;
  for (; i + 4 * lanes<Wide> <= size; i += 4 * lanes<Wide>)
    for (int v = 0; v < 4; ++v)
      sums[v] = mul_add(load<Wide>(a + i + v * lanes<Wide>), load<Wide>(b + i + v * lanes<Wide>), sums[v]);
  for (; i + lanes<Wide> <= size; i += lanes<Wide>)
    sums[0] = mul_add(load<Wide>(a + i), load<Wide>(b + i), sums[0]);
  double sum = reduce_add((sums[0] + sums[1]) + (sums[2] + sums[3]));
  for (; i < size; ++i) sum += a[i] * b[i];
  return sum;
}

[[gnu::always_inline]] inline void add_multiple(double factor, const double* a, std::ptrdiff_t size,
                                                double* out) {
  std::ptrdiff_t i = 0;
  for (; i + lanes<Wide> <= size; i += lanes<Wide>)
    store(out + i, mul_add(load<Wide>(a + i), broadcast<Wide>(factor), load<Wide>(out + i)));
  for (; i < size; ++i) out[i] += a[i] * factor;
}

void sweep(const SymmetricMatrix& M, const SweepTask& task) {
  for (std::ptrdiff_t k = 0; k < M.size; ++k) {
    task.next[k] = 0;
    if (task.is_idle[k]) continue;
    const double* row = M.rows + k * M.stride;
    const double others = dot(row, task.x, k) + task.right[k];
    double value = (task.b[k] - others) / row[k];
    if (!task.is_free[k] && value <= 0) {
      task.is_idle[k] = others - task.b[k] > task.idle_from;
      value = 0;
    }
    task.x[k] = value;
    if (value != 0) add_multiple(value, row, k, task.next);
  }
}

// Rows [row, row + Rows) of a strip: what the solved rows before them say is subtracted, then they are
// solved themselves.
template <int Rows>
[[gnu::always_inline]] inline void solve_rows(const double* factor, std::ptrdiff_t stride, std::ptrdiff_t row,
                                              double* x) {
  const double* rows = factor + row * stride;
  for (std::ptrdiff_t lane = 0; lane < strip; lane += tile_lanes) {
    Tile<Wide, Rows, tile_vectors> tile;
    tile.read(x + row * strip + lane, strip);
    tile.subtract_products([=](int h, std::ptrdiff_t k) { return rows[h * stride + k]; }, x + lane, strip,
                           row);
    for (int h = 0; h < Rows; ++h)
      for (int v = 0; v < tile_vectors; ++v) {
        tile.sums[h][v] /= broadcast<Wide>(rows[h * stride + row + h]);
        for (int g = h + 1; g < Rows; ++g)
          tile.sums[g][v] =
              negative_mul_add(broadcast<Wide>(rows[g * stride + row + h]), tile.sums[h][v], tile.sums[g][v]);
      }
    tile.write(x + row * strip + lane, strip);
  }
}

void solve_strip(const double* factor, std::ptrdiff_t stride, std::ptrdiff_t size, double* x) {
  std::ptrdiff_t row = 0;
  for (; row + tile_rows <= size; row += tile_rows) solve_rows<tile_rows>(factor, stride, row, x);
  for (; row < size; ++row) solve_rows<1>(factor, stride, row, x);
}

void strip_products(const double* a, const double* b, std::ptrdiff_t depth, double* out,
                    std::ptrdiff_t stride) {
  cover(strip, strip, [=](auto& tile, std::ptrdiff_t row, std::ptrdiff_t lane) {
    tile.clear();
    tile.add_products([=](int h, std::ptrdiff_t k) { return a[k * strip + row + h]; }, b + lane, strip,
                      depth);
    tile.write(out + row * stride + lane, stride);
  });
}

}  // namespace

const QpTable qp_table{product, sweep, solve_strip, strip_products};

}  // namespace attmirror::ATTMIRROR_ISA
