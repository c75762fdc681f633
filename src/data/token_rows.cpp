#include "data/token_rows.hpp"

#include <attmirror/base/error.hpp>

#include <cmath>

#include <fmt/format.h>

namespace attmirror::dataset_reading {

KeptNumbers::KeptNumbers(const Shape& box, std::span<const std::int64_t> lengths) {
  const auto d = static_cast<std::size_t>(box[2]);
  stride_ = static_cast<std::size_t>(box[1]) * d;
  ends_.push_back(0);
  for (const std::int64_t length : lengths)
    ends_.push_back(ends_.back() + static_cast<std::size_t>(length) * d);
}

std::size_t KeptNumbers::before(std::size_t position) const {
  if (stride_ == 0) return position;
  const std::size_t sequence = position / stride_;
  if (sequence + 1 >= ends_.size()) return ends_.back();
  return std::min(ends_[sequence] + position % stride_, ends_[sequence + 1]);
}

std::vector<KeptNumbers::Part> KeptNumbers::parts(std::size_t first, std::size_t count) const {
  if (stride_ == 0) return {{0, count}};
  std::vector<Part> result;
  const std::size_t end = first + count;
  for (std::size_t sequence = first / stride_; sequence * stride_ < end; ++sequence) {
    const std::size_t kept_end = sequence * stride_ + ends_[sequence + 1] - ends_[sequence];
    const std::size_t from = std::max(first, sequence * stride_), to = std::min(end, kept_end);
    if (from < to) result.push_back({from - first, to - from});
  }
  return result;
}

void check_finite_piece(const NamedArray& found, std::span<const double> values, std::size_t first) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::isfinite(values[i])) continue;
    // Many pad with NaN.
    const bool box_without_lengths = (found.name == "X" || found.name == "x") && found.shape().size() == 3 &&
                                     !find(*found.source, "lengths");
    throw bad_input(fmt::format(
        "{}[{}] is {}: expected a finite number{}", found.name, index_of(first + i, found.shape()), values[i],
        box_without_lengths && std::isnan(values[i])
            ? "; if it is padding, give lengths (n), the number of tokens of each sequence"
            : ""));
  }
}

void for_each_piece(const NamedArray& found, const KeptNumbers& kept, const UseNumbers& use) {
  std::vector<double> values;
  const std::size_t item = item_size(found.header.dtype);
  found.read_pieces([&](std::size_t first, std::span<const std::byte> bytes) {
    values.resize(bytes.size() / item);
    std::size_t filled = 0;
    for (const KeptNumbers::Part& part : kept.parts(first, bytes.size() / item)) {
      piece_to_doubles(found.header.dtype, bytes.subspan(part.from * item, part.count * item),
                       values.data() + filled, found.name, found.shape(), first + part.from);
      check_finite_piece(found, std::span(values).subspan(filled, part.count), first + part.from);
      filled += part.count;
    }
    if (filled > 0) use(kept.before(first), std::span<const double>(values.data(), filled));
  });
}

PaddedMatrix finite_padded(const NamedArray& found, const KeptNumbers& kept, std::ptrdiff_t rows,
                           std::ptrdiff_t cols) {
  PaddedMatrix result(rows, cols);
  const MatrixView into = result.view();
  for_each_piece(found, kept, [&](std::size_t first, std::span<const double> values) {
    auto at = static_cast<std::ptrdiff_t>(first);
    for (std::size_t i = 0; i < values.size();) {
      const std::ptrdiff_t row = at / cols, col = at % cols;
      const std::size_t count = std::min(values.size() - i, static_cast<std::size_t>(cols - col));
      std::copy_n(values.data() + i, count, into.data + row * into.stride + col);
      i += count;
      at += static_cast<std::ptrdiff_t>(count);
    }
  });
  return result;
}

}  // namespace attmirror::dataset_reading
