// The rows of one group after the other. For a group, h of all groups up to it is one product of matrices; then 16
// columns at a time are multiplied with their h and meet all rows of the group in registers. Groups are independent
// of each other, so threads may share them.
#include "margin/normal_matrix.hpp"

#include "margin/chosen_kernels.hpp"

#include <algorithm>
#include <vector>

namespace attmirror {

namespace {

constexpr std::ptrdiff_t strip = kernels::constraint_strip;

std::ptrdiff_t strips(std::ptrdiff_t count) { return (count + strip - 1) / strip; }

// Memory that is kept: a Newton method asks for much the same matrix again and again.
struct ListWorkspace {
  std::vector<std::ptrdiff_t> begin, groups, blocks;
  AlignedVector left, right;
};
struct RowWorkspace {
  AlignedVector weighted, pairs, strip;
};

void pack(const double* row, std::ptrdiff_t size, std::ptrdiff_t position, AlignedVector& out) {
  double* to = out.data() + position / strip * strip * size + position % strip;
  for (std::ptrdiff_t i = 0; i < size; ++i) to[i * strip] = row[i];
}

void write_matrix(const ScaledConstraints& constraints, std::span<const std::ptrdiff_t> J,
                  const ConstMatrixView* D, MatrixView out, ThreadPool* pool) {
  if (J.empty()) return;
  static thread_local ListWorkspace list_space;
  ListWorkspace& list = list_space;
  const ConstMatrixView left = constraints.left(), right = constraints.right();
  const auto count = static_cast<std::ptrdiff_t>(J.size());
  list.begin.clear();
  list.groups.clear();
  list.blocks.resize(static_cast<std::size_t>(strips(count) * strip));
  list.left.resize(static_cast<std::size_t>(strips(count) * strip * left.cols));
  for (std::ptrdiff_t i = 0; i < count; ++i) {
    const std::ptrdiff_t k = J[static_cast<std::size_t>(i)], g = constraints.group_of(k);
    if (list.groups.empty() || list.groups.back() != g) {
      list.begin.push_back(i);
      list.groups.push_back(g);
    }
    list.blocks[static_cast<std::size_t>(i)] = static_cast<std::ptrdiff_t>(list.groups.size()) - 1;
    pack(left.data + k * left.stride, left.cols, i, list.left);
  }
  list.begin.push_back(count);
  // The lanes after the last are zero, and so is what they write into the padding of `out`.
  std::fill(list.blocks.begin() + count, list.blocks.end(), list.blocks[static_cast<std::size_t>(count) - 1]);
  for (std::ptrdiff_t i = count; i < strips(count) * strip; ++i)
    for (std::ptrdiff_t c = 0; c < left.cols; ++c)
      list.left[static_cast<std::size_t>((i / strip * left.cols + c) * strip + i % strip)] = 0;
  const auto blocks = static_cast<std::ptrdiff_t>(list.groups.size());
  list.right.resize(static_cast<std::size_t>(strips(blocks) * strip * right.cols));
  for (std::ptrdiff_t b = 0; b < strips(blocks) * strip; ++b)
    pack(right.data + list.groups[static_cast<std::size_t>(std::min(b, blocks - 1))] * right.stride,
         right.cols, b, list.right);

  const kernels::NormalTask task{
      .left = left.data,
      .left_stride = left.stride,
      .list = J.data(),
      .begin = list.begin.data(),
      .weights = D ? D->data : nullptr,
      .weights_stride = D ? D->stride : 0,
      .rows = left.cols,
      .cols = right.cols,
      .left_strips = list.left.data(),
      .right_strips = list.right.data(),
      .blocks = list.blocks.data(),
      .out = out.data,
      .out_stride = out.stride,
      .out_cols = padded(count),
  };
  const auto& kernel = constraint_kernels();
  const auto rows_of = [&](std::ptrdiff_t b) {
    static thread_local RowWorkspace row_space;
    // A vector may be read from any block on, so the last ones are followed by room for another.
    const std::ptrdiff_t pairs_stride = (strips(blocks) + 1) * strip, height = D ? left.cols : 1;
    const auto grow = [](AlignedVector& v, std::ptrdiff_t size) {
      if (v.size() < static_cast<std::size_t>(size)) v.resize(static_cast<std::size_t>(size));
    };
    grow(row_space.weighted, left.cols * right.stride);
    grow(row_space.pairs, height * pairs_stride);
    grow(row_space.strip, left.cols * strip);
    kernel.normal_rows(
        task, right.data + list.groups[static_cast<std::size_t>(b)] * right.stride,
        {row_space.weighted.data(), row_space.pairs.data(), pairs_stride, row_space.strip.data()}, b);
  };
  // Later blocks have longer rows: begin with them.
  if (pool && count * count * left.cols > 1000000)
    pool->run(blocks, [&](std::ptrdiff_t c) { rows_of(blocks - 1 - c); });
  else
    for (std::ptrdiff_t b = 0; b < blocks; ++b) rows_of(b);
}

}  // namespace

void normal_matrix(const ScaledConstraints& constraints, std::span<const std::ptrdiff_t> J, ConstMatrixView D,
                   MatrixView out, ThreadPool* pool) {
  write_matrix(constraints, J, &D, out, pool);
}

void normal_matrix_identity(const ScaledConstraints& constraints, std::span<const std::ptrdiff_t> J,
                            MatrixView out, ThreadPool* pool) {
  write_matrix(constraints, J, nullptr, out, pool);
}

}  // namespace attmirror
