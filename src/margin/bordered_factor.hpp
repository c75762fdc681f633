// Systems M_PP x = v for a set P that differs by a few indices from a set F whose Cholesky factor is known. With R the
// indices that left F and E those that entered,
//
//   [ M_FF    M_FE  I_R ] [ x_F ]   [ v_F ]
//   [ M_EF    M_EE   0  ] [ x_E ] = [ v_E ]          the last row says x_R = 0, mu is what M_FF x_F = v_F misses there
//   [ I_R^T    0     0  ] [ mu  ]   [  0  ]
//
// With M_FF = L L^T and Y = L^-1 (M_FE, I_R) that is a system of the size of the border, Z - Y^T Y: some |E| + |R|
// triangular solves, 16 at a time, instead of a factorization.
#pragma once

#include "margin/active_set_qp.hpp"
#include <attmirror/base/matrix.hpp>

#include <cstddef>
#include <span>
#include <vector>

#include <Eigen/LU>

namespace attmirror {

class BorderedFactor {
 public:
  // No wider borders and no smaller factors: there a new factorization is not the larger part of the work.
  static constexpr std::ptrdiff_t widest = 48, smallest_factor = 96;

  // P is where `is_passive`; `factor` belongs to the indices `factored`, ascending. False: the border is too wide, or
  // its system so near to singular that it says nothing.
  bool form(const QpProblem<double>& problem, ConstMatrixView factor,
            std::span<const std::ptrdiff_t> factored, std::span<const unsigned char> is_passive);

  // x_P = M_PP^-1 v_P and 0 elsewhere; both by index of the problem. They may not overlap.
  void solve(std::span<const double> v, std::span<double> x);

 private:
  struct Member {
    std::ptrdiff_t index;     // in the problem
    std::ptrdiff_t position;  // in `factored` of one that left; -1: it entered
    double scale;             // of its row and column, so that all entries of the system are of the size of 1
  };
  const double* strip(std::size_t member) const;

  ConstMatrixView factor_;
  std::span<const std::ptrdiff_t> factored_;
  std::vector<Member> border_;
  AlignedVector strips_;  // Y, 16 columns after the other
  AlignedVector right_;   // L^-1 v_F
  Eigen::MatrixXd system_;
  Eigen::VectorXd solution_;
  Eigen::PartialPivLU<Eigen::MatrixXd> decomposition_;
};

}  // namespace attmirror
