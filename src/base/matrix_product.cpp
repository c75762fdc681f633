// The classical scheme of blocks: 512 terms of all sums at a time. Of these, the rows of A and the columns of B are
// copied into the order in which the tiles read them, and blocks of 96 x 64 entries of C are dealt to the threads:
// what a block reads (400 and 260 kB) stays in a core's own cache, the rows of A for the next block, too.
#include "base/matrix_product.hpp"

#include "base/dispatch.hpp"
#include "base/matrix_product_kernels.hpp"
#include "base/share_chunks.hpp"

#include <algorithm>

namespace attmirror {

namespace {

using namespace kernels;

constexpr std::ptrdiff_t block_groups = 12, block_strips = 4;
// Below this many multiplications a thread costs more than it brings.
constexpr std::ptrdiff_t worth_sharing = 1 << 16;

const ProductTable& product_kernels() {
  return choose_kernels<isa_sse2::product_table, isa_avx2::product_table, isa_avx512::product_table>();
}

std::ptrdiff_t divide_up(std::ptrdiff_t a, std::ptrdiff_t b) { return (a + b - 1) / b; }

// Calls f(first row, rows, panel) for pieces of a matrix that are worth a thread.
template <class F>
void for_pieces(std::ptrdiff_t rows, std::ptrdiff_t panels, std::ptrdiff_t width, ThreadPool& pool, F&& f) {
  const Chunking parts = fixed_chunks(rows, std::max<std::ptrdiff_t>(1, worth_sharing / width), 8);
  share(rows * panels * width < worth_sharing ? nullptr : &pool, parts.count * panels, [&](std::ptrdiff_t c) {
    const std::ptrdiff_t part = c / panels;
    f(parts.begin(part), parts.end(part), c % panels);
  });
}

}  // namespace

PanelMatrix::PanelMatrix(std::ptrdiff_t rows, std::ptrdiff_t cols)
    : rows_(rows), cols_(cols), width_(std::min(panel_width, divide_up(cols, 16) * 16)) {
  if (width_ == 0) width_ = 16;
  values_.assign(static_cast<std::size_t>(rows * width_ * divide_up(cols, width_)), 0.0);
}

void copy(ConstMatrixView from, Panels<double> to, ThreadPool& pool) {
  for_pieces(to.rows, to.count(), to.width, pool,
             [&](std::ptrdiff_t begin, std::ptrdiff_t end, std::ptrdiff_t p) {
               const std::ptrdiff_t first = p * to.width, cols = std::min(to.width, to.cols - first);
               for (std::ptrdiff_t r = begin; r < end; ++r)
                 std::copy_n(from.data + r * from.stride + first, cols, to.panel(p) + r * to.stride);
             });
}

void copy(Panels<const double> from, MatrixView to, ThreadPool& pool) {
  for_pieces(to.rows, from.count(), from.width, pool,
             [&](std::ptrdiff_t begin, std::ptrdiff_t end, std::ptrdiff_t p) {
               const std::ptrdiff_t first = p * from.width, cols = std::min(from.width, from.cols - first);
               for (std::ptrdiff_t r = begin; r < end; ++r)
                 std::copy_n(from.panel(p) + r * from.stride, cols, to.data + r * to.stride + first);
             });
}

void MatrixProduct::reserve(std::ptrdiff_t rows, std::ptrdiff_t cols) {
  const auto grow = [](AlignedVector& memory, std::ptrdiff_t size) {
    if (static_cast<std::ptrdiff_t>(memory.size()) < size) memory.assign(static_cast<std::size_t>(size), 0.0);
  };
  grow(rows_, divide_up(rows, product_rows) * product_rows * product_depth);
  grow(strips_, divide_up(cols, product_strip) * product_strip * product_depth);
}

void MatrixProduct::multiply(ConstMatrixView A, Panels<const double> B, Panels<double> C) {
  run(A, Side::plain, B, C);
}

void MatrixProduct::multiply_transposed(ConstMatrixView A, Panels<const double> B, Panels<double> C) {
  run(A, Side::transposed, B, C);
}

void MatrixProduct::run(ConstMatrixView A, Side side, Panels<const double> B, Panels<double> C) {
  reserve(C.rows, C.cols);
  const ProductTable& kernel = product_kernels();
  const std::ptrdiff_t row_step = side == Side::plain ? A.stride : 1,
                       col_step = side == Side::plain ? 1 : A.stride;
  const std::ptrdiff_t groups = divide_up(C.rows, product_rows), strips = divide_up(C.cols, product_strip);
  ThreadPool* const pool = C.rows * C.cols * B.rows < worth_sharing ? nullptr : pool_;

  // A block of C lies within one panel.
  const std::ptrdiff_t strips_per_block = std::min(block_strips, C.width / product_strip);
  const std::ptrdiff_t blocks_down = divide_up(groups, block_groups),
                       blocks_across = divide_up(strips, strips_per_block);
  for (std::ptrdiff_t k = 0; k < std::max<std::ptrdiff_t>(B.rows, 1); k += product_depth) {
    const std::ptrdiff_t depth = std::min(product_depth, B.rows - k);
    const std::ptrdiff_t row_packs = divide_up(groups, block_groups),
                         strip_packs = divide_up(strips, block_strips);
    share(pool, row_packs + strip_packs, [&](std::ptrdiff_t c) {
      if (c < row_packs) {
        for (std::ptrdiff_t g = c * block_groups; g < std::min(groups, (c + 1) * block_groups); ++g) {
          const std::ptrdiff_t row = g * product_rows;
          kernel.pack_rows({A.data + row * row_step + k * col_step, row_step, col_step,
                            std::min(product_rows, C.rows - row), depth},
                           rows_.data() + row * depth);
        }
        return;
      }
      c -= row_packs;
      for (std::ptrdiff_t s = c * block_strips; s < std::min(strips, (c + 1) * block_strips); ++s) {
        const std::ptrdiff_t col = s * product_strip;
        kernel.pack_strip(B.place(k, col), B.stride, B.cols - col, depth, strips_.data() + col * depth);
      }
    });
    share(pool, blocks_down * blocks_across, [&](std::ptrdiff_t c) {
      const std::ptrdiff_t g = c / blocks_across * block_groups, s = c % blocks_across * strips_per_block;
      const std::ptrdiff_t row = g * product_rows, col = s * product_strip;
      kernel.multiply({.rows = rows_.data() + row * depth,
                       .strips = strips_.data() + col * depth,
                       .groups = std::min(block_groups, groups - g),
                       .strip_count = std::min(strips_per_block, strips - s),
                       .depth = depth,
                       .C = C.place(row, col),
                       .stride = C.stride,
                       .height = C.rows - row,
                       .width = C.cols - col,
                       .starts = k == 0});
    });
  }
}

}  // namespace attmirror
