#include "data/padding.hpp"

#include <fmt/format.h>

namespace attmirror {

namespace {

bool seen_by_a_query(const Dataset& data, std::ptrdiff_t sequence, std::ptrdiff_t token) {
  if (data.mask() == Mask::none) return true;
  for (std::ptrdiff_t j = data.first_query(sequence); j < data.first_query(sequence + 1); ++j)
    if (data.allows(j, token)) return true;
  return false;
}

}  // namespace

void TrailingZeroRows::add(std::ptrdiff_t first, ConstMatrixView rows) {
  for (std::ptrdiff_t row = 0; row < rows.rows; ++row) {
    zeros_ = rows.eigen().row(row).isZero(0) ? zeros_ + 1 : 0;
    if (first + row + 1 == data_.offset(sequence_ + 1)) end_sequence();
  }
}

void TrailingZeroRows::end_sequence() {
  std::ptrdiff_t seen = 0;
  for (std::ptrdiff_t t = data_.length(sequence_) - zeros_; t < data_.length(sequence_); ++t)
    seen += seen_by_a_query(data_, sequence_, t) ? 1 : 0;
  if (seen > 0 && found_.sequences++ == 0) {
    found_.sequence = sequence_;
    found_.rows = seen;
  }
  found_.total_rows += seen;
  zeros_ = 0;
  ++sequence_;
}

std::optional<SuspectedPadding> TrailingZeroRows::found() const {
  return found_.sequences > 0 ? std::optional(found_) : std::nullopt;
}

std::optional<SuspectedPadding> trailing_zero_rows(const Dataset& data) {
  TrailingZeroRows rows(data);
  rows.add(0, data.all_tokens());
  return rows.found();
}

std::optional<SuspectedPadding> suspected_padding(const Dataset& data) {
  return data.lengths_given() ? std::nullopt : trailing_zero_rows(data);
}

std::string to_string(const SuspectedPadding& padding) {
  const auto rows = [](std::ptrdiff_t count) {
    return fmt::format("{} {} of zeros", count, count == 1 ? "row" : "rows");
  };
  const std::string others =
      padding.sequences == 1
          ? ""
          : fmt::format(" ({} in {} sequences in all)", rows(padding.total_rows), padding.sequences);
  return fmt::format(
      "sequence {} ends in {}{}: without lengths they are tokens like any other and become support tokens; if they are "
      "padding, give lengths (n), the number of tokens of each sequence",
      padding.sequence, rows(padding.rows), others);
}

}  // namespace attmirror
