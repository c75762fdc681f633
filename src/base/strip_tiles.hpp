// The register tiles under dense algebra, for the kernels that are compiled once per instruction set.
//
// Sums of products a_ik b_jk over k, for rows i and columns j, run fastest when the columns lie in the lanes of vectors.
// So 16 rows of a matrix are copied into a strip: their first entries side by side, then their second ones, and so on
// (b[k * 16 + j]). A tile holds a few rows times some lanes of one strip in registers while k runs. Every sum is taken
// in the order of k from the first to the last, so neither the shape of the tiles nor the threads can be seen in a result.
#pragma once

#include "base/simd.hpp"

namespace attmirror::ATTMIRROR_ISA {
namespace {

inline constexpr std::ptrdiff_t strip = 16;

// A tile of the instruction set: so many rows times so many vectors as registers hold.
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

  // sums[h] +- sum_k at(h, k) b[k]: `at` gives the entries of the rows, b is a strip.
  template <class At>
  [[gnu::always_inline]] void add_products(const At& at, const double* b, std::ptrdiff_t depth) {
    for (std::ptrdiff_t k = 0; k < depth; ++k) {
      V column[Vectors];
      for (int v = 0; v < Vectors; ++v) column[v] = load<V>(b + k * strip + v * lanes<V>);
      for (int h = 0; h < Rows; ++h) {
        const V a = broadcast<V>(at(h, k));
        for (int v = 0; v < Vectors; ++v) sums[h][v] = mul_add(a, column[v], sums[h][v]);
      }
    }
  }
  template <class At>
  [[gnu::always_inline]] void subtract_products(const At& at, const double* b, std::ptrdiff_t depth) {
    for (std::ptrdiff_t k = 0; k < depth; ++k) {
      V column[Vectors];
      for (int v = 0; v < Vectors; ++v) column[v] = load<V>(b + k * strip + v * lanes<V>);
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

// Calls f(tile, row, lane) for tiles that cover rows 0..rows-1 and lanes 0..cols-1, cols a multiple of four: full tiles, then
// one that is lower, and narrower ones. The tiles' sums are not set.
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
// The last rows, fewer than a full tile, in a tile of their own height: several lower ones would wait for their few sums.
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

// Copies `count` <= 16 rows of `depth` numbers into a strip; the lanes of missing rows are zero.
inline void pack_strip(const double* rows, std::ptrdiff_t stride, std::ptrdiff_t count, std::ptrdiff_t depth,
                       double* out) {
  for (std::ptrdiff_t r = 0; r < count; ++r)
    for (std::ptrdiff_t k = 0; k < depth; ++k) out[k * strip + r] = rows[r * stride + k];
  for (std::ptrdiff_t r = count; r < strip; ++r)
    for (std::ptrdiff_t k = 0; k < depth; ++k) out[k * strip + r] = 0;
}

inline void unpack_strip(const double* packed, std::ptrdiff_t count, std::ptrdiff_t depth, double* rows,
                         std::ptrdiff_t stride) {
  for (std::ptrdiff_t r = 0; r < count; ++r)
    for (std::ptrdiff_t k = 0; k < depth; ++k) rows[r * stride + k] = packed[k * strip + r];
}

}  // namespace
}  // namespace attmirror::ATTMIRROR_ISA
