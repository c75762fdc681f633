// The boundary between the lanes and their kernels, which are compiled once per instruction set and once per width:
// plain structs and tables of functions.
//
// Every array here has one number per lane where the single run has one number: entry e of all lanes lies at array +
// e * width. Blocks of parameters have the flat, padded layout of ParameterBlocks (the order of a norm's sum depends
// on it); the padding is 0 and nobody touches it. All other arrays are dense: what lies behind a row of a single run
// is exact zeros, which change no sum.
#pragma once

#include "attention/block_kernels.hpp"
#include "mirror/power_kernels.hpp"

#include <cstddef>

namespace attmirror::kernels {

// What stays the same during the runs.
struct LaneProblem {
  LogitForm form = LogitForm::W;
  LossForm loss = LossForm::logistic;
  HeadForm head = HeadForm::linear;
  JacobianForm jacobian = JacobianForm::safe;
  std::ptrdiff_t samples = 0, length = 0;    // n sequences with one query each, T tokens in each
  std::ptrdiff_t dim = 0, stride = 0;        // d and the row length of a block with d columns
  std::ptrdiff_t rank = 0, rank_stride = 0;  // m of (K,Q)
  std::ptrdiff_t head_rows = 0;              // of the ReLU head
  double logit_scale = 1;
  double lambda = 0;                     // of the quadratic head
  const double* tokens = nullptr;        // (n, T, d)
  const double* queries = nullptr;       // (n, d)
  const double* labels = nullptr;        // (n)
  const double* scores = nullptr;        // (n, T), with a linear head and a fixed v; else null
  const double* head_weights = nullptr;  // (head_rows, d), V^T of the ReLU head
  const double* key_weights = nullptr;   // (d, d), A of a prompt; null: the identity
};

// Where the loss is evaluated. W and K are transposed.
struct LanePoint {
  const double *W = nullptr, *K = nullptr, *Q = nullptr, *p = nullptr, *v = nullptr;
};

// Where the gradients go; null: nobody wants it. As in Sums, the gradient is the stored numbers times e^log_scale.
struct LaneSums {
  double *W = nullptr, *K = nullptr, *Q = nullptr, *p = nullptr, *v = nullptr;
  double *log_scale = nullptr, *log_scale_v = nullptr;  // one entry each, as the next two
  double *loss = nullptr, *max_softmax = nullptr;       // means over the queries
  // |g|^{3/2} of each entry of W's gradient, the terms of its norm for p = 3: square roots keep a unit of their own
  // busy, and take little time beside the products. Null: nobody wants them.
  double* W_terms = nullptr;
};

struct LaneScratch {
  double *u = nullptr, *r = nullptr;                      // (n, d); r may be where u is
  double *low = nullptr, *low_r = nullptr;                // (n, m): Q^T z and K^T r
  double *direction = nullptr, *direction_sum = nullptr;  // (d): of a prompt
  double *attended = nullptr, *head_gradient = nullptr;   // (n, d): nonlinear heads
  double *logits = nullptr, *exps = nullptr;  // (n, T), as the next; coefficients may be where logits are
  double *scores = nullptr, *coefficients = nullptr;
  double *reference = nullptr, *gap = nullptr, *sum = nullptr, *delta = nullptr;  // (n), as the next
  double *margin = nullptr, *log_slope = nullptr, *weight = nullptr, *head = nullptr;
};

// A block of parameters: rows of `cols` entries, `stride` apart.
struct LaneShape {
  std::ptrdiff_t rows = 0, cols = 0, stride = 0;
};

struct LanePowerKernels {
  // out = sum |scale x|^r. `scale` and `out` have one entry; `scale` null is 1. `terms` is as large as x, with zeros in
  // the padding.
  void (*sum_power)(const double* x, const LaneShape& shape, const double* scale, Exponent r, double* terms,
                    double* out);
  // y <- y - scale g, w = sign(y) |y|^r
  void (*mirror_step)(const double* g, const double* scale, double* y, double* w, const LaneShape& shape,
                      Exponent r);
};

// The kernels for one width.
struct LaneKernels {
  std::ptrdiff_t width = 0;
  void (*evaluate)(const LaneProblem&, const LanePoint&, const LaneScratch&, const LaneSums&);
  void (*max_abs)(const double* x, const LaneShape& shape, double* out);     // NaN if there is one
  void (*roots)(const double* sums, double inverse, double* out);            // sum^inverse, one entry
  void (*add_up)(const double* terms, const LaneShape& shape, double* out);  // in the order of sum_power()
  // g <- keep g + add w, rounded twice; `keep` and `add` have one entry.
  void (*add_multiple)(const double* keep, double* g, const double* add, const double* w,
                       const LaneShape& shape);
  const LanePowerKernels* powers;  // by Power
};

inline constexpr int lane_widths = 4;  // 1, 2, 4, 8; those that the set lacks have width 0
struct LaneTable {
  LaneKernels kernels[lane_widths];
};

}  // namespace attmirror::kernels

namespace attmirror {
namespace isa_sse2 {
extern const kernels::LaneTable lane_table;
}
namespace isa_avx2 {
extern const kernels::LaneTable lane_table;
}
namespace isa_avx512 {
extern const kernels::LaneTable lane_table;
}
}  // namespace attmirror
