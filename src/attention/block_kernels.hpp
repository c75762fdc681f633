// The boundary between the training step and its kernels: plain structs, because block_kernels.cpp is
// compiled once per instruction set and may share no inline code with the rest of the library.
//
// A block is a run of consecutive sequences whose tokens fit in the cache together. For each block the kernel
//   1. forms the directions u_i that the tokens are compared with   (a_i = X_i u_i; u_i = W z_i for W),
//   2. computes logits, softmax, loss and the coefficients g_i = dL/da_i,
//   3. contracts r_i = X_i^T g_i and adds the block's share to the gradient of each wanted parameter.
// So the tokens are read from memory once.
#pragma once

#include <cstddef>

namespace attmirror::kernels {

enum class LogitForm { W, KQ, prompt };
enum class LossForm { logistic, exponential, linear };
enum class JacobianForm { safe, textbook };

// Scores and logits of a sequence are padded to whole vectors of eight.
constexpr std::ptrdiff_t padded_tokens(std::ptrdiff_t tokens) { return (tokens + 7) / 8 * 8; }

// What stays the same during a run.
struct Problem {
  LogitForm form = LogitForm::W;
  LossForm loss = LossForm::logistic;
  JacobianForm jacobian = JacobianForm::safe;
  std::ptrdiff_t samples = 0;
  std::ptrdiff_t dim = 0, stride = 0;        // d and the padded length of a row
  std::ptrdiff_t rank = 0, rank_stride = 0;  // m of (K,Q)
  const double* tokens = nullptr;            // all tokens, one after the other
  const double* queries = nullptr;           // z_i
  const double* labels = nullptr;
  const std::ptrdiff_t* token_rows = nullptr;    // first token of each sequence, samples + 1 entries
  const std::ptrdiff_t* score_places = nullptr;  // the same in the padded layout of scores
  const double* scores = nullptr;                // gamma_it = Y_i v^T x_it when v is fixed, else null
};

// Where the loss is evaluated. W and K are transposed; `direction` is the prompt's common u.
struct Point {
  const double *W = nullptr, *K = nullptr, *Q = nullptr, *direction = nullptr, *v = nullptr;
};

// Sums over the sequences of a chunk. Null pointers are gradients that nobody wants. The gradients of the
// attention parameters are the stored numbers times e^log_scale, that of v times e^log_scale_v: normalised
// descent only needs the direction, which survives long after the numbers themselves would underflow.
struct Sums {
  double *W = nullptr, *K = nullptr, *Q = nullptr, *direction = nullptr, *v = nullptr;
  double log_scale = 0, log_scale_v = 0;
  double loss = 0, max_softmax = 0;
};

// Memory of one worker, sized for the largest block: per sequence, then per token (padded).
struct Scratch {
  double *u = nullptr, *r = nullptr;        // (sequences, stride)
  double *low = nullptr, *low_r = nullptr;  // (sequences, rank_stride): Q^T z and K^T r
  double* per_sequence[10] = {};            // (sequences) each, see block_kernels.cpp
  double *logits = nullptr, *exps = nullptr, *scores = nullptr, *coefficients = nullptr;  // per token
};

struct AttentionKernels {
  // Adds the share of the sequences first..last-1 to `sums`.
  void (*evaluate_block)(const Problem&, const Point&, const Scratch&, Sums& sums, std::ptrdiff_t first,
                         std::ptrdiff_t last);
};

}  // namespace attmirror::kernels

namespace attmirror {
namespace isa_sse2 {
extern const kernels::AttentionKernels attention_kernels;
}
namespace isa_avx2 {
extern const kernels::AttentionKernels attention_kernels;
}
namespace isa_avx512 {
extern const kernels::AttentionKernels attention_kernels;
}
}  // namespace attmirror
