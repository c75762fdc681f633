// The norms in which descent can be steepest and margins largest: entrywise l_p and Schatten-p.
//
//   l_p          (sum_ij |w_ij|^p)^{1/p},  1 <= p <= infinity; p = 2 is the Frobenius norm
//   Schatten-p   the l_p norm of the singular values; p = 1 nuclear, p = infinity spectral
//
// The dual norm, max <g, d> over ||d|| <= 1, is of the same kind with q = p/(p-1). Frobenius is both l_2 and
// Schatten-2; it is stored as the former, so that equal norms compare equal.
#pragma once

#include <attmirror/base/matrix.hpp>

#include <string>
#include <string_view>

namespace attmirror {

// A norm of matrices, entrywise or of the singular values.
class Norm {
 public:
  // Whether a norm is of the entries or of the singular values.
  enum class Kind { entrywise, schatten };

  // Both throw Error (bad input) naming p unless 1 <= p <= infinity.
  static Norm l(double p);
  static Norm schatten(double p);

  static Norm frobenius() { return l(2); }
  static Norm nuclear() { return schatten(1); }
  static Norm spectral();

  Kind kind() const { return kind_; }
  bool is_entrywise() const { return kind_ == Kind::entrywise; }
  double p() const { return p_; }
  Norm dual() const;
  Norm with_p(double p) const;  // another norm of the same kind

  friend bool operator==(const Norm&, const Norm&) = default;

 private:
  Norm(Kind kind, double p) : kind_(kind), p_(p) {}

  Kind kind_;
  double p_;
};

// Reads "1.75", "1", "2", "inf" (entrywise), "frobenius", "nuclear", "spectral", "schatten:1.5". Throws Error (bad
// input) quoting any other word.
Norm parse_norm(std::string_view text);

// Text that parse_norm() reads back as an equal norm, with as few digits as possible.
std::string to_string(const Norm& norm);

// ||w||, to a few ulp for entrywise norms and to a few ulp of the spectral norm per singular value for the others.
// Overflows or underflows only if the result does. NaN if an entry is NaN, otherwise infinity if one is infinite.
// 0 for a matrix without entries. Schatten norms allocate; in a loop, use an Svd (mirror/spectral.hpp) instead.
double norm(ConstMatrixView w, const Norm& norm);
double norm(const Matrix& w, const Norm& norm);

// How the steepest direction of the spectral norm is found, sum_k u_k v_k^T for singular vectors of the
// gradient. Other norms do not use it.
enum class Orthogonalization {
  exact,  // from the singular value decomposition
  // By five iterations of Muon's polynomial, which leave singular values between about 0.7 and 1.2.
  newton_schulz,
};

std::string_view to_string(Orthogonalization how);
Orthogonalization parse_orthogonalization(std::string_view name);

}  // namespace attmirror
