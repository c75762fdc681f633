// The losses on vectors, for the kernels that are compiled once per instruction set: those of a single run
// (attention_steps.hpp) and those of runs in lanes (sweep/lane_softmax.hpp). Each loss is a struct with three
// functions of the margins m, which V has one or several of:
//
//   exponential(m)      the exponential that the next function is made of, or 0 if it needs none. Kernels may form
//                       those of many margins first: an exponential and the logarithm that follows it are a long chain.
//   at(m, exponential)  ell(m) and log|ell'(m)|, which must be exact far beyond the point where ell' underflows
//   textbook_slope(m)   ell'(m) itself, for the textbook form of the gradient
//
// Where m is NaN, so are ell and ell': a diverged run is recognised by its loss. (max returns its second argument where
// either is NaN.)
#pragma once

#include "attention/block_kernels.hpp"
#include "base/vector_math_inline.hpp"

namespace attmirror::ATTMIRROR_ISA {
namespace {

template <class V>
struct LossAt {
  V value, log_slope;
};

// log(1 + e^-m)
struct LogisticFormulas {
  template <class V>
  [[gnu::always_inline]] static V exponential(V m) {
    return exp(-abs(m));
  }
  template <class V>
  [[gnu::always_inline]] static LossAt<V> at(V m, V exponential) {
    const V zero{}, tail = log1p(exponential);
    return {tail + max(zero, -m), -(tail + max(zero, m))};
  }
  template <class V>
  [[gnu::always_inline]] static V textbook_slope(V m) {
    const V one = broadcast<V>(1.0);
    return -one / (one + exp(m));
  }
};

// e^-m
struct ExponentialFormulas {
  template <class V>
  [[gnu::always_inline]] static V exponential(V m) {
    return exp(-m);
  }
  template <class V>
  [[gnu::always_inline]] static LossAt<V> at(V m, V exponential) {
    return {exponential, -m};
  }
  template <class V>
  [[gnu::always_inline]] static V textbook_slope(V m) {
    return -exp(-m);
  }
};

// -m
struct LinearFormulas {
  template <class V>
  [[gnu::always_inline]] static V exponential(V) {
    return V{};
  }
  template <class V>
  [[gnu::always_inline]] static LossAt<V> at(V m, V) {
    return {-m, V{}};
  }
  template <class V>
  [[gnu::always_inline]] static V textbook_slope(V) {
    return broadcast<V>(-1.0);
  }
};

// 1 / (1 + e^m), and log|ell'| = -|m| - 2 log(1 + e^-|m|)
struct SigmoidFormulas {
  template <class V>
  [[gnu::always_inline]] static V exponential(V m) {
    return exp(-abs(m));
  }
  template <class V>
  [[gnu::always_inline]] static LossAt<V> at(V m, V exponential) {
    const V one = broadcast<V>(1.0), tail = log1p(exponential);
    return {(m > V{} ? exponential : one) / (one + exponential), -(abs(m) + (tail + tail))};
  }
  template <class V>
  [[gnu::always_inline]] static V textbook_slope(V m) {
    const V e = exp(-abs(m)), sum = broadcast<V>(1.0) + e;
    return -e / (sum * sum);
  }
};

// Calls use(formulas) with those of a loss, or custom() for a loss of the user's own. A form without its case does not
// compile (-Werror=switch).
template <class Use, class Custom>
[[gnu::always_inline]] inline void with_loss(kernels::LossForm form, Use use, Custom custom) {
  using kernels::LossForm;
  switch (form) {
    case LossForm::logistic:
      return use(LogisticFormulas{});
    case LossForm::exponential:
      return use(ExponentialFormulas{});
    case LossForm::linear:
      return use(LinearFormulas{});
    case LossForm::sigmoid:
      return use(SigmoidFormulas{});
    case LossForm::custom:
      return custom();
  }
}

}  // namespace
}  // namespace attmirror::ATTMIRROR_ISA
