// Dual ascent by groups. Compiled once per instruction set.
//
// V is kept transposed: then both V z (a sum of its rows) and the change of V with a group's multipliers (each row plus
// a multiple of one vector) run along whole rows.
#include "margin/ascent_kernels.hpp"

#include "base/dot_inline.hpp"
#include "base/register_tiles.hpp"

namespace attmirror::ATTMIRROR_ISA {

using namespace kernels;

namespace {

// out = sum_j factor(j) rows_j for `Vectors` vectors of columns.
template <class V, int Vectors, class Factor>
[[gnu::always_inline]] inline void combine(const double* rows, std::ptrdiff_t stride, std::ptrdiff_t count,
                                           const Factor& factor, double* out) {
  Tile<V, 1, Vectors> tile;
  tile.clear();
  tile.add_products([&](int, std::ptrdiff_t j) { return factor(j); }, rows, stride, count);
  tile.write(out, 0);
}

template <class Factor>
[[gnu::always_inline]] inline void combine_rows(const double* rows, std::ptrdiff_t stride,
                                                std::ptrdiff_t count, const Factor& factor, double* out) {
  std::ptrdiff_t i = 0;
  for (; i + 8 * lanes<Wide> <= stride; i += 8 * lanes<Wide>)
    combine<Wide, 8>(rows + i, stride, count, factor, out + i);
  for (; i + lanes<Wide> <= stride; i += lanes<Wide>)
    combine<Wide, 1>(rows + i, stride, count, factor, out + i);
  for (; i < stride; i += lanes<Narrow>) combine<Narrow, 1>(rows + i, stride, count, factor, out + i);
}

// V^T += z change^T, weighted.
template <class V>
[[gnu::always_inline]] inline void add_change(const AscentTask& task, const double* z, const double* change,
                                              std::ptrdiff_t j, std::ptrdiff_t i) {
  double* to = task.transposed + j * task.left_stride + i;
  V product = broadcast<V>(z[j]) * load<V>(change + i);
  if (task.weights) product *= load<V>(task.weights + j * task.left_stride + i);
  store(to, load<V>(to) + product);
}

inline double ascend(const AscentTask& task, std::ptrdiff_t g) {
  const std::ptrdiff_t stride = task.left_stride, begin = task.begin[g], end = task.begin[g + 1];
  if (begin == end) return 0;
  const double* z = task.right + g * task.right_stride;
  const double* h = task.curvatures + g * stride;
  double* products = task.work;  // V z
  double* change = task.work + stride;
  combine_rows(
      task.transposed, stride, task.cols, [z](std::ptrdiff_t j) { return z[j]; }, products);
  bool moved = false;
  double worst = 0;
  for (int pass = 0; pass < task.inner_sweeps; ++pass) {
    bool moving = false;
    for (std::ptrdiff_t i = begin; i < end; ++i) {
      const std::ptrdiff_t k = task.list[i];
      const double* a = task.left + k * stride;
      const double slope = task.bounds[k] - dot(a, products, stride), old = task.lambda[k];
      double lambda = old + slope * task.steps[i];
      if (lambda < 0 && !task.free[k]) lambda = 0;
      if (lambda == old) continue;
      if (pass == 0) worst = max(slope < 0 ? -slope : slope, worst);
      task.lambda[k] = lambda;
      const double delta = lambda - old;
      if (!moved)
        for (std::ptrdiff_t c = 0; c < stride; c += lanes<Narrow>) store(change + c, Narrow{});
      moved = moving = true;
      std::ptrdiff_t c = 0;
      const auto apply = [&]<class V>(V) {
        const V step = broadcast<V>(delta) * load<V>(a + c);
        store(change + c, load<V>(change + c) + step);
        store(products + c, mul_add(step, load<V>(h + c), load<V>(products + c)));
        c += lanes<V>;
      };
      while (c + lanes<Wide> <= stride) apply(Wide{});
      while (c < stride) apply(Narrow{});
    }
    if (!moving) break;
  }
  if (!moved) return worst;
  for (std::ptrdiff_t j = 0; j < task.cols; ++j) {
    std::ptrdiff_t i = 0;
    for (; i + lanes<Wide> <= stride; i += lanes<Wide>) add_change<Wide>(task, z, change, j, i);
    for (; i < stride; i += lanes<Narrow>) add_change<Narrow>(task, z, change, j, i);
  }
  return worst;
}

double sweep(const AscentTask& task, std::ptrdiff_t groups) {
  double worst = 0;
  for (std::ptrdiff_t g = 0; g < groups; ++g) worst = max(ascend(task, g), worst);
  return worst;
}

void curvatures(const AscentTask& task, std::ptrdiff_t group_begin, std::ptrdiff_t group_end, double* out,
                double* diagonal) {
  const std::ptrdiff_t stride = task.left_stride;
  for (std::ptrdiff_t g = group_begin; g < group_end; ++g) {
    const double* z = task.right + g * task.right_stride;
    double* h = out + g * stride;
    if (task.weights) {
      combine_rows(
          task.weights, stride, task.cols, [z](std::ptrdiff_t j) { return z[j] * z[j]; }, h);
    } else {
      const double square = dot(z, z, task.right_stride);
      for (std::ptrdiff_t i = 0; i < stride; ++i) h[i] = square;
    }
    for (std::ptrdiff_t i = task.begin[g]; i < task.begin[g + 1]; ++i) {
      const double* a = task.left + task.list[i] * stride;
      Narrow sum{};
      for (std::ptrdiff_t c = 0; c < stride; c += lanes<Narrow>) {
        const Narrow x = load<Narrow>(a + c);
        sum = mul_add(x * x, load<Narrow>(h + c), sum);
      }
      diagonal[i] = reduce_add(sum);
    }
  }
}

}  // namespace

const AscentTable ascent_table{sweep, curvatures};

}  // namespace attmirror::ATTMIRROR_ISA
