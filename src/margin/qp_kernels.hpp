// The boundary of the kernels that go over a symmetric matrix of which only the lower triangle is there, compiled
// once per instruction set. Each row is read once: what it says of the column is added to the entries before.
#pragma once

#include <cstddef>

namespace attmirror::kernels {

constexpr std::ptrdiff_t qp_strip = 16;  // right-hand sides that are solved for together, side by side

struct SymmetricMatrix {
  const double* rows;  // of `stride` numbers; the lower triangle counts
  std::ptrdiff_t stride;
  std::ptrdiff_t size;
};

// One sweep of Gauss-Seidel on M x = b, projected to x >= 0 where x is not free.
struct SweepTask {
  const double* b;
  const unsigned char* is_free;
  unsigned char* is_idle;  // nonzero: x_k = 0 is left alone
  double idle_from;        // (M x - b)_k from which k becomes idle
  double* x;
  const double* right;  // sum_{l > k} M_kl x_l, from the sweep before
  double* next;         // the same after this one
};

struct QpTable {
  // out <- M x
  void (*product)(const SymmetricMatrix& M, const double* x, double* out);
  void (*sweep)(const SymmetricMatrix& M, const SweepTask& task);
  // x <- L^-1 x for the columns of a strip.
  void (*solve_strip)(const double* factor, std::ptrdiff_t stride, std::ptrdiff_t size, double* x);
  // out_hl <- sum_k a_kh b_kl over the rows of two strips, out of 16 rows.
  void (*strip_products)(const double* a, const double* b, std::ptrdiff_t depth, double* out,
                         std::ptrdiff_t stride);
};

}  // namespace attmirror::kernels

namespace attmirror {
namespace isa_sse2 {
extern const kernels::QpTable qp_table;
}
namespace isa_avx2 {
extern const kernels::QpTable qp_table;
}
namespace isa_avx512 {
extern const kernels::QpTable qp_table;
}
}  // namespace attmirror
