// Student's t distribution, for any number of degrees of freedom. Internal.
//
// With nu degrees of freedom, P(|T| > t) is the regularized incomplete beta function
//
//   I_x(nu/2, 1/2),   x = nu / (nu + t^2),
//
// which its continued fraction gives to nearly the last digit. There is no cancellation: where the fraction is of
// the complement, that is computed from t^2 / (nu + t^2).
#pragma once

namespace attmirror {

// P(|T| > t), 1 for t = 0. Throws Error (bad input) unless t >= 0 and nu > 0; nu may be infinite (a normal
// distribution).
double student_two_sided(double t, double nu);

// The t with P(|T| <= t) = level: 2.776 for level = 0.95 and nu = 4. Throws Error (bad input) unless 0 < level < 1.
double student_quantile(double level, double nu);

}  // namespace attmirror
