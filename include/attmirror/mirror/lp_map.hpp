// The entrywise l_p geometry of P1, for every 1 < p < infinity:
//
//   psi(w) = (1/p) sum |w_j|^p      y = sign(w) |w|^{p-1}      w = sign(y) |y|^{1/(p-1)}
//   norm   ||w||_p                  dual norm ||g||_q, q = p/(p-1)
//   steepest direction sign(g) (|g| / ||g||_q)^{1/(p-1)}
//
// p = 2 is gradient descent. For p = 2, 3, 3/2, 4/3, 4, 1.75 and 1.1 the powers are products and roots
// (squares, square and cube roots); every other p uses a general power. Both are accurate to an ulp or two
// per factor, and you can force either. Norms fall back to numbers scaled by the largest, so that nothing
// overflows or underflows needlessly, for p near 1 (q = p/(p-1) is 101 at p = 1.01) as for large p.
#pragma once

#include <attmirror/mirror/mirror_map.hpp>

#include <string_view>

namespace attmirror {

// Which evaluation of the powers to use. `general` exists to check `fast`.
enum class PowerPath { fast, general };

std::string_view to_string(PowerPath path);
PowerPath parse_power_path(std::string_view name);

// The mirror map of the potential (1/p) sum |w_j|^p.
class LpMap final : public MirrorMap {
 public:
  // Throws Error (bad input) unless 1 < p < infinity.
  explicit LpMap(double p, PowerPath path = PowerPath::fast);

  double p() const { return p_; }
  double q() const { return dual_.value; }
  bool is_fast() const;  // whether this p uses products and roots

  std::string name() const override;
  double potential(ConstMatrixView w) const override;
  void map(ConstMatrixView w, MatrixView y) const override;
  void inverse(ConstMatrixView y, MatrixView w) const override;
  double norm(ConstMatrixView w) const override;
  double dual_norm(ConstMatrixView g) const override;
  double steepest(ConstMatrixView g, MatrixView d) const override;
  double bregman(ConstMatrixView a, ConstMatrixView b) const override;
  void step(ConstMatrixView g, double scale, MatrixView y, MatrixView w) const override;

  // An exponent, as value + rest, and the method for raising to it (an index into the kernels' table).
  struct Exponent {
    double value = 1, rest = 0;
    int power = 0;
  };
  const Exponent& map_exponent() const { return map_; }          // p - 1
  const Exponent& inverse_exponent() const { return inverse_; }  // 1/(p - 1)
  const Exponent& norm_exponent() const { return norm_; }        // p
  const Exponent& dual_exponent() const { return dual_; }        // q

 private:
  double p_;
  Exponent map_, inverse_, norm_, dual_;
};

// Throws Error (bad input) naming p unless 1 < p < infinity.
void validate_p(double p);

}  // namespace attmirror
