// Cholesky factorization by blocks, right-looking: factor a diagonal block, solve for the rows below it, subtract
// their products from what is left. All but a vanishing part of the work is in the last step, products of strips at
// the speed of multiply-add instructions. Compiled once per instruction set.
#include "margin/cholesky_kernels.hpp"

#include "base/strip_tiles.hpp"

namespace attmirror::ATTMIRROR_ISA {

using namespace kernels;

namespace {

static_assert(strip == cholesky_strip);

// Solves L X = strip for the 16 columns of the strip, in place: rows of L are rows of the factor, so that the strip
// then holds 16 rows of it. `depth` is a multiple of tile_rows.
inline void solve_strip(const double* L, std::ptrdiff_t stride, const double* inverse_pivots,
                        std::ptrdiff_t depth, double* x) {
  for (std::ptrdiff_t lane = 0; lane < strip; lane += tile_lanes)
    for (std::ptrdiff_t j = 0; j < depth; j += tile_rows) {
      double* target = x + j * strip + lane;
      const double* rows = L + j * stride;
      Tile<Wide, tile_rows, tile_vectors> tile;
      tile.read(target, strip);
      tile.subtract_products([=](int h, std::ptrdiff_t k) { return rows[h * stride + k]; }, x + lane, strip,
                             j);
      for (int h = 0; h < tile_rows; ++h)
        for (int v = 0; v < tile_vectors; ++v) {
          tile.sums[h][v] *= broadcast<Wide>(inverse_pivots[j + h]);
          for (int g = h + 1; g < tile_rows; ++g)
            tile.sums[g][v] =
                negative_mul_add(broadcast<Wide>(rows[g * stride + j + h]), tile.sums[h][v], tile.sums[g][v]);
        }
      tile.write(target, strip);
    }
}

// C -= (rows of one strip) (rows of another)^T, for `rows` x `cols` <= 16 x 16 entries of C. Where cols is not a
// multiple of four, zeros are subtracted from the padding.
inline void subtract_products(const double* a, const double* b, std::ptrdiff_t depth, double* C,
                              std::ptrdiff_t stride, std::ptrdiff_t rows, std::ptrdiff_t cols) {
  cover(rows, (cols + 3) / 4 * 4, [=](auto& tile, std::ptrdiff_t i, std::ptrdiff_t j) {
    tile.read(C + i * stride + j, stride);
    tile.subtract_products([=](int h, std::ptrdiff_t k) { return a[k * strip + i + h]; }, b + j, strip,
                           depth);
    tile.write(C + i * stride + j, stride);
  });
}

// Factors one block of at most 16 rows on its transpose, whose rows are whole vectors.
inline std::ptrdiff_t factor_block(double* m, std::ptrdiff_t stride, std::ptrdiff_t size, const double* least,
                                   double* inverse_pivots) {
  alignas(64) double t[strip * strip] = {};
  for (std::ptrdiff_t i = 0; i < size; ++i)
    for (std::ptrdiff_t k = 0; k <= i; ++k) t[k * strip + i] = m[i * stride + k];
  std::ptrdiff_t done = 0;
  for (; done < size; ++done) {
    double* row = t + done * strip;
    const double pivot = row[done];
    if (!(pivot > least[done])) break;
    const double root = sqrt(pivot);
    inverse_pivots[done] = 1 / root;
    for (std::ptrdiff_t c = 0; c < strip; c += lanes<Wide>)
      store(row + c, load<Wide>(row + c) * broadcast<Wide>(inverse_pivots[done]));
    row[done] = root;
    for (std::ptrdiff_t i = done + 1; i < size; ++i)
      for (std::ptrdiff_t c = i / lanes<Wide> * lanes<Wide>; c < strip; c += lanes<Wide>)
        store(t + i * strip + c,
              negative_mul_add(broadcast<Wide>(row[i]), load<Wide>(row + c), load<Wide>(t + i * strip + c)));
  }
  for (std::ptrdiff_t i = 0; i < size; ++i)
    for (std::ptrdiff_t k = 0; k <= i; ++k) m[i * stride + k] = t[k * strip + i];
  return done;
}

std::ptrdiff_t factor(double* m, std::ptrdiff_t stride, std::ptrdiff_t size, const double* least) {
  alignas(64) double strips[cholesky_smallest * strip];
  alignas(64) double inverse_pivots[strip];
  for (std::ptrdiff_t j = 0; j < size; j += strip) {
    const std::ptrdiff_t width = size - j < strip ? size - j : strip;
    double* diagonal = m + j * stride + j;
    const std::ptrdiff_t done = factor_block(diagonal, stride, width, least + j, inverse_pivots);
    if (done < width) return j + done;
    const std::ptrdiff_t below = size - j - width;
    for (std::ptrdiff_t i = 0; i < below; i += strip) {
      const std::ptrdiff_t count = below - i < strip ? below - i : strip;
      double* rows = m + (j + strip + i) * stride + j;
      double* packed = strips + i * strip;
      pack_strip(rows, stride, count, strip, packed);
      solve_strip(diagonal, stride, inverse_pivots, strip, packed);
      unpack_strip(packed, count, strip, rows, stride);
      for (std::ptrdiff_t l = 0; l <= i; l += strip)
        subtract_products(packed, strips + l * strip, strip, rows + strip + l, stride, count,
                          l < i ? strip : count);
    }
  }
  return size;
}

void solve_panel(const CholeskyPanel& panel, std::ptrdiff_t s) {
  const std::ptrdiff_t begin = s * strip, left = panel.rows - begin, count = left < strip ? left : strip;
  double* rows = panel.first + begin * panel.stride;
  double* packed = panel.strips + begin * cholesky_panel;
  pack_strip(rows, panel.stride, count, cholesky_panel, packed);
  solve_strip(panel.diagonal, panel.diagonal_stride, panel.inverse_pivots, cholesky_panel, packed);
  unpack_strip(packed, count, cholesky_panel, rows, panel.stride);
}

void update(const CholeskyPanel& panel, std::ptrdiff_t row_begin, std::ptrdiff_t row_end,
            std::ptrdiff_t col_begin, std::ptrdiff_t col_end) {
  const auto extent = [&](std::ptrdiff_t s) {
    const std::ptrdiff_t left = panel.rows - s * strip;
    return left < strip ? left : strip;
  };
  for (std::ptrdiff_t c = col_begin; c < col_end; ++c)
    for (std::ptrdiff_t r = row_begin > c ? row_begin : c; r < row_end; ++r)
      subtract_products(panel.strips + r * strip * cholesky_panel, panel.strips + c * strip * cholesky_panel,
                        cholesky_panel, panel.trailing + r * strip * panel.stride + c * strip, panel.stride,
                        extent(r), extent(c));
}

// The triangular solves take four rows at a time: one pass over x serves them all. What is left of the size is treated
// row by row.
void solve_lower(const double* factor, std::ptrdiff_t stride, std::ptrdiff_t size, double* x) {
  std::ptrdiff_t k = 0;
  for (; k + 4 <= size; k += 4) {
    const double* rows = factor + k * stride;
    Wide sums[4] = {};
    std::ptrdiff_t i = 0;
    for (; i + lanes<Wide> <= k; i += lanes<Wide>)
      for (int h = 0; h < 4; ++h)
        sums[h] = mul_add(load<Wide>(rows + h * stride + i), load<Wide>(x + i), sums[h]);
    double rest[4];
    for (int h = 0; h < 4; ++h) rest[h] = x[k + h] - reduce_add(sums[h]);
    for (; i < k; i += lanes<Narrow>)
      for (int h = 0; h < 4; ++h)
        rest[h] -= reduce_add(load<Narrow>(rows + h * stride + i) * load<Narrow>(x + i));
    for (int h = 0; h < 4; ++h) {
      for (int g = 0; g < h; ++g) rest[h] -= rows[h * stride + k + g] * rest[g];
      rest[h] /= rows[h * stride + k + h];
      x[k + h] = rest[h];
    }
  }
  for (; k < size; ++k) {
    const double* row = factor + k * stride;
    double rest = x[k];
    for (std::ptrdiff_t i = 0; i < k; ++i) rest -= row[i] * x[i];
    x[k] = rest / row[k];
  }
}

void solve_upper(const double* factor, std::ptrdiff_t stride, std::ptrdiff_t size, double* x) {
  std::ptrdiff_t k = size;
  for (; k % 4 != 0; --k) {
    const double* row = factor + (k - 1) * stride;
    x[k - 1] /= row[k - 1];
    for (std::ptrdiff_t i = 0; i < k - 1; ++i) x[i] -= row[i] * x[k - 1];
  }
  for (k -= 4; k >= 0; k -= 4) {
    const double* rows = factor + k * stride;
    for (int h = 3; h >= 0; --h) {
      x[k + h] /= rows[h * stride + k + h];
      for (int g = 0; g < h; ++g) x[k + g] -= rows[h * stride + k + g] * x[k + h];
    }
    std::ptrdiff_t i = 0;
    for (; i + lanes<Wide> <= k; i += lanes<Wide>) {
      Wide value = load<Wide>(x + i);
      for (int h = 0; h < 4; ++h)
        value = negative_mul_add(load<Wide>(rows + h * stride + i), broadcast<Wide>(x[k + h]), value);
      store(x + i, value);
    }
    for (; i < k; i += lanes<Narrow>) {
      Narrow value = load<Narrow>(x + i);
      for (int h = 0; h < 4; ++h)
        value = negative_mul_add(load<Narrow>(rows + h * stride + i), broadcast<Narrow>(x[k + h]), value);
      store(x + i, value);
    }
  }
}

}  // namespace

const CholeskyTable cholesky_table{factor, solve_panel, update, solve_lower, solve_upper};

}  // namespace attmirror::ATTMIRROR_ISA
