// The boundary of the kernel of dual ascent by groups (group_ascent.cpp), compiled once per instruction set.
#pragma once

#include <cstddef>

namespace attmirror::kernels {

// max b^T lambda - 1/2 |B^T lambda|_D^2 over lambda >= 0 (free at equalities), with V = D o B^T lambda + a constant
// at hand: the gradient is b - B V.
struct AscentTask {
  const double* left;  // a_k
  std::ptrdiff_t left_stride;
  const double* right;  // z_g
  std::ptrdiff_t right_stride, cols;
  const std::ptrdiff_t* list;   // the constraints that take part
  const std::ptrdiff_t* begin;  // group g has list positions begin[g] to begin[g + 1] - 1
  const double* steps;          // of each list position: 1 / curvature
  const double* bounds;         // b_k
  const unsigned char* free;    // of constraints: nonzero where lambda_k may be negative
  const double* curvatures;     // row g: h_i = sum_j D_ij z_j^2, of left_stride numbers
  const double* weights;        // D^T, cols rows of left_stride numbers; null: all ones
  double* lambda;               // of constraints
  double* transposed;           // V^T, cols rows of left_stride numbers
  double* work;                 // 2 left_stride numbers
  int inner_sweeps;             // over the constraints of one group
};

struct AscentTable {
  // One pass over the groups. Returns the largest |b - B V| that was met at a constraint that could move.
  double (*sweep)(const AscentTask& task, std::ptrdiff_t groups);
  // curvatures[g] and, for each list position, sum_i a_i^2 h_i
  void (*curvatures)(const AscentTask& task, std::ptrdiff_t group_begin, std::ptrdiff_t group_end,
                     double* curvatures, double* diagonal);
};

}  // namespace attmirror::kernels

namespace attmirror {
namespace isa_sse2 {
extern const kernels::AscentTable ascent_table;
}
namespace isa_avx2 {
extern const kernels::AscentTable ascent_table;
}
namespace isa_avx512 {
extern const kernels::AscentTable ascent_table;
}
}  // namespace attmirror
