#include "margin/scaled_constraints.hpp"

#include "margin/chosen_kernels.hpp"
#include "mirror/entries.hpp"

#include <algorithm>
#include <cmath>

namespace attmirror {

namespace {

double largest(const double* row, std::ptrdiff_t size) {
  double result = 0;
  for (std::ptrdiff_t i = 0; i < size; ++i) result = std::max(result, std::fabs(row[i]));
  return result;
}

void copy_scaled(const double* from, std::ptrdiff_t size, int exponent, double* to) {
  for (std::ptrdiff_t i = 0; i < size; ++i) to[i] = std::ldexp(from[i], exponent);
}

// Multiplications below which waking threads costs more than it saves.
constexpr std::ptrdiff_t least_shared_work = 200000;

template <class F>
void share_groups(std::ptrdiff_t groups, std::ptrdiff_t work, ThreadPool* pool, F&& f) {
  if (!pool || work <= least_shared_work) return f(0, groups);
  const Chunking parts = fixed_chunks(groups, 16, 64);
  pool->run(parts.count, [&](std::ptrdiff_t c) { f(parts.begin(c), parts.end(c)); });
}

}  // namespace

ScaledConstraints::ScaledConstraints(const MarginConstraints& constraints)
    : original_count_(constraints.count()) {
  const ConstMatrixView left = constraints.left(), right = constraints.right();
  // The groups and rows that say something.
  std::vector<std::ptrdiff_t> kept_groups;
  std::vector<int> left_exponents, right_exponents;
  for (std::ptrdiff_t g = 0; g < constraints.groups(); ++g) {
    const double z = largest(right.data + g * right.stride, right.cols);
    const std::size_t before = original_.size();
    for (std::ptrdiff_t k = constraints.first(g); k < constraints.first(g + 1); ++k) {
      const double a = largest(left.data + k * left.stride, left.cols);
      if (a == 0 || z == 0) {
        if (constraints.bounds()[static_cast<std::size_t>(k)] != 0 && !contradiction_) contradiction_ = k;
        continue;
      }
      original_.push_back(k);
      left_exponents.push_back(scale_exponent(a));
      exponents_.push_back(left_exponents.back() + scale_exponent(z));
      equality_.push_back(constraints.is_equality(k) ? 1 : 0);
      equalities_ += constraints.is_equality(k) ? 1 : 0;
      group_of_.push_back(static_cast<std::ptrdiff_t>(kept_groups.size()));
    }
    if (original_.size() == before) continue;
    kept_groups.push_back(g);
    right_exponents.push_back(scale_exponent(z));
    offsets_.push_back(static_cast<std::ptrdiff_t>(original_.size()));
  }

  left_ = PaddedMatrix(static_cast<std::ptrdiff_t>(original_.size()), constraints.rows());
  right_ = PaddedMatrix(static_cast<std::ptrdiff_t>(kept_groups.size()), constraints.cols());
  for (std::size_t k = 0; k < original_.size(); ++k)
    copy_scaled(left.data + original_[k] * left.stride, left.cols, -left_exponents[k],
                left_.view().data + static_cast<std::ptrdiff_t>(k) * left_.view().stride);
  for (std::size_t g = 0; g < kept_groups.size(); ++g)
    copy_scaled(right.data + kept_groups[g] * right.stride, right.cols, -right_exponents[g],
                right_.view().data + static_cast<std::ptrdiff_t>(g) * right_.view().stride);

  // c'_k = c_k 2^{-e_k - e}, and e makes the largest lie in [1/2, 1). The exponents are added before scaling: each
  // alone may leave the range of a double.
  bool any = false;
  for (std::size_t k = 0; k < original_.size(); ++k) {
    const double c = constraints.bounds()[static_cast<std::size_t>(original_[k])];
    if (c == 0) continue;
    const int size = scale_exponent(std::fabs(c)) - exponents_[k];
    bound_exponent_ = any ? std::max(bound_exponent_, size) : size;
    any = true;
  }
  for (std::size_t k = 0; k < original_.size(); ++k)
    bounds_.push_back(std::ldexp(constraints.bounds()[static_cast<std::size_t>(original_[k])],
                                 -exponents_[k] - bound_exponent_));
}

ScaledConstraints ScaledConstraints::subset(std::span<const std::ptrdiff_t> kept) const {
  ScaledConstraints result;
  result.original_count_ = original_count_;
  result.contradiction_ = contradiction_;
  result.bound_exponent_ = bound_exponent_;
  result.left_ = PaddedMatrix(static_cast<std::ptrdiff_t>(kept.size()), rows());
  std::vector<std::ptrdiff_t> groups_kept;
  const ConstMatrixView from = left(), z = right();
  for (std::size_t i = 0; i < kept.size(); ++i) {
    const auto k = static_cast<std::size_t>(kept[i]);
    if (groups_kept.empty() || groups_kept.back() != group_of_[k]) {
      if (!groups_kept.empty()) result.offsets_.push_back(static_cast<std::ptrdiff_t>(i));
      groups_kept.push_back(group_of_[k]);
    }
    result.group_of_.push_back(static_cast<std::ptrdiff_t>(groups_kept.size()) - 1);
    result.original_.push_back(original_[k]);
    result.bounds_.push_back(bounds_[k]);
    result.equality_.push_back(equality_[k]);
    result.equalities_ += equality_[k];
    result.exponents_.push_back(exponents_[k]);
    std::copy_n(from.data + kept[i] * from.stride, from.cols,
                result.left_.view().data + static_cast<std::ptrdiff_t>(i) * from.stride);
  }
  if (!kept.empty()) result.offsets_.push_back(static_cast<std::ptrdiff_t>(kept.size()));
  result.right_ = PaddedMatrix(static_cast<std::ptrdiff_t>(groups_kept.size()), cols());
  for (std::size_t g = 0; g < groups_kept.size(); ++g)
    std::copy_n(z.data + groups_kept[g] * z.stride, z.cols,
                result.right_.view().data + static_cast<std::ptrdiff_t>(g) * z.stride);
  return result;
}

ScaledConstraints ScaledConstraints::in_bases(const Matrix& P, const Matrix& Q) const {
  ScaledConstraints result = *this;
  result.left_ = PaddedMatrix(Matrix(left().eigen() * P));
  result.right_ = PaddedMatrix(Matrix(right().eigen() * Q));
  return result;
}

void ScaledConstraints::forward(ConstMatrixView W, PaddedMatrix& scratch, std::span<double> margins,
                                ThreadPool* pool) const {
  static thread_local AlignedVector transposed_space;
  AlignedVector& transposed = transposed_space;
  const std::ptrdiff_t stride = left().stride;
  transposed.assign(static_cast<std::size_t>(cols() * stride), 0.0);
  for (std::ptrdiff_t i = 0; i < rows(); ++i)
    for (std::ptrdiff_t j = 0; j < cols(); ++j)
      transposed[static_cast<std::size_t>(j * stride + i)] = W.data[i * W.stride + j];
  const kernels::ForwardTask task{
      .left = left().data,
      .left_stride = stride,
      .right = right().data,
      .right_stride = right().stride,
      .transposed = transposed.data(),
      .cols = cols(),
      .offsets = offsets_.data(),
      .products = scratch.view().data,
      .margins = margins.data(),
  };
  share_groups(groups(), count() * rows(), pool,
               [&, &kernel = constraint_kernels()](std::ptrdiff_t begin, std::ptrdiff_t end) {
                 kernel.forward(task, begin, end);
               });
}

void ScaledConstraints::adjoint(std::span<const double> lambda, PaddedMatrix& scratch, MatrixView out,
                                ThreadPool* pool) const {
  const kernels::AdjointTask task{
      .left = left().data,
      .left_stride = left().stride,
      .right = right().data,
      .right_stride = right().stride,
      .offsets = offsets_.data(),
      .lambda = lambda.data(),
      .sums = scratch.view().data,
      .groups = groups(),
      .rows = rows(),
      .out = out.data,
      .out_stride = out.stride,
  };
  const auto& kernel = constraint_kernels();
  share_groups(groups(), count() * rows(), pool,
               [&](std::ptrdiff_t begin, std::ptrdiff_t end) { kernel.adjoint_sums(task, begin, end); });
  // Each row of the result is a sum over all groups in their order, whoever forms it.
  constexpr std::ptrdiff_t together = 8;
  if (pool && groups() * rows() * cols() > least_shared_work)
    pool->run((rows() + together - 1) / together, [&](std::ptrdiff_t c) {
      kernel.adjoint_rows(task, c * together, std::min((c + 1) * together, rows()));
    });
  else
    kernel.adjoint_rows(task, 0, rows());
}

Matrix ScaledConstraints::unscale_weights(ConstMatrixView W) const {
  Matrix result = W.eigen();
  for (double& w : result.reshaped()) w = std::ldexp(w, bound_exponent_);
  return result;
}

Matrix ScaledConstraints::scale_weights(const Matrix& W) const {
  Matrix result = W;
  for (double& w : result.reshaped()) w = std::ldexp(w, -bound_exponent_);
  return result;
}

Vector ScaledConstraints::unscale_multipliers(std::span<const double> lambda) const {
  // Their common scale has no meaning: the exponents are shifted so that the largest is not beyond the range.
  int shift = 0;
  bool any = false;
  for (std::size_t k = 0; k < original_.size(); ++k)
    if (lambda[k] != 0) {
      shift = any ? std::min(shift, exponents_[k]) : exponents_[k];
      any = true;
    }
  if (std::abs(shift) < 200) shift = 0;
  Vector result = Vector::Zero(original_count_);
  for (std::size_t k = 0; k < original_.size(); ++k)
    result[original_[k]] = std::ldexp(lambda[k], shift - exponents_[k]);
  return result;
}

Vector ScaledConstraints::scale_multipliers(const Vector& lambda) const {
  Vector result(count());
  for (std::ptrdiff_t k = 0; k < count(); ++k)
    result[k] = std::ldexp(lambda[original_index(k)], exponents_[static_cast<std::size_t>(k)]);
  return result;
}

}  // namespace attmirror
