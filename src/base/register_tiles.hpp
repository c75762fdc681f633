// The register tile under every product of matrices, for the kernels that are compiled once per instruction set.
//
// C = A B runs fastest when the columns of B lie in the lanes of vectors and some rows of C times some vectors of
// columns stay in registers while k runs. Every sum is taken in the order of k from the first to the last, so neither
// the shape of the tiles nor the threads can be seen in a result.
//
// Whatever multiplies matrices does it through here: large products (matrix_product_kernels.cpp), those of gradients
// (attention/matrix_kernels.hpp), of singular values (mirror/dense_kernels.cpp) and of the max-margin solvers
// (margin/*_kernels.cpp). What stays apart computes something else: lanes of runs multiply vectors by vectors
// (sweep/lane_products.hpp), next-token kernels gather rows by their tokens (next_token/prediction_kernels.cpp),
// adjoints of constraints leave out the multipliers that are 0 (margin/constraint_kernels.cpp), and scalar products
// of rows are sums across lanes, in orders of their own.
#pragma once

#include "base/simd.hpp"

namespace attmirror::ATTMIRROR_ISA {
namespace {

// `ahead.step()` is called with every step of a sum: there a kernel that streams data from memory asks for what it will
// need next (attention/read_ahead.hpp).
struct NoReadAhead {
  void step() {}
};

// A tile of the instruction set: so many rows times so many vectors as registers hold. With 32 registers it has eight
// rows, so that each vector of B that comes from the second-level cache serves eight multiply-adds.
#if defined(ATTMIRROR_ISA_avx512)
inline constexpr int tile_rows = 8;
#else
inline constexpr int tile_rows = 4;
#endif
inline constexpr int tile_vectors = 2;
inline constexpr std::ptrdiff_t tile_lanes = tile_vectors * lanes<Wide>;

template <class V, int Rows, int Vectors>
struct Tile {
  using Vector = V;
  static constexpr int rows = Rows, vectors = Vectors;
  V sums[Rows][Vectors];

  [[gnu::always_inline]] void clear() {
    for (int h = 0; h < Rows; ++h)
      for (int v = 0; v < Vectors; ++v) sums[h][v] = V{};
  }
  // sums[h] +- sum_k at(h, k) b[k]: `at` gives the entries of A, the rows of B lie `stride` apart.
  template <class At, class Number, class Ahead>
  [[gnu::always_inline]] void add_products(const At& at, const Number* b, std::ptrdiff_t stride,
                                           std::ptrdiff_t depth, Ahead& ahead) {
    for (std::ptrdiff_t k = 0; k < depth; ++k) {
      ahead.step();
      V column[Vectors];
      for (int v = 0; v < Vectors; ++v) column[v] = load<V>(b + k * stride + v * lanes<V>);
      for (int h = 0; h < Rows; ++h) {
        const V a = broadcast<V>(at(h, k));
        for (int v = 0; v < Vectors; ++v) sums[h][v] = mul_add(a, column[v], sums[h][v]);
      }
    }
  }
  template <class At>
  [[gnu::always_inline]] void add_products(const At& at, const double* b, std::ptrdiff_t stride,
                                           std::ptrdiff_t depth) {
    NoReadAhead none;
    add_products(at, b, stride, depth, none);
  }
  template <class At>
  [[gnu::always_inline]] void subtract_products(const At& at, const double* b, std::ptrdiff_t stride,
                                                std::ptrdiff_t depth) {
    for (std::ptrdiff_t k = 0; k < depth; ++k) {
      V column[Vectors];
      for (int v = 0; v < Vectors; ++v) column[v] = load<V>(b + k * stride + v * lanes<V>);
      for (int h = 0; h < Rows; ++h) {
        const V a = broadcast<V>(at(h, k));
        for (int v = 0; v < Vectors; ++v) sums[h][v] = negative_mul_add(a, column[v], sums[h][v]);
      }
    }
  }
  [[gnu::always_inline]] void read(const double* from, std::ptrdiff_t stride) {
    for (int h = 0; h < Rows; ++h)
      for (int v = 0; v < Vectors; ++v) sums[h][v] = load<V>(from + h * stride + v * lanes<V>);
  }
  [[gnu::always_inline]] void write(double* to, std::ptrdiff_t stride) const {
    for (int h = 0; h < Rows; ++h)
      for (int v = 0; v < Vectors; ++v) store(to + h * stride + v * lanes<V>, sums[h][v]);
  }
};

// The tile that a reference refers to.
template <class T>
struct Referred;
template <class T>
struct Referred<T&> {
  using type = T;
};
template <class T>
using TileOf = typename Referred<T>::type;

// Calls f(tile, row, lane) for tiles that cover rows 0..rows-1 and lanes 0..cols-1, cols a multiple of four: full
// tiles, then one that is lower, and narrower ones. The tiles' sums are not set.
template <int Rows, class F>
[[gnu::always_inline]] inline void cover_lanes(std::ptrdiff_t row, std::ptrdiff_t cols, const F& f) {
  std::ptrdiff_t lane = 0;
  for (; lane + tile_lanes <= cols; lane += tile_lanes) {
    Tile<Wide, Rows, tile_vectors> tile;
    f(tile, row, lane);
  }
  for (; lane + lanes<Wide> <= cols; lane += lanes<Wide>) {
    Tile<Wide, Rows, 1> tile;
    f(tile, row, lane);
  }
  for (; lane < cols; lane += lanes<Narrow>) {
    Tile<Narrow, Rows, 1> tile;
    f(tile, row, lane);
  }
}
// The last rows, fewer than a full tile, in a tile of their own height: several lower ones would wait for their
// few sums.
template <int Rows, class F>
[[gnu::always_inline]] inline void cover_rest(std::ptrdiff_t row, std::ptrdiff_t rows, std::ptrdiff_t cols,
                                              const F& f) {
  if constexpr (Rows > 0) {
    if (rows - row == Rows)
      cover_lanes<Rows>(row, cols, f);
    else
      cover_rest<Rows - 1>(row, rows, cols, f);
  }
}
template <class F>
[[gnu::always_inline]] inline void cover(std::ptrdiff_t rows, std::ptrdiff_t cols, const F& f) {
  std::ptrdiff_t row = 0;
  for (; row + tile_rows <= rows; row += tile_rows) cover_lanes<tile_rows>(row, cols, f);
  cover_rest<tile_rows - 1>(row, rows, cols, f);
}

}  // namespace
}  // namespace attmirror::ATTMIRROR_ISA
