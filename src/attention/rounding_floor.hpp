// Gradients that are zero to rounding. Internal.
//
// Terms of a gradient may cancel: two queries on one sequence with the labels +1 and -1 and a linear loss have the
// gradient 0. Added up in floating point, something of the order of 1e-17 is left, in one order of the sum and not in
// another; a normalized step would make a direction of it. The rule: a sum of k terms is known to k 2^-53 times the sum
// of their absolute values, so a block all of whose entries are within twice that is 0.
//
//   |g_i| <= 2^-52 (N + T + d) sum |terms of g_i|      for all i
//
// The terms are those of the safe form (attention_steps.hpp), each with the absolute value of each of its factors and
// summands. Finding them costs more than the gradient did; so first each block is held against a bound for all of them
// that depends on the sizes of the data alone, which almost every gradient exceeds in its first entries. There is such
// a bound, and the rule, for W and p with a fixed v; K, Q and a v that is trained may be of any size.
#pragma once

#include <attmirror/attention/attention.hpp>
#include <attmirror/attention/gradient.hpp>

#include <cstddef>
#include <span>

namespace attmirror {

class RoundingFloor {
 public:
  explicit RoundingFloor(const Attention& model);  // which must outlive it

  // Whether a block is above what rounding could leave, or 0 anyway: then there is nothing to ask. `numbers`, `stride`
  // apart, are those of the block; its terms are of the order of `headroom`.
  bool is_clear(std::span<const double> numbers, double headroom, std::size_t stride = 1) const {
    const double most = headroom * bound_;
    bool any = false;
    for (std::size_t i = 0; i < numbers.size(); i += stride) {
      // NaN and infinities are handled elsewhere.
      if (!(numbers[i] <= most && numbers[i] >= -most)) return true;
      any = any || numbers[i] != 0;
    }
    return !any;
  }

  // The rule itself, for block b of the gradient at `parameters`.
  bool is_zero(const ParameterBlocks& parameters, const Gradient& gradient, std::ptrdiff_t b) const;

 private:
  const Attention* model_;
  double unit_ = 0;  // 2^-52 (N + T + d)
  double bound_ =
      -1;  // that times the largest sum of terms that the data allow, by the headroom; -1: no rule
};

}  // namespace attmirror
