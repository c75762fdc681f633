// Margins, adjoints and normal matrices of rank-one constraints. Compiled once per instruction set.
#include "margin/constraint_kernels.hpp"

#include "base/dot_inline.hpp"
#include "base/strip_tiles.hpp"

namespace attmirror::ATTMIRROR_ISA {

using namespace kernels;

namespace {

static_assert(strip == constraint_strip);

// out (rows x cols) = A B with `at(i, k)` the entries of A and B row-major; cols is a multiple of four.
template <class At>
[[gnu::always_inline]] inline void product(const At& at, std::ptrdiff_t rows, const double* B,
                                           std::ptrdiff_t ldb, std::ptrdiff_t depth, double* out,
                                           std::ptrdiff_t ldo, std::ptrdiff_t cols) {
  cover(rows, cols, [=](auto& tile, std::ptrdiff_t i, std::ptrdiff_t j) {
    tile.clear();
    tile.add_products([=](int h, std::ptrdiff_t k) { return at(i + h, k); }, B + j, ldb, depth);
    tile.write(out + i * ldo + j, ldo);
  });
}

void forward(const ForwardTask& task, std::ptrdiff_t group_begin, std::ptrdiff_t group_end) {
  // A few groups at a time, whose products are still in the cache when their margins are taken.
  constexpr std::ptrdiff_t together = 16;
  for (std::ptrdiff_t g = group_begin; g < group_end; g += together) {
    const std::ptrdiff_t count = group_end - g < together ? group_end - g : together;
    const double* z = task.right + g * task.right_stride;
    const std::ptrdiff_t stride = task.right_stride;
    double* products = task.products + g * task.left_stride;
    product([=](std::ptrdiff_t i, std::ptrdiff_t k) { return z[i * stride + k]; }, count, task.transposed,
            task.left_stride, task.cols, products, task.left_stride, task.left_stride);
    for (std::ptrdiff_t i = 0; i < count; ++i)
      for (std::ptrdiff_t k = task.offsets[g + i]; k < task.offsets[g + i + 1]; ++k)
        task.margins[k] =
            dot(task.left + k * task.left_stride, products + i * task.left_stride, task.left_stride);
  }
}

template <class V, int Vectors>
[[gnu::always_inline]] inline void weighted_sum(const double* rows, std::ptrdiff_t stride,
                                                const double* weights, std::ptrdiff_t count, double* out) {
  V sums[Vectors] = {};
  for (std::ptrdiff_t k = 0; k < count; ++k) {
    if (weights[k] == 0) continue;  // most multipliers are
    for (int v = 0; v < Vectors; ++v)
      sums[v] = mul_add(broadcast<V>(weights[k]), load<V>(rows + k * stride + v * lanes<V>), sums[v]);
  }
  for (int v = 0; v < Vectors; ++v) store(out + v * lanes<V>, sums[v]);
}

void adjoint_sums(const AdjointTask& task, std::ptrdiff_t group_begin, std::ptrdiff_t group_end) {
  const std::ptrdiff_t stride = task.left_stride;
  for (std::ptrdiff_t g = group_begin; g < group_end; ++g) {
    const std::ptrdiff_t first = task.offsets[g], count = task.offsets[g + 1] - first;
    const double* rows = task.left + first * stride;
    double* out = task.sums + g * stride;
    std::ptrdiff_t j = 0;
    for (; j + 8 * lanes<Wide> <= stride; j += 8 * lanes<Wide>)
      weighted_sum<Wide, 8>(rows + j, stride, task.lambda + first, count, out + j);
    for (; j + lanes<Wide> <= stride; j += lanes<Wide>)
      weighted_sum<Wide, 1>(rows + j, stride, task.lambda + first, count, out + j);
    for (; j < stride; j += lanes<Narrow>)
      weighted_sum<Narrow, 1>(rows + j, stride, task.lambda + first, count, out + j);
  }
}

void adjoint_rows(const AdjointTask& task, std::ptrdiff_t row_begin, std::ptrdiff_t row_end) {
  const double* sums = task.sums + row_begin;
  const std::ptrdiff_t stride = task.left_stride;
  product([=](std::ptrdiff_t i, std::ptrdiff_t k) { return sums[k * stride + i]; }, row_end - row_begin,
          task.right, task.right_stride, task.groups, task.out + row_begin * task.out_stride, task.out_stride,
          task.right_stride);
}

// The values of the blocks that the lanes belong to. Blocks ascend by at most one from lane to lane, so all of them
// lie within one vector from the first.
template <class V>
struct Spread {
  const std::ptrdiff_t* blocks;
  [[gnu::always_inline]] explicit Spread(const std::ptrdiff_t* of_lanes) : blocks(of_lanes) {}
  [[gnu::always_inline]] V operator()(const double* values) const {
    V result{};
    for (int lane = 0; lane < lanes<V>; ++lane) result[lane] = values[blocks[lane]];
    return result;
  }
};
#if defined(ATTMIRROR_ISA_avx512)
template <>
struct Spread<F64x8> {
  std::ptrdiff_t first;
  I64x8 index;
  [[gnu::always_inline]] explicit Spread(const std::ptrdiff_t* of_lanes) : first(of_lanes[0]) {
    __builtin_memcpy(&index, of_lanes, sizeof index);
    index -= first;
  }
  [[gnu::always_inline]] F64x8 operator()(const double* values) const {
    return F64x8(_mm512_maskz_permutexvar_pd(0xff, bit_cast<__m512i>(index), load<F64x8>(values + first)));
  }
};
#endif

// A strip's columns times the values of their blocks, row by row.
inline void weigh_strip(const double* columns, const double* pairs, std::ptrdiff_t pairs_stride,
                        const std::ptrdiff_t* blocks, std::ptrdiff_t rows, double* out) {
  constexpr std::ptrdiff_t step = 2 * lanes<Wide>;
  for (std::ptrdiff_t v = 0; v < strip; v += step) {
    const Spread<Wide> first(blocks + v), second(blocks + v + lanes<Wide>);
    for (std::ptrdiff_t i = 0; i < rows; ++i) {
      const double *values = pairs + i * pairs_stride, *from = columns + i * strip + v;
      double* to = out + i * strip + v;
      store(to, load<Wide>(from) * first(values));
      store(to + lanes<Wide>, load<Wide>(from + lanes<Wide>) * second(values));
    }
  }
}

// h_i for all blocks up to b: pairs[i][b'] = sum_j D_ij z_j z'_j, or sum_j z_j z'_j.
inline void form_pairs(const NormalTask& task, const double* z, const NormalScratch& scratch,
                       std::ptrdiff_t b) {
  const double* a = z;
  std::ptrdiff_t rows = 1;
  const std::ptrdiff_t stride = (task.cols + 3) / 4 * 4;
  if (task.weights) {
    rows = task.rows;
    a = scratch.weighted;
    for (std::ptrdiff_t i = 0; i < rows; ++i)
      for (std::ptrdiff_t j = 0; j < stride; j += lanes<Narrow>)
        store(scratch.weighted + i * stride + j,
              load<Narrow>(task.weights + i * task.weights_stride + j) * load<Narrow>(z + j));
  }
  for (std::ptrdiff_t s = 0; s <= b / strip; ++s)
    product([=](std::ptrdiff_t i, std::ptrdiff_t k) { return a[i * stride + k]; }, rows,
            task.right_strips + s * strip * task.cols, strip, task.cols, scratch.pairs + s * strip,
            scratch.pairs_stride, strip);
}

void normal_rows(const NormalTask& task, const double* z, const NormalScratch& scratch, std::ptrdiff_t b) {
  form_pairs(task, z, scratch, b);
  const std::ptrdiff_t begin = task.begin[b], end = task.begin[b + 1], rows = end - begin;
  for (std::ptrdiff_t s = 0; s * strip < end; ++s) {
    const double* columns = task.left_strips + s * strip * task.rows;
    const std::ptrdiff_t* blocks = task.blocks + s * strip;
    if (task.weights) {
      weigh_strip(columns, scratch.pairs, scratch.pairs_stride, blocks, task.rows, scratch.strip);
      columns = scratch.strip;
    }
    const std::ptrdiff_t left = task.out_cols - s * strip, cols = left < strip ? left : strip;
    cover(rows, cols, [&](auto& tile, std::ptrdiff_t r, std::ptrdiff_t lane) {
      using T = TileOf<decltype(tile)>;
      using V = typename T::Vector;
      const double* row[T::rows];
      for (int h = 0; h < T::rows; ++h) row[h] = task.left + task.list[begin + r + h] * task.left_stride;
      tile.clear();
      tile.add_products([&](int h, std::ptrdiff_t k) { return row[h][k]; }, columns + lane, strip, task.rows);
      if (!task.weights)
        for (int v = 0; v < T::vectors; ++v) {
          const V factor = Spread<V>(blocks + lane + v * lanes<V>)(scratch.pairs);
          for (int h = 0; h < T::rows; ++h) tile.sums[h][v] *= factor;
        }
      tile.write(task.out + (begin + r) * task.out_stride + s * strip + lane, task.out_stride);
    });
  }
}

}  // namespace

const ConstraintTable constraint_table{forward, adjoint_sums, adjoint_rows, normal_rows};

}  // namespace attmirror::ATTMIRROR_ISA
