// Exact steps of the l_p Newton method: on the line y + t v, 0 <= t <= 1, minimize
//
//   log ||y + t v||_r - log (c0 + t c1)
//
// r = p with c = 1 for W (the norm itself), r = q with c = c^T lambda for the multipliers (the dual value). Both are
// quasiconvex in t and free of scale, and a value costs one power per entry: next to a factorization, nothing. So the
// minimum is found, not merely a decrease.
#pragma once

#include <attmirror/base/matrix.hpp>
#include <attmirror/mirror/lp_map.hpp>

namespace attmirror {

enum class LpSide { primal, dual };  // r = p, r = q

// c0 + t c1
struct LinePart {
  double start = 1, slope = 0;
};

class LpLineSearch {
 public:
  LpLineSearch(std::ptrdiff_t rows, std::ptrdiff_t cols) : point_(rows, cols), power_(rows, cols) {}

  // The minimizer, to a percent of it: the next linearization does the rest. 1 where the full step is as good up to
  // rounding, 0 where anything is not finite.
  double minimize(const LpMap& map, LpSide side, ConstMatrixView y, ConstMatrixView v, LinePart part);

 private:
  struct Point {
    double value, slope;
  };
  Point at(double t);

  // What is being minimized.
  const LpMap* map_ = nullptr;
  LpSide side_ = LpSide::primal;
  ConstMatrixView y_, v_;
  LinePart part_;

  PaddedMatrix point_, power_;
};

}  // namespace attmirror
