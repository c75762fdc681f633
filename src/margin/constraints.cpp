#include <attmirror/base/error.hpp>
#include <attmirror/margin/constraints.hpp>

#include <cmath>
#include <limits>

#include <fmt/format.h>

namespace attmirror {

namespace {

void check_finite(const Matrix& values, std::string_view name) {
  for (std::ptrdiff_t i = 0; i < values.rows(); ++i)
    for (std::ptrdiff_t j = 0; j < values.cols(); ++j)
      if (!std::isfinite(values(i, j)))
        throw bad_input(fmt::format("{}[{},{}] is {}: expected a finite number", name, i, j, values(i, j)));
}

void check_size(std::size_t size, std::ptrdiff_t expected, std::string_view name, std::string_view what) {
  if (static_cast<std::ptrdiff_t>(size) != expected)
    throw bad_input(fmt::format("{} has {} entries: expected {}, one per {}", name, size, expected, what));
}

}  // namespace

MarginConstraints::MarginConstraints(const ConstraintArrays& arrays) {
  const std::ptrdiff_t m = arrays.left.rows();
  if (arrays.left.cols() == 0) throw bad_input("left has no columns: W would have no rows");
  if (arrays.right.cols() == 0) throw bad_input("right has no columns: W would have none either");
  check_size(arrays.group_sizes.size(), arrays.right.rows(), "group_sizes", "row of right");
  check_size(arrays.bounds.size(), m, "bounds", "row of left");
  if (!arrays.relations.empty()) check_size(arrays.relations.size(), m, "relations", "row of left");
  if (!arrays.origins.empty()) check_size(arrays.origins.size(), m, "origins", "row of left");
  check_finite(arrays.left, "left");
  check_finite(arrays.right, "right");

  offsets_ = {0};
  for (std::size_t g = 0; g < arrays.group_sizes.size(); ++g) {
    const std::int64_t size = arrays.group_sizes[g];
    if (size < 0 || size > m - offsets_.back())
      throw bad_input(fmt::format("group_sizes[{}] is {}: expected 0 to {}, the constraints that are left", g,
                                  size, m - offsets_.back()));
    offsets_.push_back(offsets_.back() + size);
    group_of_.resize(static_cast<std::size_t>(offsets_.back()), static_cast<std::ptrdiff_t>(g));
  }
  if (offsets_.back() != m)
    throw bad_input(
        fmt::format("group_sizes add up to {}: expected {}, the rows of left", offsets_.back(), m));

  relations_ = arrays.relations;
  if (relations_.empty()) relations_.assign(static_cast<std::size_t>(m), Relation::at_least);
  bounds_ = arrays.bounds;
  for (std::size_t k = 0; k < bounds_.size(); ++k) {
    if (!std::isfinite(bounds_[k]))
      throw bad_input(fmt::format("bounds[{}] is {}: expected a finite number", k, bounds_[k]));
    // With a negative bound a larger W is not better than a smaller one, and margins lose their meaning.
    if (relations_[k] == Relation::at_least && bounds_[k] < 0)
      throw bad_input(
          fmt::format("bounds[{}] is {}: expected a number >= 0 for an inequality", k, bounds_[k]));
  }
  origins_ = arrays.origins;
  if (origins_.empty())
    for (std::size_t k = 0; k < bounds_.size(); ++k) {
      const std::ptrdiff_t g = group_of_[k];
      origins_.push_back({g, 0, static_cast<std::int64_t>(k) - first(g)});
    }
  left_ = PaddedMatrix(arrays.left);
  right_ = PaddedMatrix(arrays.right);
}

}  // namespace attmirror
