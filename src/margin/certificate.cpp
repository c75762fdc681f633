// The verifier. It shares no code with the solvers, and reads problems from the dataset by itself: a mistake in how a
// problem is written down, scaled or solved shows here as a violation or a gap.
//
// One pass over the groups forms the margins a_k^T (W z_g), which cost one product W z per group, and the sum
// U = sum_g (sum_k lambda_k a_k) z_g^T, one outer product per group. Beside U runs the sum of absolute values E; by the
// standard analysis (each sum of n terms is wrong by at most n u times the sum of their sizes, u = 2^-64) the true sum
// lies within roundings * u * E of U entry by entry, and the dual norm of |U| + that is what the bound divides by.
//
// Margins of a W that is large against its margins cancel too. By Cauchy-Schwarz a^T W z is wrong by at most
// (rows + cols) u |a| |W| |z|, which is known before; where that matters against the bound, the product is formed again
// with error-free transformations (Twofold), as if in 128 bits, from an a that has lost nothing. So is U, in a second
// pass, where what is charged for its rounding matters against its dual norm.
#include "base/numbers.hpp"
#include "base/vector_math.hpp"
#include "margin/raw_constraints.hpp"
#include "mirror/spectral.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/margin/certificate.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace attmirror {

namespace {

using Reals = std::vector<Real>;

constexpr double double_rounding = std::numeric_limits<double>::epsilon();
constexpr Real unit = std::numeric_limits<Real>::epsilon() / 2;

// What may be in doubt about a margin, in terms of its bound, before it is formed more accurately or counts against W.
constexpr Real negligible_doubt = 1e-14L;

// What may be charged for the rounding of U, in terms of its dual norm, before U is formed more accurately.
constexpr Real negligible_charge = 1e-13L;

Real length(const Real* values, std::ptrdiff_t count) {
  Real sum = 0;  // no square of a product of three doubles leaves the range of a long double
  for (std::ptrdiff_t i = 0; i < count; ++i) sum += values[i] * values[i];
  return std::sqrt(sum);
}

// (sum v^p)^{1/p} of numbers >= 0. Relative to the largest, v^p cannot overflow, and an error of v^p shrinks by 1/p in
// the result: powers in double precision are enough for a few 1e-16, at any p.
Real entrywise_norm(const Reals& values, Real p) {
  const Real largest = values.empty() ? 0 : *std::max_element(values.begin(), values.end());
  if (largest == 0 || std::isinf(p)) return largest;
  Real sum = 0;
  if (p == 1) {
    for (const Real v : values) sum += v;
    return sum;
  }
  if (p == 2) return length(values.data(), static_cast<std::ptrdiff_t>(values.size()));
  const Real inverse = 1 / largest;
  const auto exponent = static_cast<double>(p);
  for (const Real v : values)
    if (v != 0) sum += std::pow(static_cast<double>(v * inverse), exponent);
  return largest * std::pow(sum, 1 / p);
}

// The singular values of a finite matrix, divided by a power of two into the range of a double for the decomposition.
Reals singular_values(const Reals& values, std::ptrdiff_t rows, std::ptrdiff_t cols) {
  Real largest = 0;
  for (const Real v : values) largest = std::max(largest, std::fabs(v));
  if (largest == 0) return {};
  const int exponent = std::ilogb(largest);
  PaddedMatrix scaled(rows, cols);
  const MatrixView view = scaled.view();
  for (std::ptrdiff_t i = 0; i < rows; ++i)
    for (std::ptrdiff_t j = 0; j < cols; ++j)
      view.data[i * view.stride + j] =
          static_cast<double>(std::scalbn(values[static_cast<std::size_t>(i * cols + j)], -exponent));
  Svd svd(rows, cols);
  svd.compute_values(view);
  Reals result;
  for (std::ptrdiff_t k = 0; k < std::min(rows, cols); ++k)
    result.push_back(std::scalbn(static_cast<Real>(svd.value(k)), exponent));
  return result;
}

Real norm_of(const Reals& values, std::ptrdiff_t rows, std::ptrdiff_t cols, const Norm& norm) {
  switch (norm.kind()) {
    case Norm::Kind::entrywise:
      break;
    case Norm::Kind::schatten:
      return entrywise_norm(singular_values(values, rows, cols), norm.p());
  }
  Reals sizes(values.size());
  std::transform(values.begin(), values.end(), sizes.begin(), [](Real v) { return std::fabs(v); });
  return entrywise_norm(sizes, norm.p());
}

// Of the exponent that the double p is, not of the decimal number it was written as.
Real dual_exponent(Real p) {
  if (p == 1) return infinity;
  if (std::isinf(p)) return 1;
  return p / (p - 1);
}

class Verifier {
 public:
  Verifier(const RawConstraints& source, const Norm& norm, const Matrix& W, const Vector& lambda)
      : source_(source), norm_(norm), W_(W), lambda_(lambda), rows_(source.rows()), cols_(source.cols()) {
    if (W.size() != 0 && (W.rows() != rows_ || W.cols() != cols_))
      throw bad_input(
          fmt::format("W has shape ({}, {}): expected ({}, {})", W.rows(), W.cols(), rows_, cols_));
    has_weights_ = W.size() != 0;
    finite_weights_ = has_weights_ && W.allFinite();
    finite_lambda_ = lambda.allFinite();
    // |a|_q >= rows^(1/q - 1/2) |a|_2 for q > 2
    q_ = dual_exponent(norm.p());
    if (q_ > 2)
      least_part_ =
          std::pow(static_cast<double>(rows_), (std::isinf(q_) ? 0.0 : 1 / static_cast<double>(q_)) - 0.5);
  }

  Certificate run() {
    if (finite_weights_) {
      weights_.assign(W_.data(), W_.data() + W_.size());  // row-major
      frobenius_ = length(weights_.data(), rows_ * cols_);
    }
    sum_.assign(static_cast<std::size_t>(rows_ * cols_), 0);
    sum_sizes_ = sum_;
    RawGroup group;
    for (std::ptrdiff_t g = 0; g < source_.groups(); ++g) {
      source_.load(g, group);
      group_index_ = g;
      if (first_ + group.count > lambda_.size())
        first_ += group.count;  // counted on for the message below
      else
        take(group);
    }
    if (first_ != lambda_.size())
      throw bad_input(
          fmt::format("lambda has {} entries: expected {}, one per constraint", lambda_.size(), first_));
    if (finite_lambda_ && gain_ > 0 && charge_matters()) add_up_again();
    finish();
    return result_;
  }

 private:
  void take(const RawGroup& group) {
    right_length_ = 0;
    for (std::ptrdiff_t j = 0; j < cols_; ++j)
      right_length_ += static_cast<Real>(group.right[j]) * group.right[j];
    right_length_ = std::sqrt(right_length_);
    if (finite_weights_ && group.count > 0) multiply(group);
    lengths_.clear();
    for (std::ptrdiff_t k = 0; k < group.count; ++k) {
      const Real* a = group.left.data() + k * rows_;
      const Real a_length = length(a, rows_);
      const Real size = group.sizes.empty() ? a_length : length(group.sizes.data() + k * rows_, rows_);
      lengths_.push_back(a_length);
      if (finite_weights_) check_margin(group, k, size * right_length_ * frobenius_);
    }
    if (group.count > 0 && right_length_ > 0) note_demands(group);
    if (finite_lambda_) add_multipliers(group);
    longest_group_ = std::max(longest_group_, group.count);
    first_ += group.count;
  }

  // What each constraint alone demands of the norm: its bound over the dual norm of a z^T, the product of the factors'
  // own norms. Powers are formed for all constraints of a group at once, where a lower bound on |a|_q leaves it open
  // whether one demands more than those before.
  void note_demands(const RawGroup& group) {
    const bool euclidean = !norm_.is_entrywise() || q_ == 2;
    factor_.clear();
    for (std::ptrdiff_t j = 0; j < cols_ && !euclidean; ++j) factor_.push_back(std::fabs(group.right[j]));
    const Real right = euclidean ? right_length_ : dual_sizes(1, cols_).front();
    asked_.clear();
    factor_.clear();
    for (std::ptrdiff_t k = 0; k < group.count; ++k) {
      const Real* a = group.left.data() + k * rows_;
      const Real a_length = lengths_[static_cast<std::size_t>(k)];
      const Real demand = std::fabs(group.bounds[static_cast<std::size_t>(k)]) / right;
      if (euclidean) {
        if (a_length > 0) largest_demand_ = std::max(largest_demand_, demand / a_length);
        continue;
      }
      Real least = a_length;
      if (q_ > 2) {
        Real largest = 0;
        for (std::ptrdiff_t i = 0; i < rows_; ++i) largest = std::max(largest, std::fabs(a[i]));
        least = std::max(largest, a_length * least_part_);
      }
      if (!(demand > largest_demand_ * least * (1 - 1e-12L)) || a_length == 0) continue;
      asked_.push_back(demand);
      for (std::ptrdiff_t i = 0; i < rows_; ++i) factor_.push_back(std::fabs(a[i]));
    }
    if (asked_.empty()) return;
    const Reals& sizes = dual_sizes(static_cast<std::ptrdiff_t>(asked_.size()), rows_);
    for (std::size_t i = 0; i < sizes.size(); ++i)
      largest_demand_ = std::max(largest_demand_, asked_[i] / sizes[i]);
  }

  // |.|_q of `count` vectors of `size` numbers >= 0, which stand in factor_, none of them 0.
  const Reals& dual_sizes(std::ptrdiff_t count, std::ptrdiff_t size) {
    dual_sizes_.clear();
    powers_.resize(factor_.size());
    for (std::ptrdiff_t k = 0; k < count; ++k) {
      const Real* values = factor_.data() + k * size;
      const Real largest = *std::max_element(values, values + size), inverse = 1 / largest;
      dual_sizes_.push_back(largest);
      for (std::ptrdiff_t i = 0; i < size; ++i)
        powers_[static_cast<std::size_t>(k * size + i)] = static_cast<double>(values[i] * inverse);
    }
    if (std::isinf(q_)) return dual_sizes_;
    if (q_ != 1) vpow(powers_, static_cast<double>(q_), powers_);
    for (std::ptrdiff_t k = 0; k < count; ++k) {
      double sum = 0;
      for (std::ptrdiff_t i = 0; i < size; ++i) sum += powers_[static_cast<std::size_t>(k * size + i)];
      dual_sizes_[static_cast<std::size_t>(k)] *= q_ == 1 ? sum : std::pow(sum, 1 / static_cast<double>(q_));
    }
    return dual_sizes_;
  }

  // W z; and |W| |z| where a constraint of the group is judged by what cancels.
  void multiply(const RawGroup& group) {
    product_.assign(static_cast<std::size_t>(rows_), 0);
    product_sizes_.clear();
    accurate_.clear();
    for (std::ptrdiff_t i = 0; i < rows_; ++i) {
      const double* w = W_.data() + i * cols_;
      Real even = 0, odd = 0;  // two sums: one addition need not wait for the last
      std::ptrdiff_t j = 0;
      for (; j + 1 < cols_; j += 2) {
        even += static_cast<Real>(w[j]) * group.right[j];
        odd += static_cast<Real>(w[j + 1]) * group.right[j + 1];
      }
      if (j < cols_) even += static_cast<Real>(w[j]) * group.right[j];
      product_[static_cast<std::size_t>(i)] = even + odd;
    }
  }
  const Reals& product_sizes(const RawGroup& group) {
    if (product_sizes_.empty())
      for (std::ptrdiff_t i = 0; i < rows_; ++i) {
        Real sum = 0;
        for (std::ptrdiff_t j = 0; j < cols_; ++j)
          sum += std::fabs(static_cast<Real>(W_(i, j)) * group.right[j]);
        product_sizes_.push_back(sum);
      }
    return product_sizes_;
  }
  Real accurate_margin(std::ptrdiff_t k) {
    RawGroup& group = exact_;
    if (accurate_.empty()) {
      source_.load(group_index_, group, RawConstraints::Digits::of_left_and_rest);
      for (std::ptrdiff_t i = 0; i < rows_; ++i) {
        Twofold sum;
        for (std::ptrdiff_t j = 0; j < cols_; ++j) sum.add_product(W_(i, j), group.right[j]);
        accurate_.push_back(sum.normal());
      }
    }
    const Real* a = group.left.data() + k * rows_;
    Twofold margin;
    for (std::ptrdiff_t i = 0; i < rows_; ++i) {
      const Twofold& y = accurate_[static_cast<std::size_t>(i)];
      margin.add_product(a[i], y.high);
      margin.low += a[i] * y.low;
      if (!group.rest.empty()) margin.low += group.rest[static_cast<std::size_t>(k * rows_ + i)] * y.high;
    }
    return margin.value();
  }

  // `size` bounds sum_ij |a_i| |W_ij| |z_j|.
  void check_margin(const RawGroup& group, std::ptrdiff_t k, Real size) {
    const Real* a = group.left.data() + k * rows_;
    const Real bound = group.bounds[static_cast<std::size_t>(k)];
    Real margin = 0;
    for (std::ptrdiff_t i = 0; i < rows_; ++i) margin += a[i] * product_[static_cast<std::size_t>(i)];
    const bool equal = group.relations[static_cast<std::size_t>(k)] == Relation::equal;
    if (!equal && bound > 0) {
      const auto terms = static_cast<Real>(rows_ + cols_ + 6 + source_.roundings());
      Real doubt = terms * unit * size;
      if (doubt > negligible_doubt * bound) {
        margin = accurate_margin(k);
        doubt = 4 * terms * terms * unit * unit * size;
      }
      worst_margin_ = std::min(worst_margin_, margin / bound);
      const Real charged = doubt > negligible_doubt * bound ? doubt : 0;
      note_violation((bound - margin + charged) / bound, k);
      return;
    }
    const Reals& sizes = product_sizes(group);
    Real scale = 0;
    for (std::ptrdiff_t i = 0; i < rows_; ++i) scale += std::fabs(a[i]) * sizes[static_cast<std::size_t>(i)];
    if (equal) scale = std::max(scale, std::fabs(bound));
    const Real wrong = equal ? std::fabs(margin - bound) : -margin;
    if (wrong > 0) note_violation(wrong / scale, k);
  }
  void note_violation(Real violation, std::ptrdiff_t k) {
    if (!(violation > worst_violation_)) return;
    worst_violation_ = violation;
    result_.worst_constraint = first_ + k;
  }

  void add_multipliers(const RawGroup& group) {
    left_sum_.assign(static_cast<std::size_t>(rows_), 0);
    left_sizes_ = left_sum_;
    Real gain = 0;
    bool any = false;
    for (std::ptrdiff_t k = 0; k < group.count; ++k) {
      const double value = lambda_[first_ + k];
      const bool equal = group.relations[static_cast<std::size_t>(k)] == Relation::equal;
      if (value == 0 || (value < 0 && !equal)) continue;
      any = true;
      const Real term = value * group.bounds[static_cast<std::size_t>(k)];
      gain += term;
      gain_size_ += std::fabs(term);
      const Real* a = group.left.data() + k * rows_;
      const Real* sizes = group.sizes.empty() ? a : group.sizes.data() + k * rows_;
      for (std::ptrdiff_t i = 0; i < rows_; ++i) {
        left_sum_[static_cast<std::size_t>(i)] += value * a[i];
        left_sizes_[static_cast<std::size_t>(i)] += std::fabs(value * sizes[i]);
      }
    }
    if (!any) return;
    gain_ += gain;
    for (std::ptrdiff_t i = 0; i < rows_; ++i) {
      const Real u = left_sum_[static_cast<std::size_t>(i)], e = left_sizes_[static_cast<std::size_t>(i)];
      Real *sum = sum_.data() + i * cols_, *sizes = sum_sizes_.data() + i * cols_;
      for (std::ptrdiff_t j = 0; j < cols_; ++j) {
        sum[j] += u * group.right[j];
        sizes[j] += std::fabs(e * group.right[j]);
      }
    }
  }

  // The sum once more, with twice the digits.
  void add_up_again() {
    std::vector<Twofold> sum(sum_.size()), part(static_cast<std::size_t>(rows_));
    RawGroup group;
    std::ptrdiff_t first = 0;
    for (std::ptrdiff_t g = 0; g < source_.groups(); ++g) {
      source_.load(g, group, RawConstraints::Digits::of_left_and_rest);
      std::fill(part.begin(), part.end(), Twofold());
      for (std::ptrdiff_t k = 0; k < group.count; ++k) {
        const double value = lambda_[first + k];
        if (value == 0 || (value < 0 && group.relations[static_cast<std::size_t>(k)] != Relation::equal))
          continue;
        for (std::ptrdiff_t i = 0; i < rows_; ++i) {
          const auto entry = static_cast<std::size_t>(k * rows_ + i);
          part[static_cast<std::size_t>(i)].add_product(value, group.left[entry]);
          if (!group.rest.empty()) part[static_cast<std::size_t>(i)].low += value * group.rest[entry];
        }
      }
      first += group.count;
      for (std::ptrdiff_t i = 0; i < rows_; ++i) {
        const Twofold u = part[static_cast<std::size_t>(i)].normal();
        if (u.high == 0) continue;
        for (std::ptrdiff_t j = 0; j < cols_; ++j) {
          Twofold& entry = sum[static_cast<std::size_t>(i * cols_ + j)];
          entry.add_product(u.high, group.right[j]);
          entry.low += u.low * group.right[j];
        }
      }
    }
    for (std::size_t i = 0; i < sum.size(); ++i) sum_[i] = sum[i].value();
    added_up_again_ = true;
  }

  // By the Euclidean lengths, from which no norm differs by more than the root of the number of entries.
  bool charge_matters() const {
    const std::ptrdiff_t entries = rows_ * cols_;
    return sum_error() * length(sum_sizes_.data(), entries) * std::sqrt(static_cast<Real>(entries)) >
           negligible_charge * length(sum_.data(), entries);
  }

  // Of the entries of sum_, relative to sum_sizes_.
  Real sum_error() const {
    const Real count = roundings() + static_cast<Real>(source_.roundings());
    return added_up_again_ ? 4 * count * count * unit * unit : count * unit;
  }

  // At least ||sum lambda_k A_k||_*, whatever was rounded.
  Real dual_norm() const {
    const Real q = dual_exponent(norm_.p()), error = sum_error();
    switch (norm_.kind()) {
      case Norm::Kind::entrywise: {
        Reals sizes(sum_.size());
        for (std::size_t i = 0; i < sum_.size(); ++i) sizes[i] = std::fabs(sum_[i]) + error * sum_sizes_[i];
        return entrywise_norm(sizes, q) * (1 + 8 * double_rounding);
      }
      case Norm::Kind::schatten:
        break;
    }
    // A matrix of errors has a Schatten norm of at most its Frobenius norm, times a power of its rank for q < 2.
    const auto rank = static_cast<Real>(std::min(rows_, cols_));
    const Real errors = error * length(sum_sizes_.data(), rows_ * cols_) * (q < 2 ? std::sqrt(rank) : 1);
    return entrywise_norm(singular_values(sum_, rows_, cols_), q) * (1 + 8 * rank * double_rounding) + errors;
  }
  // In the longest chain of additions and products.
  Real roundings() const { return static_cast<Real>(longest_group_ + source_.groups() + 6); }

  void finish() {
    result_.norm = result_.dual = result_.scaled_dual = result_.gap = nan_value;
    Real norm = 0, dual = 0;
    if (finite_lambda_) {
      const Real gain = gain_ - roundings() * unit * gain_size_;
      if (gain > 0) dual = gain / dual_norm();  // > 0 / 0: a row of zeros that demands more than 0
      result_.dual = static_cast<double>(dual);
      result_.scaled_dual = std::isinf(dual) ? infinity
                            : dual > 0       ? static_cast<double>(dual / largest_demand_)
                                             : 0;
    }
    if (!finite_weights_) {
      result_.worst_margin = nan_value;
      result_.worst_violation = infinity;
      result_.worst_constraint = has_weights_ && first_ > 0 ? 0 : -1;
      return;
    }
    norm = norm_of(weights_, rows_, cols_, norm_);
    result_.norm = static_cast<double>(norm);
    result_.worst_margin = static_cast<double>(worst_margin_);
    result_.worst_violation = static_cast<double>(worst_violation_);
    if (finite_lambda_ && std::isfinite(result_.norm))
      result_.gap = norm == 0 && dual == 0 ? 0 : static_cast<double>((norm - dual) / norm);
  }

  const RawConstraints& source_;
  const Norm& norm_;
  const Matrix& W_;
  const Vector& lambda_;
  std::ptrdiff_t rows_, cols_;
  bool has_weights_ = false, finite_weights_ = false, finite_lambda_ = false;
  std::ptrdiff_t first_ = 0, longest_group_ = 0;
  Reals weights_, product_, product_sizes_, left_sum_, left_sizes_, sum_, sum_sizes_;
  Reals lengths_, asked_, factor_, dual_sizes_;
  std::vector<double> powers_;
  RawGroup exact_;  // the present group, with twice the digits, where accurate_ is not empty
  std::ptrdiff_t group_index_ = 0;
  std::vector<Twofold> accurate_;
  Real frobenius_ = 0, right_length_ = 0, gain_ = 0, gain_size_ = 0, largest_demand_ = 0, least_part_ = 1,
       q_ = 2;
  bool added_up_again_ = false;
  Real worst_margin_ = std::numeric_limits<Real>::infinity(), worst_violation_ = 0;
  Certificate result_;
};

}  // namespace

Certificate certify(const MarginConstraints& constraints, const Norm& norm, const Matrix& W,
                    const Vector& lambda) {
  return Verifier(*read_raw(constraints), norm, W, lambda).run();
}

Certificate certify(const Dataset& data, const MarginProblem& problem, const Norm& norm, const Matrix& W,
                    const Vector& lambda) {
  return Verifier(*read_raw(data, problem), norm, W, lambda).run();
}

}  // namespace attmirror
