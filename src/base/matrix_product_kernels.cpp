// Blocks of a matrix product: tiles of a few rows times a strip of 16 columns stay in registers while k runs.
// Compiled once per instruction set.
#include "base/matrix_product_kernels.hpp"

#include "base/strip_tiles.hpp"

namespace attmirror::ATTMIRROR_ISA {

using namespace kernels;

namespace {

static_assert(strip == product_strip && product_rows % tile_rows == 0);

void pack_rows(const RowsToPack& from, double* to) {
  if (from.height == product_rows &&
      from.row_step == 1) {  // of a transposed matrix: eight numbers side by side
    for (std::ptrdiff_t k = 0; k < from.depth; ++k)
      for (std::ptrdiff_t h = 0; h < product_rows; h += lanes<Narrow>)
        store(to + k * product_rows + h, load<Narrow>(from.data + k * from.col_step + h));
    return;
  }
  for (std::ptrdiff_t k = 0; k < from.depth; ++k)
    for (std::ptrdiff_t h = 0; h < product_rows; ++h)
      to[k * product_rows + h] = h < from.height ? from.data[h * from.row_step + k * from.col_step] : 0.0;
}

void pack_columns(const double* from, std::ptrdiff_t stride, std::ptrdiff_t width, std::ptrdiff_t depth,
                  double* to) {
  if (width >= strip) {
    for (std::ptrdiff_t k = 0; k < depth; ++k)
      for (std::ptrdiff_t j = 0; j < strip; j += lanes<Wide>)
        store(to + k * strip + j, load<Wide>(from + k * stride + j));
    return;
  }
  for (std::ptrdiff_t k = 0; k < depth; ++k)
    for (std::ptrdiff_t j = 0; j < strip; ++j) to[k * strip + j] = j < width ? from[k * stride + j] : 0.0;
}

// One tile of C. Where C ends within it, it goes through memory of its own.
inline void multiply_tile(const double* rows, const double* columns, std::ptrdiff_t depth, double* C,
                          std::ptrdiff_t stride, std::ptrdiff_t height, std::ptrdiff_t width, bool starts) {
  Tile<Wide, tile_rows, tile_vectors> tile;
  alignas(64) double edge[tile_rows * tile_lanes];
  const bool whole = height >= tile_rows && width >= tile_lanes;
  if (height > tile_rows) height = tile_rows;
  if (width > tile_lanes) width = tile_lanes;
  if (starts) {
    tile.clear();
  } else if (whole) {
    tile.read(C, stride);
  } else {
    for (std::ptrdiff_t h = 0; h < tile_rows; ++h)
      for (std::ptrdiff_t j = 0; j < tile_lanes; ++j)
        edge[h * tile_lanes + j] = h < height && j < width ? C[h * stride + j] : 0.0;
    tile.read(edge, tile_lanes);
  }
  tile.add_products([=](int h, std::ptrdiff_t k) { return rows[k * product_rows + h]; }, columns, strip,
                    depth);
  if (whole) {
    tile.write(C, stride);
    return;
  }
  tile.write(edge, tile_lanes);
  for (std::ptrdiff_t h = 0; h < height; ++h)
    for (std::ptrdiff_t j = 0; j < width; ++j) C[h * stride + j] = edge[h * tile_lanes + j];
}

void multiply(const ProductBlock& block) {
  for (std::ptrdiff_t s = 0; s < block.strip_count; ++s)
    for (std::ptrdiff_t g = 0; g < block.groups; ++g) {
      if (!block.starts)  // the sums that the next tiles go on with
        for (std::ptrdiff_t row = (g + 1) * product_rows; row < (g + 2) * product_rows && row < block.height;
             ++row)
          for (std::ptrdiff_t j = 0; j < strip; j += 8)
            __builtin_prefetch(block.C + row * block.stride + s * strip + j, 1);
      for (std::ptrdiff_t h = 0; h < product_rows; h += tile_rows)
        for (std::ptrdiff_t lane = 0; lane < strip; lane += tile_lanes) {
          const std::ptrdiff_t row = g * product_rows + h, col = s * strip + lane;
          if (row >= block.height || col >= block.width) continue;
          multiply_tile(block.rows + g * block.depth * product_rows + h,
                        block.strips + s * block.depth * strip + lane, block.depth,
                        block.C + row * block.stride + col, block.stride, block.height - row,
                        block.width - col, block.starts);
        }
    }
}

}  // namespace

const ProductTable product_table{pack_rows, pack_columns, multiply};

}  // namespace attmirror::ATTMIRROR_ISA
