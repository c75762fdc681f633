// B D B^T where D couples an entry with its mirror image, as second derivatives of functions of singular values do (see
// normal_matrix.hpp). For a pair of groups g, g' with constraints k and l, and rotated a~, z~,
//
//   alpha's part   sum_i a~_ki a~_li h_i,   h = alpha (z~_g o z~_g')
//   beta's part    (a~_k o z~_g')^T beta (a~_l o z~_g)       over the entries that both sides have
//
// are two small matrix products for all k in g and l in g' together.
#include "margin/normal_matrix.hpp"

#include <algorithm>

namespace attmirror {

void normal_matrix_spectral(const ScaledConstraints& constraints, const SpectralWeights& weights,
                            MatrixView out, ThreadPool* pool) {
  const auto a = weights.left.view().eigen(), z = weights.right.view().eigen();
  const std::ptrdiff_t both = weights.beta.rows(), groups = constraints.groups();
  const auto row_of_groups = [&](std::ptrdiff_t g) {
    auto m = out.eigen();
    const std::ptrdiff_t k = constraints.first(g), size = constraints.first(g + 1) - k;
    Matrix scaled, mirrored;
    Vector h;
    for (std::ptrdiff_t other = 0; other <= g; ++other) {
      const std::ptrdiff_t l = constraints.first(other), width = constraints.first(other + 1) - l;
      h.noalias() = weights.alpha * z.row(g).cwiseProduct(z.row(other)).transpose();
      scaled = a.middleRows(k, size) * h.asDiagonal();
      m.block(k, l, size, width).noalias() = scaled * a.middleRows(l, width).transpose();
      scaled = a.block(l, 0, width, both) * z.row(g).head(both).asDiagonal();
      mirrored.noalias() = scaled * weights.beta;
      scaled = a.block(k, 0, size, both) * z.row(other).head(both).asDiagonal();
      m.block(k, l, size, width).noalias() += scaled * mirrored.transpose();
    }
  };
  // Each task writes its own rows; the bits do not depend on who does it.
  if (pool != nullptr)
    pool->run(groups, [&](std::ptrdiff_t g) { row_of_groups(g); });
  else
    for (std::ptrdiff_t g = 0; g < groups; ++g) row_of_groups(g);
}

void normal_matrix_products(const ScaledConstraints& constraints, const Matrix& P, const Matrix& C,
                            const Matrix& Q, MatrixView out, ThreadPool* pool) {
  const auto a = constraints.left().eigen(), z = constraints.right().eigen();
  const Matrix aP = a * P, zQz = z * (Q * z.transpose()), aCz = a * (C * z.transpose());
  // Rows in blocks, so that a block of products a_k^T P a_l stays in the cache until it is weighted.
  constexpr std::ptrdiff_t rows_at_once = 64;
  const std::ptrdiff_t count = constraints.count(), blocks = (count + rows_at_once - 1) / rows_at_once;
  const auto block_of_rows = [&](std::ptrdiff_t block) {
    auto m = out.eigen();
    const std::ptrdiff_t begin = block * rows_at_once, end = std::min(begin + rows_at_once, count);
    m.block(begin, 0, end - begin, end).noalias() =
        aP.middleRows(begin, end - begin) * a.topRows(end).transpose();
    for (std::ptrdiff_t k = begin; k < end; ++k) {
      const std::ptrdiff_t g = constraints.group_of(k);
      for (std::ptrdiff_t other = 0; other <= g; ++other) {
        const double same = 0.5 * zQz(g, other), crossed = 0.5 * aCz(k, other);
        const std::ptrdiff_t last = std::min(constraints.first(other + 1), k + 1);
        for (std::ptrdiff_t l = constraints.first(other); l < last; ++l)
          m(k, l) = same * m(k, l) + crossed * aCz(l, g);
      }
    }
  };
  if (pool != nullptr)
    pool->run(blocks, [&](std::ptrdiff_t block) { block_of_rows(block); });
  else
    for (std::ptrdiff_t block = 0; block < blocks; ++block) block_of_rows(block);
}

}  // namespace attmirror
