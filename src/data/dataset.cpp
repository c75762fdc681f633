#include <attmirror/base/error.hpp>
#include <attmirror/base/fingerprint.hpp>
#include <attmirror/data/dataset.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

namespace attmirror {
namespace {

void check_finite(std::string_view name, const Matrix& values) {
  for (std::ptrdiff_t row = 0; row < values.rows(); ++row) {
    for (std::ptrdiff_t col = 0; col < values.cols(); ++col) {
      const double value = values(row, col);
      if (!std::isfinite(value)) {
        throw bad_input(fmt::format("{}[{},{}] is {}: expected a finite number", name, row, col, value));
      }
    }
  }
}

// First row of each sequence, and the end of the last one.
std::vector<std::ptrdiff_t> running_offsets(const std::vector<std::int64_t>& lengths, std::ptrdiff_t rows) {
  std::vector<std::ptrdiff_t> offsets;
  offsets.reserve(lengths.size() + 1);
  offsets.push_back(0);
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    if (lengths[i] < 1) {
      throw bad_input(fmt::format("lengths[{}] is {}: expected 1 or more tokens", i, lengths[i]));
    }
    // Compared with what is left, because the sum of hostile lengths may overflow.
    if (lengths[i] > rows - offsets.back()) {
      throw bad_input(fmt::format("lengths[{}] is {}: only {} of the {} rows of tokens are left for it", i,
                                  lengths[i], rows - offsets.back(), rows));
    }
    offsets.push_back(offsets.back() + lengths[i]);
  }
  if (offsets.back() != rows) {
    throw bad_input(
        fmt::format("lengths add up to {}: expected {}, the number of rows of tokens", offsets.back(), rows));
  }
  return offsets;
}

void check_sizes(const DatasetArrays& arrays) {
  const auto n = static_cast<std::ptrdiff_t>(arrays.lengths.size());
  const std::ptrdiff_t d = arrays.tokens.cols();
  if (n == 0) throw bad_input("lengths is empty: expected 1 or more sequences");
  if (d == 0) throw bad_input("tokens has 0 columns: expected 1 or more");
  if (arrays.queries.rows() != n || arrays.queries.cols() != d) {
    throw bad_input(
        fmt::format("queries has shape ({}, {}): expected ({}, {}) to match {} sequences of tokens of "
                    "dimension {}",
                    arrays.queries.rows(), arrays.queries.cols(), n, d, n, d));
  }
  if (static_cast<std::ptrdiff_t>(arrays.labels.size()) != n) {
    throw bad_input(
        fmt::format("labels has {} entries: expected {}, one per sequence", arrays.labels.size(), n));
  }
  if (arrays.decoder.size() != 0 && arrays.decoder.size() != d) {
    throw bad_input(fmt::format("decoder has {} entries: expected {}, the dimension of the tokens, or none",
                                arrays.decoder.size(), d));
  }
}

void check_labels(const std::vector<double>& labels) {
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] != 1.0 && labels[i] != -1.0) {
      throw bad_input(fmt::format("labels[{}] is {}: expected -1 or +1", i, labels[i]));
    }
  }
}

}  // namespace

Dataset::Dataset(const DatasetArrays& arrays) {
  check_sizes(arrays);
  offsets_ = running_offsets(arrays.lengths, arrays.tokens.rows());
  check_finite("tokens", arrays.tokens);
  check_finite("queries", arrays.queries);
  check_labels(arrays.labels);
  for (std::ptrdiff_t j = 0; j < arrays.decoder.size(); ++j) {
    if (!std::isfinite(arrays.decoder[j])) {
      throw bad_input(fmt::format("decoder[{}] is {}: expected a finite number", j, arrays.decoder[j]));
    }
  }

  tokens_ = PaddedMatrix(arrays.tokens);
  queries_ = PaddedMatrix(arrays.queries);
  if (arrays.decoder.size() != 0) decoder_ = PaddedMatrix(arrays.decoder.transpose());
  labels_.assign(arrays.labels.begin(), arrays.labels.end());
  max_length_ = *std::max_element(arrays.lengths.begin(), arrays.lengths.end());

  Fingerprint print;
  for (const std::ptrdiff_t offset : offsets_) print.add(offset);
  print.add(tokens_.view().eigen());
  print.add(queries_.view().eigen());
  for (const double label : labels_) print.add(label);
  print.add(decoder_.view().eigen());
  fingerprint_ = print.value();
}

std::string to_string(const Dataset& data) {
  const auto [shortest, longest] = [&] {
    std::ptrdiff_t least = data.max_length();
    for (std::ptrdiff_t i = 0; i < data.samples(); ++i) least = std::min(least, data.length(i));
    return std::pair{least, data.max_length()};
  }();
  const std::string lengths =
      shortest == longest ? fmt::format("{}", longest) : fmt::format("{} to {}", shortest, longest);
  return fmt::format("{} sequence{} of {} token{}, dimension {}, {}", data.samples(),
                     data.samples() == 1 ? "" : "s", lengths, longest == 1 ? "" : "s", data.dim(),
                     data.has_decoder() ? "with decoder" : "no decoder");
}

}  // namespace attmirror
