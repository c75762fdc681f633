// Numbers of about 31 decimal digits: the sum of two doubles, the second at most half a unit in the last place of the
// first (Dekker 1971; Hida, Li and Bailey 2001). For problems whose W is so large against its margins that the squares
// in a normal matrix leave nothing of a double.
//
// Sums and products are exact up to 2^-104 relative; no fused multiply-add is needed, and none may be made by the
// compiler. The range is that of doubles up to 2^996, which scaled constraints do not leave.
#pragma once

#include <cmath>
#include <limits>

#include <Eigen/Core>

namespace attmirror {

class DoubleDouble;
DoubleDouble fabs(DoubleDouble x);
DoubleDouble hypot(DoubleDouble x, DoubleDouble y);
bool isfinite(DoubleDouble x);
DoubleDouble sqrt(DoubleDouble x);

class DoubleDouble {
 public:
  constexpr DoubleDouble() = default;
  // From any plain number; a number of attmirror's algorithms is one as it stands.
  constexpr DoubleDouble(double value) : high_(value) {}  // NOLINT(google-explicit-constructor)
  constexpr explicit operator double() const { return high_; }

  static DoubleDouble sum(double x, double y) {
    const double s = x + y, part = s - x;
    return {s, (x - (s - part)) + (y - part)};
  }
  static DoubleDouble product(double x, double y) {
    const double p = x * y;
    const Halves a(x), b(y);
    return {p, ((a.top * b.top - p) + a.top * b.rest + a.rest * b.top) + a.rest * b.rest};
  }

  double high() const { return high_; }
  double low() const { return low_; }

  friend DoubleDouble operator+(DoubleDouble x, DoubleDouble y) {
    DoubleDouble s = sum(x.high_, y.high_);
    const DoubleDouble t = sum(x.low_, y.low_);
    s = normalized(s.high_, s.low_ + t.high_);
    return normalized(s.high_, s.low_ + t.low_);
  }
  friend DoubleDouble operator-(DoubleDouble x) { return {-x.high_, -x.low_}; }
  friend DoubleDouble operator-(DoubleDouble x, DoubleDouble y) { return x + -y; }
  friend DoubleDouble operator*(DoubleDouble x, DoubleDouble y) {
    const DoubleDouble p = product(x.high_, y.high_);
    return normalized(p.high_, p.low_ + (x.high_ * y.low_ + x.low_ * y.high_));
  }
  friend DoubleDouble operator/(DoubleDouble x, DoubleDouble y) {
    const double first = x.high_ / y.high_;
    if (!std::isfinite(first)) return first;
    DoubleDouble rest = x - y * DoubleDouble(first);
    const double second = rest.high_ / y.high_;
    rest = rest - y * DoubleDouble(second);
    return normalized(first, second) + DoubleDouble(rest.high_ / y.high_);
  }
  DoubleDouble& operator+=(DoubleDouble y) { return *this = *this + y; }
  DoubleDouble& operator-=(DoubleDouble y) { return *this = *this - y; }
  DoubleDouble& operator*=(DoubleDouble y) { return *this = *this * y; }
  DoubleDouble& operator/=(DoubleDouble y) { return *this = *this / y; }

  friend bool operator==(DoubleDouble x, DoubleDouble y) { return x.high_ == y.high_ && x.low_ == y.low_; }
  friend bool operator<(DoubleDouble x, DoubleDouble y) {
    return x.high_ < y.high_ || (x.high_ == y.high_ && x.low_ < y.low_);
  }
  friend bool operator>(DoubleDouble x, DoubleDouble y) { return y < x; }
  friend bool operator<=(DoubleDouble x, DoubleDouble y) { return x < y || x == y; }
  friend bool operator>=(DoubleDouble x, DoubleDouble y) { return y <= x; }

  friend DoubleDouble fabs(DoubleDouble x) { return x.high_ < 0 ? -x : x; }
  friend DoubleDouble abs(DoubleDouble x) { return fabs(x); }
  friend bool isfinite(DoubleDouble x) { return std::isfinite(x.high_); }
  friend DoubleDouble sqrt(DoubleDouble x) {
    if (!(x.high_ > 0)) return std::sqrt(x.high_);
    // One step of Newton's method for the double beside it.
    const double root = std::sqrt(x.high_);
    const DoubleDouble rest = x - product(root, root);
    return normalized(root, rest.high_ / (2 * root));
  }
  friend DoubleDouble hypot(DoubleDouble x, DoubleDouble y) { return sqrt(x * x + y * y); }

 private:
  struct Halves {  // of the digits: their products are exact
    explicit Halves(double x) {
      const double shifted = 134217729.0 * x;  // 2^27 + 1
      top = shifted - (shifted - x);
      rest = x - top;
    }
    double top, rest;
  };

  constexpr DoubleDouble(double high, double low) : high_(high), low_(low) {}
  static DoubleDouble normalized(double large, double small) {
    const double s = large + small;
    return {s, small - (s - large)};
  }

  double high_ = 0, low_ = 0;
};

// One set of names for double, long double and DoubleDouble, for templates.
namespace real {
using std::fabs;
using std::hypot;
using std::isfinite;
using std::sqrt;
inline DoubleDouble fabs(DoubleDouble x) { return attmirror::fabs(x); }
inline DoubleDouble hypot(DoubleDouble x, DoubleDouble y) { return attmirror::hypot(x, y); }
inline bool isfinite(DoubleDouble x) { return attmirror::isfinite(x); }
inline DoubleDouble sqrt(DoubleDouble x) { return attmirror::sqrt(x); }
}  // namespace real

}  // namespace attmirror

namespace std {

template <>
class numeric_limits<attmirror::DoubleDouble> {
 public:
  static constexpr bool is_specialized = true, is_signed = true, is_integer = false, is_exact = false;
  static constexpr bool has_infinity = true, has_quiet_NaN = true;
  static constexpr int digits = 104, digits10 = 31, radix = 2;
  static constexpr attmirror::DoubleDouble epsilon() noexcept { return 4.9303806576313238e-32; }  // 2^-104
  static constexpr attmirror::DoubleDouble min() noexcept { return numeric_limits<double>::min(); }
  static constexpr attmirror::DoubleDouble max() noexcept { return numeric_limits<double>::max(); }
  static constexpr attmirror::DoubleDouble lowest() noexcept { return numeric_limits<double>::lowest(); }
  static constexpr attmirror::DoubleDouble infinity() noexcept { return numeric_limits<double>::infinity(); }
  static constexpr attmirror::DoubleDouble quiet_NaN() noexcept {
    return numeric_limits<double>::quiet_NaN();
  }
};

}  // namespace std

namespace Eigen {

template <>
struct NumTraits<attmirror::DoubleDouble> : GenericNumTraits<attmirror::DoubleDouble> {
  using Real = attmirror::DoubleDouble;
  using NonInteger = Real;
  using Nested = Real;
  using Literal = double;
  enum {
    IsComplex = 0,
    IsInteger = 0,
    IsSigned = 1,
    RequireInitialization = 1,
    ReadCost = 2,
    AddCost = 20,
    MulCost = 25
  };
};

}  // namespace Eigen
