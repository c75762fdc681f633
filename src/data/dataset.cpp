#include "data/dataset_fingerprint.hpp"
#include "data/messages.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/data/dataset.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

namespace attmirror {
namespace {

void check_finite(std::string_view name, ConstMatrixView values) {
  for (std::ptrdiff_t row = 0; row < values.rows; ++row) {
    for (std::ptrdiff_t col = 0; col < values.cols; ++col) {
      const double value = values.data[row * values.stride + col];
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
      throw bad_whole_entry("lengths", i, lengths[i], "1 or more tokens");
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

ConstMatrixView view_of(const Matrix& values) {
  return {values.data(), values.rows(), values.cols(), values.cols()};
}

// First query of each sequence, and the end of the last one.
std::vector<std::ptrdiff_t> query_offsets(const DatasetArrays& arrays, ConstMatrixView queries) {
  std::vector<std::ptrdiff_t> offsets{0};
  const std::size_t n = arrays.lengths.size();
  if (!arrays.query_counts.empty() && arrays.query_counts.size() != n)
    throw bad_input(fmt::format("query_counts has {} entries: expected {}, one per sequence, or none",
                                arrays.query_counts.size(), n));
  const bool self = !arrays.query_index.empty();
  const std::ptrdiff_t total = self ? static_cast<std::ptrdiff_t>(arrays.query_index.size()) : queries.rows;
  for (std::size_t i = 0; i < n; ++i) {
    const std::int64_t count = arrays.query_counts.empty() ? 1 : arrays.query_counts[i];
    // Compared with what is left, because the sum of hostile counts may overflow.
    if (count < 1 || count > total - offsets.back())
      throw bad_input(fmt::format("query_counts[{}] is {}: expected 1 to {}, the queries that are left", i,
                                  count, total - offsets.back()));
    offsets.push_back(offsets.back() + count);
  }
  if (offsets.back() != total)
    throw bad_input(
        fmt::format("query_counts add up to {}: expected {}, the number of queries", offsets.back(), total));
  return offsets;
}

void check_sizes(const DatasetArrays& arrays, ConstMatrixView tokens, ConstMatrixView queries) {
  const auto n = static_cast<std::ptrdiff_t>(arrays.lengths.size());
  const std::ptrdiff_t d = tokens.cols;
  if (n == 0) throw bad_input("lengths is empty: expected 1 or more sequences");
  if (d == 0) throw bad_input("tokens has 0 columns: expected 1 or more");
  const bool self = !arrays.query_index.empty();
  if (self && queries.rows * queries.cols != 0)
    throw bad_input("both queries and query_index are given: expected one of them");
  if (arrays.query_counts.empty()) {
    if (!self && (queries.rows != n || queries.cols != d))
      throw bad_input(
          fmt::format("queries has shape ({}, {}): expected ({}, {}) to match {} sequences of tokens of "
                      "dimension {}",
                      queries.rows, queries.cols, n, d, n, d));
    if (self && static_cast<std::ptrdiff_t>(arrays.query_index.size()) != n)
      throw bad_input(fmt::format("query_index has {} entries: expected {}, one per sequence",
                                  arrays.query_index.size(), n));
  } else if (!self && queries.cols != d) {
    throw bad_input(
        fmt::format("queries has {} columns: expected {}, the dimension of the tokens", queries.cols, d));
  }
  if (arrays.decoder.size() != 0 && arrays.decoder.size() != d) {
    throw bad_input(fmt::format("decoder has {} entries: expected {}, the dimension of the tokens, or none",
                                arrays.decoder.size(), d));
  }
  if (arrays.head.size() != 0 && arrays.head.rows() != d)
    throw bad_input(fmt::format("head has shape ({}, {}): expected {} rows, the dimension of the tokens",
                                arrays.head.rows(), arrays.head.cols(), d));
}

void check_labels(const std::vector<double>& labels) {
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] != 1.0 && labels[i] != -1.0) {
      throw bad_entry("labels", static_cast<std::int64_t>(i), labels[i], "-1 or +1");
    }
  }
}

}  // namespace

std::string_view to_string(Mask mask) {
  switch (mask) {
    case Mask::none:
      return "none";
    case Mask::causal:
      return "causal";
    case Mask::custom:
      return "custom";
  }
  return "unknown";
}

Dataset::Dataset(const DatasetArrays& arrays) {
  const ConstMatrixView tokens = view_of(arrays.tokens), queries = view_of(arrays.queries);
  take(arrays, tokens, queries);
  tokens_ = PaddedMatrix(arrays.tokens);
  if (query_index_.empty())
    queries_ = PaddedMatrix(arrays.queries);
  else
    gather_queries();
  fingerprint_ = compute_fingerprint();
}

void Dataset::take(const DatasetArrays& arrays, ConstMatrixView tokens, ConstMatrixView queries) {
  check_sizes(arrays, tokens, queries);
  offsets_ = running_offsets(arrays.lengths, tokens.rows);
  query_offsets_ = query_offsets(arrays, queries);
  const auto N = static_cast<std::size_t>(query_offsets_.back());
  for (std::ptrdiff_t i = 0; i < samples(); ++i)
    sequence_of_.insert(sequence_of_.end(), static_cast<std::size_t>(query_count(i)), i);

  if (tokens.data != nullptr) check_finite("tokens", tokens);
  if (queries.data != nullptr) check_finite("queries", queries);
  check_finite("head", view_of(arrays.head));
  check_labels(arrays.labels);
  if (arrays.labels.size() != offsets_.size() - 1 && arrays.labels.size() != N)
    throw bad_input(fmt::format("labels has {} entries: expected {}, one per sequence{}",
                                arrays.labels.size(), samples(),
                                N == offsets_.size() - 1 ? "" : fmt::format(", or {}, one per query", N)));
  for (std::ptrdiff_t j = 0; j < arrays.decoder.size(); ++j) {
    if (!std::isfinite(arrays.decoder[j])) {
      throw bad_entry("decoder", j, arrays.decoder[j], "a finite number");
    }
  }
  for (std::size_t j = 0; j < arrays.query_index.size(); ++j) {
    const std::ptrdiff_t i = sequence_of_[j];
    if (arrays.query_index[j] < 0 || arrays.query_index[j] >= length(i))
      throw bad_whole_entry("query_index", j, arrays.query_index[j],
                            fmt::format("0 to {}, a token of sequence {}", length(i) - 1, i));
  }

  tokens_ = PaddedMatrix(0, tokens.cols);
  queries_ = PaddedMatrix(0, tokens.cols);
  query_index_ = arrays.query_index;
  if (arrays.decoder.size() != 0) decoder_ = PaddedMatrix(arrays.decoder.transpose());
  if (arrays.head.size() != 0) head_ = PaddedMatrix(arrays.head.transpose());
  labels_.resize(N);
  for (std::size_t j = 0; j < N; ++j)
    labels_[j] = arrays.labels[arrays.labels.size() == N ? j : static_cast<std::size_t>(sequence_of_[j])];
  max_length_ = *std::max_element(arrays.lengths.begin(), arrays.lengths.end());
  if (!arrays.mask.empty()) take_mask(arrays.mask);
}

void Dataset::gather_queries() {
  queries_ = PaddedMatrix(total_queries(), dim());
  for (std::ptrdiff_t j = 0; j < total_queries(); ++j)
    queries_.view().eigen().row(j) =
        tokens_.view().eigen().row(offset(sequence_of(j)) + query_index_[static_cast<std::size_t>(j)]);
}

// Checks and stores a custom mask.
void Dataset::take_mask(const std::vector<std::uint8_t>& mask) {
  std::size_t expected = 0;
  for (const std::ptrdiff_t i : sequence_of_) {
    mask_offsets_.push_back(expected);
    expected += static_cast<std::size_t>(length(i));
  }
  if (mask.size() != expected)
    throw bad_input(fmt::format("mask has {} entries: expected {}, one per query and token of its sequence",
                                mask.size(), expected));
  mask_ = Mask::custom;
  mask_values_ = mask;
  for (std::ptrdiff_t j = 0; j < total_queries(); ++j) {
    const auto row = mask_row(j);
    for (std::size_t t = 0; t < row.size(); ++t)
      if (row[t] > 1)
        throw bad_input(fmt::format("mask of query {}, token {} is {}: expected 0 or 1", j, t, row[t]));
    if (std::ranges::count(row, 1) == 0)
      throw bad_input(fmt::format("mask of query {} allows no token: expected 1 or more", j));
  }
}

bool Dataset::equal_query_counts() const {
  for (std::ptrdiff_t i = 1; i < samples(); ++i)
    if (query_count(i) != query_count(0)) return false;
  return true;
}

std::span<const std::uint8_t> Dataset::mask_row(std::ptrdiff_t j) const {
  const auto size = static_cast<std::size_t>(length(sequence_of(j)));
  return std::span(mask_values_).subspan(mask_offsets_[static_cast<std::size_t>(j)], size);
}

std::ptrdiff_t Dataset::attended_length(std::ptrdiff_t j) const {
  return mask_ == Mask::causal ? query_index_[static_cast<std::size_t>(j)] + 1 : length(sequence_of(j));
}

bool Dataset::allows(std::ptrdiff_t j, std::ptrdiff_t t) const {
  if (mask_ == Mask::custom) return mask_row(j)[static_cast<std::size_t>(t)] != 0;
  return t < attended_length(j);
}

std::uint64_t Dataset::compute_fingerprint() const {
  return fingerprint_with([this](Fingerprint& print) { print.add(tokens_.view().eigen()); },
                          [this](Fingerprint& print) { print.add(queries_.view().eigen()); });
}

Dataset with_causal_mask(Dataset data) {
  if (data.query_index_.empty())
    throw bad_input(
        "a causal mask needs queries that are tokens of their sequence: give query_index instead of Z");
  if (data.mask_ == Mask::custom)
    throw bad_input("the data have a mask of their own: expected none beside a causal mask");
  data.mask_ = Mask::causal;
  data.fingerprint_ = data.compute_fingerprint();
  return data;
}

std::string to_string(const Dataset& data) {
  const auto [shortest, longest] = [&] {
    std::ptrdiff_t least = data.max_length();
    for (std::ptrdiff_t i = 0; i < data.samples(); ++i) least = std::min(least, data.length(i));
    return std::pair{least, data.max_length()};
  }();
  const std::string lengths =
      shortest == longest ? fmt::format("{}", longest) : fmt::format("{} to {}", shortest, longest);
  std::string text =
      fmt::format("{} sequence{} of {} token{}, dimension {}", data.samples(), data.samples() == 1 ? "" : "s",
                  lengths, longest == 1 ? "" : "s", data.dim());
  if (!data.one_query_each()) text += fmt::format(", {} queries", data.total_queries());
  if (!data.query_index().empty()) text += ", self-attention";
  if (data.mask() != Mask::none) text += fmt::format(", {} mask", to_string(data.mask()));
  if (data.head_weights().rows > 0) text += fmt::format(", with ReLU head of {}", data.head_weights().rows);
  return text + (data.has_decoder() ? ", with decoder" : ", no decoder");
}

}  // namespace attmirror
