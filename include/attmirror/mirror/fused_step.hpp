// One optimizer step over all tensors of a network, on raw pointers: the function that an optimizer calls.
//
//   d = g / gradient_scale (maximize: -g / gradient_scale)
//   m <- momentum m + d,   d <- m   (nesterov: d <- d + momentum m)
//   d <- d / ||d||_q of each tensor, where `normalized`; q = p/(p-1)
//
//   mirror     y <- (1 - rate weight_decay)^{p-1} y - rate d,   y = sign(w) |w|^{p-1},   w = sign(y) |y|^{1/(p-1)}
//   steepest   w <- (1 - rate weight_decay) w - rate sign(d) (|d| / ||d||_q)^{1/(p-1)}
//   sign       w <- (1 - rate weight_decay) w - rate sign(d)
//
// The decay of the mirror step is AdamW's, w <- (1 - rate weight_decay) w, seen from the mirror image.
// Numbers are stored as float, bfloat16, half or double; arithmetic is in float (double for double). An entry
// with d = 0 is left alone, to the bit, unless it decays.
//
// Each step reads and writes every number once (the gradient twice if a norm is needed or gradients are
// checked), and the arithmetic hides behind the memory traffic. p = 2, 3, 3/2 and 1.1 use roots and products,
// other p general powers.
#pragma once

#include <attmirror/base/thread_pool.hpp>

#include <cstddef>
#include <span>
#include <string_view>

namespace attmirror {

// The number types of weights and gradients.
enum class StepElement { float32, bfloat16, float16, float64 };
std::string_view to_string(StepElement element);
std::size_t size_of(StepElement element);  // bytes

// How a direction becomes a step.
enum class StepRule { mirror, steepest, sign };
std::string_view to_string(StepRule rule);

// How numbers are computed. `exact` does not round before the end: within 1 ulp of the correctly rounded
// result for every p and input, at one to two microseconds per number. (What is computed once per step - the
// norm ||d||_q, 1/gradient_scale and what decay leaves - is a double in either mode and is taken as given.)
// It exists to check `fast`, and for when you must know. `fast` in floats covers p from 1.0079 to 17, and up
// to 129 if p is a multiple of 1/64; beyond that it is `exact`.
enum class StepArithmetic { fast, exact };
std::string_view to_string(StepArithmetic arithmetic);

// One parameter tensor: arrays of `size` numbers, any alignment. They must not overlap.
struct StepTensor {
  void* weights = nullptr;
  const void* gradient = nullptr;  // of the same type as the weights
  // Optional: what the step continues from instead of the weights, in float (double for double weights). For
  // the mirror rule this is the mirror image y, otherwise w. Weights with 8 or 11 bits cannot take small
  // steps (and at p = 1.1 no float between 1e-45 and 0 is left of a y of 3e-5); their master can.
  void* master = nullptr;
  // If momentum > 0: the running sum m, in float (double for double weights), initially zeros.
  void* momentum = nullptr;
  std::ptrdiff_t size = 0;
};

// The settings of one step, for all tensors.
struct StepOptions {
  StepRule rule = StepRule::mirror;
  double p = 2;  // of the norm; not used by `sign`
  double rate = 0;
  double momentum = 0;
  bool nesterov = false;
  double weight_decay = 0;
  bool normalized = false;      // mirror rule only; steepest directions always are
  double gradient_scale = 1;    // gradients are those of the loss times this
  bool maximize = false;        // step up the gradient: d = -g
  bool skip_nonfinite = false;  // do nothing if a gradient anywhere is infinite or NaN
  StepArithmetic arithmetic = StepArithmetic::fast;

  // Throws Error (bad input) naming the field and its value.
  void validate() const;
};

// What became of a step.
struct StepReport {
  bool skipped = false;                  // a gradient was not finite, and skip_nonfinite is set
  std::ptrdiff_t nonfinite_tensor = -1;  // the first such tensor
};

// The same bits for any number of threads. Throws Error (bad input) for unusable options, a missing pointer (named by
// the tensor's index) or a negative size, before anything is written. Without a pool it runs on the calling thread.
StepReport fused_step(StepElement element, std::span<const StepTensor> tensors, const StepOptions& options,
                      ThreadPool* pool = nullptr);

// A step in two calls, for tensors whose parts are stored in different places: each holder measures its part,
// the holders combine their norms, ||d||_q = (sum of ||part||_q^q)^{1/q}, and each steps its part by the norm
// of the whole. With the norms of one call, the other gives the bits of fused_step().
//
// measure_step() writes ||d||_q of each tensor, after momentum, to `norms`, and changes nothing else; a norm is
// infinite or NaN if an entry of d is. step_with_norms() is fused_step() with those norms instead of its own: 0
// takes no step, and skip_nonfinite skips everything if a norm is not finite. Both throw Error (bad input) like
// fused_step(), and if the rule uses no norms, if their number does not match the tensors, or if one is negative.
void measure_step(StepElement element, std::span<const StepTensor> tensors, const StepOptions& options,
                  std::span<double> norms, ThreadPool* pool = nullptr);
StepReport step_with_norms(StepElement element, std::span<const StepTensor> tensors,
                           const StepOptions& options, std::span<const double> norms,
                           ThreadPool* pool = nullptr);

// The masters of weights: y = sign(w) |w|^{p-1} for the mirror rule, w itself otherwise, for the tensors'
// `master`; gradient and momentum are not used.
void fill_masters(StepElement element, std::span<const StepTensor> tensors, const StepOptions& options,
                  ThreadPool* pool = nullptr);

}  // namespace attmirror
