// Dot products, plane rotations and products of small matrices on padded rows. Compiled once per instruction set.
#include "mirror/dense_kernels.hpp"

#include "base/dot_inline.hpp"
#include "base/register_tiles.hpp"

namespace attmirror::ATTMIRROR_ISA {

using namespace kernels;

namespace {

PairProducts products(const double* a, const double* b, std::ptrdiff_t size) {
  Wide aa{}, bb{}, ab{};
  std::ptrdiff_t j = 0;
  for (; j + lanes<Wide> <= size; j += lanes<Wide>) {
    const Wide x = load<Wide>(a + j), y = load<Wide>(b + j);
    aa = mul_add(x, x, aa);
    bb = mul_add(y, y, bb);
    ab = mul_add(x, y, ab);
  }
  PairProducts result{reduce_add(aa), reduce_add(bb), reduce_add(ab)};
  for (; j < size; j += lanes<Narrow>) {
    const Narrow x = load<Narrow>(a + j), y = load<Narrow>(b + j);
    result.aa += reduce_add(x * x);
    result.bb += reduce_add(y * y);
    result.ab += reduce_add(x * y);
  }
  return result;
}

template <class V>
[[gnu::always_inline]] inline void rotate_one(double* a, double* b, double c, double s) {
  const V x = load<V>(a), y = load<V>(b), cosine = broadcast<V>(c), sine = broadcast<V>(s);
  store(a, negative_mul_add(sine, y, cosine * x));
  store(b, mul_add(sine, x, cosine * y));
}

void rotate(double* a, double* b, std::ptrdiff_t size, double c, double s) {
  std::ptrdiff_t j = 0;
  for (; j + lanes<Wide> <= size; j += lanes<Wide>) rotate_one<Wide>(a + j, b + j, c, s);
  for (; j < size; j += lanes<Narrow>) rotate_one<Narrow>(a + j, b + j, c, s);
}

void add_scaled(double scale, const double* x, double* y, std::ptrdiff_t size) {
  std::ptrdiff_t j = 0;
  for (; j + lanes<Wide> <= size; j += lanes<Wide>)
    store(y + j, mul_add(broadcast<Wide>(scale), load<Wide>(x + j), load<Wide>(y + j)));
  for (; j < size; j += lanes<Narrow>)
    store(y + j, mul_add(broadcast<Narrow>(scale), load<Narrow>(x + j), load<Narrow>(y + j)));
}

// `height` rows times one vector of columns stay in registers while the inner index runs.
template <class V, int height>
[[gnu::always_inline]] inline void combine_tile(const RowCombination& task, std::ptrdiff_t i,
                                                std::ptrdiff_t j) {
  Tile<V, height, 1> tile;
  for (int h = 0; h < height; ++h)
    tile.sums[h][0] =
        task.add ? broadcast<V>(task.shift) * load<V>(task.add + (i + h) * task.add_stride + j) : V{};
  tile.add_products([&](int h, std::ptrdiff_t k) { return task.factor[(i + h) * task.factor_stride + k]; },
                    task.rows + j, task.rows_stride, task.inner);
  tile.write(task.out + i * task.out_stride + j, task.out_stride);
}

template <int height>
[[gnu::always_inline]] inline void combine_rows(const RowCombination& task, std::ptrdiff_t i) {
  std::ptrdiff_t j = 0;
  for (; j + lanes<Wide> <= task.size; j += lanes<Wide>) combine_tile<Wide, height>(task, i, j);
  for (; j < task.size; j += lanes<Narrow>) combine_tile<Narrow, height>(task, i, j);
}

void combine(const RowCombination& task) {
  std::ptrdiff_t i = 0;
  for (; i + 8 <= task.count; i += 8) combine_rows<8>(task, i);
  for (; i < task.count; ++i) combine_rows<1>(task, i);
}

}  // namespace

const DenseTable dense_table{dot, products, rotate, add_scaled, combine};

}  // namespace attmirror::ATTMIRROR_ISA
