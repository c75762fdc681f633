// Sizes of the entries of a matrix, and its scaling by a power of two, which is exact. Squares and sums of squares
// of numbers beyond 1e154 or below 1e-154 leave the range of a double; what works with them is told the
// scaled matrix, and scales its result back.
#pragma once

#include <attmirror/base/matrix.hpp>

namespace attmirror {

double max_abs(ConstMatrixView w);  // NaN if an entry is NaN
double sum_abs(ConstMatrixView w);  // NaN if an entry is NaN

// Returns the largest |g_j| and makes d its sign at the first place where it is attained: the steepest direction of the
// l_1 norm. d = 0 for g = 0, NaN if the largest is not finite. `d` may be `g`.
double largest_entry(ConstMatrixView g, MatrixView d);

// e with 2^-e largest in [1/2, 1); 0 for 0 and for what is not finite.
int scale_exponent(double largest);

// out = 2^exponent in, also where 2^exponent itself is not a double. `out` may be `in`. Padding of `in` is zero.
void scale_by_power(ConstMatrixView in, int exponent, MatrixView out);

// All entries become `value`; the padding becomes zero.
void fill_entries(MatrixView out, double value);

}  // namespace attmirror
