#include "margin/normal_matrix.hpp"

namespace attmirror {

void normal_matrix(const ScaledConstraints& constraints, std::span<const std::ptrdiff_t> J, ConstMatrixView D,
                   MatrixView out, ThreadPool*) {
  const auto a = constraints.left().eigen(), z = constraints.right().eigen(), d = D.eigen();
  auto m = out.eigen();
  Vector h(constraints.rows());
  // Blocks of constraints of one group, [begin, end) in J.
  const auto size = static_cast<std::ptrdiff_t>(J.size());
  const auto group = [&](std::ptrdiff_t i) { return constraints.group_of(J[static_cast<std::size_t>(i)]); };
  const auto block_end = [&](std::ptrdiff_t begin) {
    std::ptrdiff_t end = begin;
    while (end < size && group(end) == group(begin)) ++end;
    return end;
  };
  for (std::ptrdiff_t r = 0; r < size; r = block_end(r))
    for (std::ptrdiff_t s = 0; s <= r; s = block_end(s)) {
      h.noalias() = d * (z.row(group(r)).array() * z.row(group(s)).array()).matrix().transpose();
      for (std::ptrdiff_t k = r; k < block_end(r); ++k)
        for (std::ptrdiff_t l = s; l < block_end(s) && l <= k; ++l)
          m(k, l) = (a.row(J[static_cast<std::size_t>(k)]).array() *
                     a.row(J[static_cast<std::size_t>(l)]).array() * h.transpose().array())
                        .sum();
    }
}

void normal_matrix_identity(const ScaledConstraints& constraints, std::span<const std::ptrdiff_t> J,
                            MatrixView out, ThreadPool*) {
  const auto a = constraints.left().eigen(), z = constraints.right().eigen();
  auto m = out.eigen();
  for (std::size_t k = 0; k < J.size(); ++k)
    for (std::size_t l = 0; l <= k; ++l)
      m(static_cast<std::ptrdiff_t>(k), static_cast<std::ptrdiff_t>(l)) =
          a.row(J[k]).dot(a.row(J[l])) *
          z.row(constraints.group_of(J[k])).dot(z.row(constraints.group_of(J[l])));
}

}  // namespace attmirror
