// The rows of X as they go by, without those that pad a sequence: what stands there is not looked at, so that
// it may be anything, NaN included. Internal.
#pragma once

#include "data/array_piece.hpp"
#include "data/array_source.hpp"
#include <attmirror/base/matrix.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace attmirror::dataset_reading {

// Which numbers of an array there are: all, or of a box (n, T, d) the first lengths[i] rows of sequence i.
class KeptNumbers {
 public:
  KeptNumbers() = default;
  KeptNumbers(const Shape& box, std::span<const std::int64_t> lengths);

  struct Part {
    std::size_t from, count;  // of the piece, in numbers
  };
  // Those of the piece of `count` numbers that begins with number `first` of the array.
  std::vector<Part> parts(std::size_t first, std::size_t count) const;
  // The number of kept numbers before number `position`.
  std::size_t before(std::size_t position) const;

 private:
  std::size_t stride_ = 0;         // numbers of a sequence with its padding; 0: everything is kept
  std::vector<std::size_t> ends_;  // kept numbers of sequences 0 to i - 1
};

// Throws Error (bad input) for a number that is not finite; `first` is the position of the first in the
// array.
void check_finite_piece(const NamedArray& found, std::span<const double> values, std::size_t first);

// The kept numbers of an array, finite doubles, piece by piece: use(first, values), where `first` counts kept
// numbers.
using UseNumbers = std::function<void(std::size_t first, std::span<const double> values)>;
void for_each_piece(const NamedArray& found, const KeptNumbers& kept, const UseNumbers& use);

// Straight to where they stay: there is never a second copy of a large array.
PaddedMatrix finite_padded(const NamedArray& found, const KeptNumbers& kept, std::ptrdiff_t rows,
                           std::ptrdiff_t cols);

// Blocks of whole rows from pieces of any size, in memory as a Dataset keeps them. A block begins at a
// multiple of eight rows unless rows are very long, so that what is computed of it does not depend on how the
// numbers came.
class RowBlocks {
 public:
  explicit RowBlocks(std::ptrdiff_t cols)
      : block_(cols > 65536 ? 1 : 8 * std::max<std::ptrdiff_t>(1, 8192 / cols), cols) {}

  // use(first, rows) for every block that is full.
  template <class Use>
  void add(std::span<const double> values, Use use) {
    const MatrixView block = block_.view();
    while (!values.empty()) {
      const std::size_t count = std::min(values.size(), static_cast<std::size_t>(block.cols - col_));
      std::copy_n(values.data(), count, block.data + rows_ * block.stride + col_);
      values = values.subspan(count);
      col_ = (col_ + static_cast<std::ptrdiff_t>(count)) % block.cols;
      if (col_ == 0 && ++rows_ == block.rows) finish(use);
    }
  }

  // The rows of the last block.
  template <class Use>
  void finish(Use use) {
    if (rows_ == 0) return;
    ConstMatrixView rows = block_.view();
    rows.rows = rows_;
    use(first_, rows);
    first_ += rows_;
    rows_ = 0;
  }

 private:
  PaddedMatrix block_;
  std::ptrdiff_t first_ = 0, rows_ = 0, col_ = 0;  // rows_ whole rows since row first_ of all
};

}  // namespace attmirror::dataset_reading
