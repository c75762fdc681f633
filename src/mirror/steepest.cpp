#include "mirror/steepest.hpp"

#include "base/words.hpp"
#include "mirror/entries.hpp"
#include <attmirror/base/error.hpp>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace attmirror {

namespace {

double signs(ConstMatrixView g, MatrixView d) {
  const double sum = sum_abs(g);
  for (std::ptrdiff_t j = 0; j < g.flat_size(); ++j) d.data[j] = (g.data[j] > 0) - (g.data[j] < 0);
  return sum;
}

}  // namespace

std::string_view to_string(Orthogonalization how) {
  switch (how) {
    case Orthogonalization::exact:
      return "exact";
    case Orthogonalization::newton_schulz:
      break;
  }
  return "newton-schulz";
}

Orthogonalization parse_orthogonalization(std::string_view name) {
  if (name == "exact") return Orthogonalization::exact;
  if (name == "newton-schulz") return Orthogonalization::newton_schulz;
  throw bad_value("orthogonalization", name, expected_choice(name, {"exact", "newton-schulz"}));
}

SteepestDirection::SteepestDirection(Norm norm, std::ptrdiff_t rows, std::ptrdiff_t cols,
                                     Orthogonalization how)
    : norm_(norm), rows_(rows), cols_(cols), scaled_(rows, cols), weights_(1, std::min(rows, cols)) {
  if (norm.p() > 1 && !std::isinf(norm.p())) powers_.emplace(norm.p());
  switch (norm.kind()) {
    case Norm::Kind::entrywise:
      break;
    case Norm::Kind::schatten:
      if (norm == Norm::spectral() && how == Orthogonalization::newton_schulz)
        newton_schulz_.emplace(rows, cols);
      else
        svd_.emplace(rows, cols);
      break;
  }
}

double SteepestDirection::find(ConstMatrixView g, MatrixView d) {
  if (g.rows != rows_ || g.cols != cols_ || d.rows != rows_ || d.cols != cols_)
    throw bad_input(
        fmt::format("the gradient has shape ({}, {}) and the direction ({}, {}): expected ({}, {})", g.rows,
                    g.cols, d.rows, d.cols, rows_, cols_));
  const double largest = max_abs(g);
  if (largest == 0 || !std::isfinite(largest)) {
    fill_entries(d, largest == 0 ? 0.0 : std::nan(""));
    return largest;
  }
  // d does not depend on the scale of g, so numbers near the ends of the range are brought to 1 first.
  if (largest > 1e-100 && largest < 1e100) return find_scaled(g, d);
  const int exponent = scale_exponent(largest);
  scale_by_power(g, -exponent, scaled_.view());
  return std::ldexp(find_scaled(scaled_.view(), d), exponent);
}

double SteepestDirection::find_scaled(ConstMatrixView g, MatrixView d) {
  switch (norm_.kind()) {
    case Norm::Kind::entrywise:
      break;
    case Norm::Kind::schatten:
      return find_spectral(g, d);
  }
  if (norm_.p() == 1) return largest_entry(g, d);
  if (std::isinf(norm_.p())) return signs(g, d);
  return powers_->steepest(g, d);
}

double SteepestDirection::find_spectral(ConstMatrixView g, MatrixView d) {
  if (newton_schulz_) {
    if (g.data != scaled_.view().data) std::copy_n(g.data, g.flat_size(), scaled_.view().data);  // d may be g
    newton_schulz_->orthogonalize(scaled_.view(), d);
    double product = 0;
    for (std::ptrdiff_t j = 0; j < d.flat_size(); ++j) product += scaled_.view().data[j] * d.data[j];
    return product;
  }
  // A power below 1 (p > 2), and even more the spectral norm, would make directions of rounding errors count.
  svd_->compute(g, SmallValues::drop);
  const ConstMatrixView sigma = svd_->values();
  if (norm_.p() == 1) {
    const double one = 1;
    svd_->compose({&one, 1}, d);
    return sigma.data[0];
  }
  if (std::isinf(norm_.p())) {
    svd_->polar(d);
    return sum_abs(sigma);
  }
  const double dual_norm = powers_->steepest(sigma, weights_.view());
  svd_->compose({weights_.view().data, static_cast<std::size_t>(sigma.cols)}, d);
  return dual_norm;
}

}  // namespace attmirror
