#include "next_token/difference_problem.hpp"

#include <attmirror/base/error.hpp>

#include <fmt/format.h>

namespace attmirror {

std::ptrdiff_t DifferenceProblem::count() const {
  std::ptrdiff_t result = 0;
  for (const Group& group : groups) result += std::ssize(group.differences);
  return result;
}

MarginConstraints dense_constraints(const DifferenceProblem& problem) {
  const std::ptrdiff_t m = problem.count(), groups = std::ssize(problem.groups);
  if (m > max_dense_numbers / problem.rows())
    throw bad_input(
        fmt::format("the problem has {} constraints of {} numbers each, {:.1f} GB: embeddings that are not "
                    "orthonormal allow at most {:.1f} GB",
                    m, problem.rows(), 8e-9 * static_cast<double>(m) * static_cast<double>(problem.rows()),
                    8e-9 * static_cast<double>(max_dense_numbers)));
  const auto E = problem.embedding->vectors.view().eigen();
  ConstraintArrays arrays;
  arrays.left = Matrix::Zero(m, problem.rows());
  arrays.right.resize(groups, problem.cols());
  arrays.group_sizes.reserve(problem.groups.size());
  std::ptrdiff_t k = 0;
  for (std::ptrdiff_t g = 0; g < groups; ++g) {
    const DifferenceProblem::Group& group = problem.groups[static_cast<std::size_t>(g)];
    arrays.right.row(g) = E.row(group.token);
    arrays.group_sizes.push_back(std::ssize(group.differences));
    for (const Difference& d : group.differences) {
      if (problem.left == LeftVectors::units) {
        arrays.left(k, d.better) = 1;
        arrays.left(k, d.worse) = -1;
      } else {
        arrays.left.row(k) = E.row(d.better) - E.row(d.worse);
      }
      arrays.bounds.push_back(d.bound());
      arrays.relations.push_back(d.relation);
      arrays.origins.push_back({group.token, d.better, d.worse});
      ++k;
    }
  }
  return MarginConstraints(arrays);
}

}  // namespace attmirror
