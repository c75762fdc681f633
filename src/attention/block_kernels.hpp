// The boundary between the training step and its kernels: plain structs, because the kernels are compiled once
// per instruction set and may share no inline code with the rest of the library.
//
// The unit of work is a query: it attends to a run of consecutive tokens (those of its sequence, or the first of
// them under a causal mask). A block is a run of consecutive queries whose tokens fit in the cache together. For
// each block the kernel
//   1. forms the directions u_j that the tokens are compared with   (a_j = X u_j; u_j = W z_j for W),
//   2. computes logits, softmax, head, loss and the coefficients g_j = dL/da_j,
//   3. contracts r_j = X^T g_j and adds the block's share to the gradient of each wanted parameter.
// So the tokens are read from memory once.
#pragma once

#include <cstddef>
#include <cstdint>

namespace attmirror::kernels {

enum class LogitForm { W, KQ, prompt };
enum class LossForm { logistic, exponential, linear, sigmoid, custom };
enum class HeadForm { linear, relu, quadratic, custom };
enum class JacobianForm { safe, textbook };

// Scores and logits of a query are padded to whole vectors of eight.
constexpr std::ptrdiff_t padded_tokens(std::ptrdiff_t tokens) { return (tokens + 7) / 8 * 8; }

// A loss or a head of the user's own. `object` is theirs; the functions treat `count` queries at a time.
struct CustomLossCall {
  const void* object = nullptr;
  // ell and log|ell'| of each margin.
  void (*evaluate)(const void* object, const double* margins, std::ptrdiff_t count, double* loss,
                   double* log_slope) = nullptr;
};
struct CustomHeadCall {
  const void* object = nullptr;
  // h and grad h of each row of u (rows are `stride` apart).
  void (*evaluate)(const void* object, const double* u, std::ptrdiff_t stride, std::ptrdiff_t count,
                   double* values, double* gradients) = nullptr;
};

// What stays the same during a run.
struct Problem {
  LogitForm form = LogitForm::W;
  LossForm loss = LossForm::logistic;
  HeadForm head = HeadForm::linear;
  JacobianForm jacobian = JacobianForm::safe;
  std::ptrdiff_t outputs = 0;                // queries, each with a prediction and a label
  std::ptrdiff_t dim = 0, stride = 0;        // d and the padded length of a row
  std::ptrdiff_t rank = 0, rank_stride = 0;  // m of (K,Q)
  double logit_scale = 1;                    // of W and (K,Q); a prompt's is in its direction
  const double* tokens = nullptr;            // all tokens, one after the other
  const float* float_tokens = nullptr;       // or these, where they are stored in single precision
  const double* queries = nullptr;           // z_j
  const double* labels = nullptr;
  const std::ptrdiff_t* token_rows = nullptr;  // first token of each query
  const std::ptrdiff_t* lengths = nullptr;     // how many it attends to
  const std::ptrdiff_t* score_places =
      nullptr;                         // the queries in the padded layout of scores, outputs + 1 entries
  const std::uint8_t* mask = nullptr;  // in that layout, 0 where a token is forbidden; null: none is

  // With a linear head and a fixed v. One query per sequence: gamma_jt = Y_j v^T x_t in the layout of score_places.
  // Several: v^T x_t of the tokens of each sequence, those of query j from token_score_places[j] on.
  const double* scores = nullptr;
  const double* token_scores = nullptr;
  const std::ptrdiff_t* token_score_places = nullptr;

  const double* head_weights = nullptr;  // V^T (head_rows, stride) of the ReLU head
  std::ptrdiff_t head_rows = 0;
  double lambda = 0;  // of the quadratic head
  CustomHeadCall custom_head{};
  CustomLossCall custom_loss{};
};

// Where the loss is evaluated. W and K are transposed; `direction` is the prompt's common u.
struct Point {
  const double *W = nullptr, *K = nullptr, *Q = nullptr, *direction = nullptr, *v = nullptr;
};

// Sums over the queries of a chunk. Null pointers are gradients that nobody wants. The gradients of the
// attention parameters are the stored numbers times e^log_scale, that of v times e^log_scale_v: normalised
// descent only needs the direction, which survives long after the numbers themselves would underflow.
struct Sums {
  double *W = nullptr, *K = nullptr, *Q = nullptr, *direction = nullptr, *v = nullptr;
  double log_scale = 0, log_scale_v = 0;
  // The largest exponent of a query so far (safe form): the terms of the attention's sums are of the order of
  // e^{largest - log_scale}.
  double largest = 0;
  double loss = 0, max_softmax = 0;
};

// Memory of one worker, sized for the largest block: per query, then per token (padded).
inline constexpr int per_query_arrays = 11;
struct Scratch {
  double *u = nullptr, *r = nullptr;        // (queries, stride)
  double *low = nullptr, *low_r = nullptr;  // (queries, rank_stride): Q^T z and K^T r
  double *attended = nullptr,
         *head_gradient = nullptr;           // (queries, stride): X^T s and grad h there; nonlinear heads
  double* per_query[per_query_arrays] = {};  // (queries) each, see attention_steps.hpp
  double *logits = nullptr, *exps = nullptr, *scores = nullptr, *coefficients = nullptr;  // per token
};

// Adds the share of the queries first..last-1 to `sums`.
using EvaluateQueries = void (*)(const Problem&, const Point&, const Scratch&, Sums& sums,
                                 std::ptrdiff_t first, std::ptrdiff_t last);

struct AttentionKernels {
  EvaluateQueries evaluate;         // of Problem::tokens
  EvaluateQueries evaluate_floats;  // of Problem::float_tokens
};

// How many queries the stream kernels keep open at a time; they want scratch memory for eight more.
inline constexpr std::ptrdiff_t stream_batch = 16;

}  // namespace attmirror::kernels

// block_kernels take a block at a time, stream_kernels all queries of a chunk.
namespace attmirror {
namespace isa_sse2 {
extern const kernels::AttentionKernels block_kernels, stream_kernels;
}
namespace isa_avx2 {
extern const kernels::AttentionKernels block_kernels, stream_kernels;
}
namespace isa_avx512 {
extern const kernels::AttentionKernels block_kernels, stream_kernels;
}
}  // namespace attmirror
