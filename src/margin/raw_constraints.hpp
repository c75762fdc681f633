// The constraints of a max-margin problem as the verifier reads them: group by group, in extended precision, straight
// from the user's arrays or dataset. The solvers do not use this, and the verifier uses nothing of theirs.
#pragma once

#include <attmirror/margin/constraints.hpp>
#include <attmirror/margin/problems.hpp>

#include <cmath>
#include <cstddef>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

namespace attmirror {

using Real = long double;  // no product of a few doubles leaves its range

// A sum with the errors of its additions and products kept beside it: as if in twice the digits (Ogita, Rump and Oishi,
// "Accurate sum and dot product", 2005).
struct Twofold {
  Real high = 0, low = 0;

  void add(Real value) {
    const Real sum = high + value, part = sum - high;
    low += (high - (sum - part)) + (value - part);
    high = sum;
  }
  void add_product(Real x, Real y) {
    const Real product = x * y;
    const auto [x1, x2] = split(x);
    const auto [y1, y2] = split(y);
    low += x2 * y2 - (((product - x1 * y1) - x2 * y1) - x1 * y2);
    add(product);
  }
  Real value() const { return high + low; }
  // The same number, low no longer than the rounding of high.
  Twofold normal() const {
    const Real sum = high + low;
    return {sum, (high - sum) + low};
  }

 private:
  // Two halves of the digits, whose products are exact (Dekker).
  static std::pair<Real, Real> split(Real x) {
    constexpr int half = (std::numeric_limits<Real>::digits + 1) / 2;
    const Real shifted = x * (std::ldexp(Real{1}, half) + 1), top = shifted - (shifted - x);
    return {top, x - top};
  }
};

// The constraints of one group.
struct RawGroup {
  std::ptrdiff_t count = 0;
  std::vector<Real> left;    // count x rows of W: the a_k
  std::vector<Real> rest;    // what rounding took from `left`, where it was asked for; empty: not, or nothing
  std::vector<Real> sizes;   // of the terms that were added up to form `left`; empty: its absolute values
  std::vector<Real> bounds;  // count
  std::vector<Relation> relations;
  bool with_rest = false;
  const double* right = nullptr;  // z, as many as W has columns

  void start(const double* z) {
    count = 0;
    left.clear();
    rest.clear();
    sizes.clear();
    bounds.clear();
    relations.clear();
    right = z;
  }
  void add(Real bound, Relation relation) {
    ++count;
    bounds.push_back(bound);
    relations.push_back(relation);
  }
};

class RawConstraints {
 public:
  virtual ~RawConstraints() = default;
  virtual std::ptrdiff_t rows() const = 0;  // of W
  virtual std::ptrdiff_t cols() const = 0;
  virtual std::ptrdiff_t groups() const = 0;
  // How often rounding may have changed an entry of `left`, each time by at most 2^-64 of its `sizes`. With `rest` it
  // is wrong by at most the square of that: 2^-128 of `sizes` times the square of this number.
  virtual std::ptrdiff_t roundings() const = 0;
  // Replaces what is in `group`, and reuses its memory.
  enum class Digits { of_left, of_left_and_rest };
  virtual void load(std::ptrdiff_t g, RawGroup& group, Digits digits = Digits::of_left) const = 0;
};

// Both hold references to what they are given. The second throws Error (bad input) where the problem does not fit.
std::unique_ptr<RawConstraints> read_raw(const MarginConstraints& constraints);
std::unique_ptr<RawConstraints> read_raw(const Dataset& data, const MarginProblem& problem);

}  // namespace attmirror
