// The polar factor without singular values: an odd polynomial, applied again and again, moves all of them towards 1.
//
//   x_0 = g / ||g||_F,   x <- a x + b (x x^T) x + c (x x^T)^2 x
//
// acts on each singular value alone: sigma <- a sigma + b sigma^3 + c sigma^5, so that x keeps the vectors u_k, v_k of
// g. It costs three products of matrices a turn, which is why Muon orthogonalizes this way. The products are taken on
// the smaller of x x^T and x^T x.
#pragma once

#include <attmirror/base/matrix.hpp>

#include <cstddef>

namespace attmirror {

struct NewtonSchulzOptions {
  // Muon's polynomial. Its slope at 0 is steep, so that five turns lift a value of 0.002 into [0.68, 1.14], but 1 is
  // not one of its fixed points: values end near 1, not at 1.
  double a = 3.4445, b = -4.7750, c = 2.0315;
  int iterations = 5;

  // The polynomial that is flattest at 1: a value s needs about log(1/s)/log(15/8) turns, and then is 1 to all
  // digits. 40 turns do for values down to 1e-9 ||g||_F. Rounding errors in the kernel of g grow like any other
  // value, 15/8 times a turn: where the rank may be low, Svd::polar() knows better.
  static NewtonSchulzOptions convergent(int turns = 40) { return {15.0 / 8, -10.0 / 8, 3.0 / 8, turns}; }

  void validate() const;  // throws Error (bad input) naming the field and its value
};

class NewtonSchulz {
 public:
  // For matrices of this shape; the constructor allocates, nothing else does. One object serves one thread.
  NewtonSchulz(std::ptrdiff_t rows, std::ptrdiff_t cols, NewtonSchulzOptions options = {});

  // out = sum_k P(sigma_k / ||g||_F) u_k v_k^T, P the polynomial `iterations` times over. 0 for g = 0; NaN if an
  // entry is not finite. `out` may be `g`.
  void orthogonalize(ConstMatrixView g, MatrixView out);

 private:
  std::ptrdiff_t rows_, cols_;
  NewtonSchulzOptions options_;
  PaddedMatrix x_, next_, transposed_;            // short x long, the same, long x short
  PaddedMatrix gram_, scaled_gram_, polynomial_;  // short x short: x x^T, c x x^T, b x x^T + c (x x^T)^2
};

}  // namespace attmirror
