// The boundary of the kernels on rank-one constraints a_k z_g^T, compiled once per instruction set: operators and
// normal matrices. Rows are padded (base/aligned.hpp); strips hold 16 rows side by side (base/strip_tiles.hpp).
#pragma once

#include <cstddef>

namespace attmirror::kernels {

constexpr std::ptrdiff_t constraint_strip = 16;

// margins_k = a_k . (W z_g) for the constraints of some groups.
struct ForwardTask {
  const double* left;  // a_k
  std::ptrdiff_t left_stride;
  const double* right;  // z_g
  std::ptrdiff_t right_stride;
  const double* transposed;  // W^T: cols rows of left_stride numbers
  std::ptrdiff_t cols;
  const std::ptrdiff_t* offsets;  // group g holds constraints offsets[g] to offsets[g + 1] - 1
  double* products;               // row g: W z_g, of left_stride numbers
  double* margins;
};

// out = sum_g (sum_k lambda_k a_k) z_g^T
struct AdjointTask {
  const double* left;
  std::ptrdiff_t left_stride;
  const double* right;
  std::ptrdiff_t right_stride;
  const std::ptrdiff_t* offsets;
  const double* lambda;
  double* sums;  // row g: sum_k lambda_k a_k, of left_stride numbers
  std::ptrdiff_t groups, rows;
  double* out;  // rows x right_stride
  std::ptrdiff_t out_stride;
};

// Some of the constraints, listed by groups: block b holds those of one group, list positions begin[b] to begin[b +
// 1] - 1.
struct NormalTask {
  const double* left;
  std::ptrdiff_t left_stride;
  const std::ptrdiff_t* list;   // of constraints
  const std::ptrdiff_t* begin;  // of blocks
  const double* weights;        // D, rows x cols; null: all ones
  std::ptrdiff_t weights_stride, rows, cols;
  const double* left_strips;     // the a's of the list
  const double* right_strips;    // the z's of the blocks
  const std::ptrdiff_t* blocks;  // of each list position, filled up to whole strips with the last one
  double* out;
  std::ptrdiff_t out_stride;
  std::ptrdiff_t out_cols;  // a multiple of four that fits into out_stride; columns up to this may be written
};

// Memory that the rows of one block need for a while.
struct NormalScratch {
  double* weighted;  // D diag(z), rows x padded cols
  double* pairs;     // h for each block up to this one: rows x pairs_stride; one row where D is all ones
  std::ptrdiff_t pairs_stride;
  double* strip;  // one strip of products
};

struct ConstraintTable {
  void (*forward)(const ForwardTask& task, std::ptrdiff_t group_begin, std::ptrdiff_t group_end);
  void (*adjoint_sums)(const AdjointTask& task, std::ptrdiff_t group_begin, std::ptrdiff_t group_end);
  // Rows of `out`; row_begin is a multiple of eight.
  void (*adjoint_rows)(const AdjointTask& task, std::ptrdiff_t row_begin, std::ptrdiff_t row_end);
  // The rows of block b of the normal matrix, up to its diagonal.
  void (*normal_rows)(const NormalTask& task, const double* z, const NormalScratch& scratch,
                      std::ptrdiff_t b);
};

}  // namespace attmirror::kernels

namespace attmirror {
namespace isa_sse2 {
extern const kernels::ConstraintTable constraint_table;
}
namespace isa_avx2 {
extern const kernels::ConstraintTable constraint_table;
}
namespace isa_avx512 {
extern const kernels::ConstraintTable constraint_table;
}
}  // namespace attmirror
