// Rows of zeros at the ends of sequences, found while the tokens go by. Internal.
#pragma once

#include <attmirror/data/dataset.hpp>

#include <cstddef>
#include <optional>

namespace attmirror {

// The rows of tokens come in order and in pieces of any size; the data need not hold them (DatasetReader).
class TrailingZeroRows {
 public:
  explicit TrailingZeroRows(const Dataset& data) : data_(data) {}

  // The rows first, first + 1, ... of all tokens.
  void add(std::ptrdiff_t first, ConstMatrixView rows);

  // After all rows. Those that the data's mask hides from every query are left out.
  std::optional<SuspectedPadding> found() const;

 private:
  void end_sequence();

  const Dataset& data_;
  std::ptrdiff_t sequence_ = 0, zeros_ = 0;  // rows of zeros since the last other row of this sequence
  SuspectedPadding found_;
};

// Whether or not the lengths were given.
std::optional<SuspectedPadding> trailing_zero_rows(const Dataset& data);

}  // namespace attmirror
