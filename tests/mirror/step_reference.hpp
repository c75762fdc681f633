// The formulas of a fused step in numbers of 400 bits (MPFR): nothing in common with the arithmetic under test.
#pragma once

#include "mirror/step_plan.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <mpfr.h>

namespace attmirror::test {

class BigFloat {
 public:
  BigFloat(double x = 0.0) {  // NOLINT: a double is one
    mpfr_init2(value_, 400);
    mpfr_set_d(value_, x, MPFR_RNDN);
  }
  BigFloat(const BigFloat& other) {
    mpfr_init2(value_, 400);
    mpfr_set(value_, other.value_, MPFR_RNDN);
  }
  BigFloat& operator=(const BigFloat& other) {
    mpfr_set(value_, other.value_, MPFR_RNDN);
    return *this;
  }
  ~BigFloat() { mpfr_clear(value_); }
  mpfr_ptr get() { return value_; }
  mpfr_srcptr get() const { return value_; }

 private:
  mpfr_t value_;
};

inline BigFloat operator+(const BigFloat& a, const BigFloat& b) {
  BigFloat result;
  mpfr_add(result.get(), a.get(), b.get(), MPFR_RNDN);
  return result;
}
inline BigFloat operator-(const BigFloat& a, const BigFloat& b) {
  BigFloat result;
  mpfr_sub(result.get(), a.get(), b.get(), MPFR_RNDN);
  return result;
}
inline BigFloat operator*(const BigFloat& a, const BigFloat& b) {
  BigFloat result;
  mpfr_mul(result.get(), a.get(), b.get(), MPFR_RNDN);
  return result;
}
inline BigFloat operator/(const BigFloat& a, const BigFloat& b) {
  BigFloat result;
  mpfr_div(result.get(), a.get(), b.get(), MPFR_RNDN);
  return result;
}
inline BigFloat abs(const BigFloat& a) {
  BigFloat result;
  mpfr_abs(result.get(), a.get(), MPFR_RNDN);
  return result;
}
inline bool operator<(const BigFloat& a, const BigFloat& b) { return mpfr_less_p(a.get(), b.get()) != 0; }
inline BigFloat exp2_of(long n) {
  BigFloat result(1.0);
  mpfr_mul_2si(result.get(), result.get(), n, MPFR_RNDN);
  return result;
}
inline double to_double(const BigFloat& a) { return mpfr_get_d(a.get(), MPFR_RNDN); }

inline BigFloat big(const kernels::Sum& r) { return BigFloat(r.value) + BigFloat(r.rest); }

inline BigFloat signed_power(const BigFloat& x, const kernels::Sum& r) {
  if (mpfr_zero_p(x.get())) return x;
  BigFloat result;
  mpfr_pow(result.get(), abs(x).get(), big(r).get(), MPFR_RNDN);
  mpfr_setsign(result.get(), result.get(), mpfr_signbit(x.get()), MPFR_RNDN);
  return result;
}

// A format of `digits` bits, denormals down to 2^least, largest exponent `largest`.
struct BigFormat {
  int digits, least, largest;
};

// The exponent of an ulp of x, in a format without an upper limit.
inline long big_ulp_exponent(const BigFloat& x, const BigFormat& format) {
  if (!mpfr_regular_p(x.get())) return format.least;  // zero, infinite or NaN: without an exponent
  return std::max<long>(mpfr_get_exp(x.get()) - format.digits, format.least);
}

// To nearest, ties to even.
inline double round_to(const BigFloat& x, const BigFormat& format) {
  const long ulp = big_ulp_exponent(x, format);
  if (mpfr_get_exp(x.get()) > format.largest + 2 && !mpfr_zero_p(x.get()))
    return mpfr_signbit(x.get()) ? -std::numeric_limits<double>::infinity()
                                 : std::numeric_limits<double>::infinity();
  BigFloat scaled;
  mpfr_mul_2si(scaled.get(), x.get(), -ulp, MPFR_RNDN);
  mpfr_rint(scaled.get(), scaled.get(), MPFR_RNDN);
  const double result = std::ldexp(to_double(scaled), static_cast<int>(ulp));
  if (std::abs(result) > std::ldexp(2 - std::ldexp(1.0, 1 - format.digits), format.largest))
    return std::copysign(std::numeric_limits<double>::infinity(), result);
  return result;
}

inline double ulps_between(double got, const BigFloat& exact, const BigFormat& format) {
  if (got == round_to(exact, format)) return 0.5;  // or less
  if (!std::isfinite(got) || std::isinf(round_to(exact, format)))
    return std::numeric_limits<double>::infinity();
  return to_double(abs(BigFloat(got) - exact) / exp2_of(big_ulp_exponent(exact, format)));
}

// y* = keep_image y - rate d shrink
inline BigFloat big_next_image(const BigFloat& y, const BigFloat& d, const kernels::StepPlan& plan,
                               double shrink) {
  return BigFloat(plan.keep_image) * y - BigFloat(plan.rate) * BigFloat(shrink) * d;
}

inline BigFloat big_mirror_step(double w, const BigFloat& d, const kernels::StepPlan& plan,
                                double shrink = 1) {
  return signed_power(big_next_image(signed_power(w, plan.map), d, plan, shrink), plan.inverse);
}

inline BigFloat big_steepest_step(double w, const BigFloat& d, const kernels::StepPlan& plan,
                                  double shrink = 1) {
  return BigFloat(plan.keep) * BigFloat(w) -
         BigFloat(plan.rate) * signed_power(BigFloat(shrink) * d, plan.inverse);
}

}  // namespace attmirror::test
