// Data sets from .npz files. Messages call the arrays what the file calls them (X, x, Y, ...) and give indices in the
// shape of the file, because that is what the user can look up.
#include "data/dataset_reader.hpp"

#include "data/array_source.hpp"
#include "data/dataset_fingerprint.hpp"
#include "data/messages.hpp"
#include "data/token_rows.hpp"
#include <attmirror/base/error.hpp>

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace attmirror {

// Not anonymous: DatasetReader::State has members of these types.
namespace dataset_reading {

// The array under its usual name or in lower case.
NamedArray find_either_case(const ArraySource& file, const std::string& upper, const std::string& lower) {
  const NamedArray first = find(file, upper), second = find(file, lower);
  if (first && second)
    throw bad_input(fmt::format("both {} and {} are given: expected one of them", upper, lower));
  return second ? second : first;
}

NamedArray require(const NamedArray& found) {
  if (!found) {
    throw bad_input(fmt::format("missing array {}: expected X, Y and Z (or query_index)", found.name));
  }
  return found;
}

void require_shape(const NamedArray& found, const Shape& expected, const NamedArray& X) {
  if (found.shape() == expected) return;
  throw bad_input(fmt::format("{} has shape {}: expected {} to match {}", found.name,
                              to_string(found.shape()), to_string(expected), X.with_shape()));
}

Matrix finite_matrix(const NamedArray& found, std::ptrdiff_t rows, std::ptrdiff_t cols) {
  const std::vector<double> values = found.to_doubles();
  check_finite_piece(found, values, 0);
  return Eigen::Map<const Matrix>(values.data(), rows, cols);
}

void check_version(const ArraySource& file) {
  const NamedArray found = find(file, "format_version");
  if (!found) return;  // a file of the user's own making
  const std::vector<std::int64_t> version = found.to_int64();
  if (version.size() != 1 || version[0] != dataset_format_version) {
    throw bad_input(fmt::format("format_version is {}: this version of attmirror reads {}",
                                fmt::join(version, ", "), dataset_format_version));
  }
}

// Padded sequences: a box (n, T, d) of which `lengths` says how many rows of each sequence are tokens.
std::vector<std::int64_t> read_padded_lengths(const NamedArray& lengths, const NamedArray& X) {
  require_shape(lengths, {X.shape()[0]}, X);
  std::vector<std::int64_t> result = lengths.to_int64();
  for (std::size_t i = 0; i < result.size(); ++i)
    if (result[i] < 1 || result[i] > X.shape()[1])
      throw bad_whole_entry("lengths", i, result[i],
                            fmt::format("1 to {}, the tokens of {}", X.shape()[1], X.with_shape()));
  return result;
}

// Lengths of a box (n, T, d), full or padded, or of rows (sum of lengths, d). The axes of X say which it is.
std::vector<std::int64_t> read_lengths(const ArraySource& file, const NamedArray& X) {
  const NamedArray lengths = find(file, "lengths");
  const Shape& shape = X.shape();
  if (shape.size() != 2 && shape.size() != 3) {
    throw bad_input(fmt::format("{} has shape {}: expected (n, T, d), or (sum of lengths, d) with lengths",
                                X.name, to_string(shape)));
  }
  for (const std::int64_t extent : shape) {
    if (extent == 0)
      throw bad_input(fmt::format("{} has shape {}: expected no empty axis", X.name, to_string(shape)));
  }
  if (shape.size() == 3 && lengths) return read_padded_lengths(lengths, X);
  if (shape.size() == 3) return std::vector<std::int64_t>(static_cast<std::size_t>(shape[0]), shape[1]);
  if (!lengths) {
    throw bad_input(fmt::format("{} has shape {}: expected (n, T, d), or an array lengths beside it", X.name,
                                to_string(shape)));
  }
  if (lengths.shape().size() != 1) {
    throw bad_input(
        fmt::format("lengths has shape {}: expected (n,), one per sequence", to_string(lengths.shape())));
  }
  return lengths.to_int64();
}

// How the file lays out what there is for each query: axes (n, K), or one axis over all queries.
struct QueryLayout {
  std::int64_t n = 0;
  std::int64_t each = 1;               // K; 0 where query_counts says how many
  std::vector<std::int64_t> counts{};  // of query_counts
  std::int64_t total = 0;

  // The shape of an array with `rest` for each query. For one query each, the axis K = 1 may be left out.
  Shape shape(const Shape& rest) const {
    Shape result = each > 0 ? Shape{n, each} : Shape{total};
    result.insert(result.end(), rest.begin(), rest.end());
    return result;
  }
  void require(const NamedArray& found, const Shape& rest, const NamedArray& X) const {
    Shape without_axis{n};
    without_axis.insert(without_axis.end(), rest.begin(), rest.end());
    if (each == 1 && found.shape() == without_axis) return;
    if (found.shape() != shape(rest)) require_shape(found, each == 1 ? without_axis : shape(rest), X);
  }
};

// `found` is Z with rest = (d), or query_index with rest = ().
QueryLayout query_layout(const ArraySource& file, const NamedArray& found, const Shape& rest,
                         const NamedArray& X, std::int64_t n) {
  QueryLayout layout;
  layout.n = layout.total = n;
  if (const NamedArray counts = find(file, "query_counts")) {
    require_shape(counts, {n}, X);
    layout.each = 0;
    layout.counts = counts.to_int64();
    layout.total = found.shape().empty() ? 0 : found.shape()[0];
  } else if (found.shape().size() == rest.size() + 2) {
    layout.each = found.shape()[1];
    if (layout.each < 1)
      throw bad_input(fmt::format("{} has shape {}: expected 1 or more queries each", found.name,
                                  to_string(found.shape())));
    layout.total = n * layout.each;
    if (layout.each > 1) layout.counts.assign(static_cast<std::size_t>(n), layout.each);
  }
  layout.require(found, rest, X);
  return layout;
}

// Which sequence each query belongs to; counts that do not add up are left to Dataset to name.
std::vector<std::size_t> sequences_of(const QueryLayout& layout) {
  std::vector<std::size_t> result;
  const auto total = static_cast<std::size_t>(layout.total);
  for (std::size_t i = 0; i < static_cast<std::size_t>(layout.n); ++i) {
    const std::int64_t count = layout.counts.empty() ? 1 : layout.counts[i];
    for (std::int64_t k = 0; k < count && result.size() < total; ++k) result.push_back(i);
  }
  return result;
}

// Self-attention: each query is a token of its own sequence.
std::vector<std::int64_t> read_query_index(const NamedArray& found, const QueryLayout& layout,
                                           const DatasetArrays& data) {
  std::vector<std::int64_t> index = found.to_int64();
  const std::vector<std::size_t> sequence = sequences_of(layout);
  for (std::size_t j = 0; j < std::min(index.size(), sequence.size()); ++j) {
    const std::int64_t length = data.lengths[sequence[j]];
    if (index[j] < 0 || index[j] >= length)
      throw bad_input(fmt::format("query_index[{}] is {}: expected 0 to {}, a token of sequence {}",
                                  index_of(j, found.shape()), index[j], length - 1, sequence[j]));
  }
  return index;
}

// The index of row j of the mask, as its shape without the axis of tokens has it.
std::string mask_row_index(std::size_t j, Shape shape) {
  shape.pop_back();
  return index_of(j, shape);
}

// The mask of the file is a box as wide as the longest sequence, or as X (n, T, d); a Dataset wants each row as long as
// its sequence.
std::vector<std::uint8_t> read_mask(const NamedArray& found, const QueryLayout& layout,
                                    const DatasetArrays& data, const NamedArray& X) {
  std::int64_t widest = *std::ranges::max_element(data.lengths);
  const bool as_wide_as_longest = !found.shape().empty() && found.shape().back() == widest;
  if (X.shape().size() == 3 && !as_wide_as_longest) widest = X.shape()[1];
  layout.require(found, {widest}, X);
  const std::vector<std::size_t> sequence = sequences_of(layout);
  const auto width = static_cast<std::size_t>(widest);
  // As bytes: what lies beyond the end of a sequence may be anything, and is never looked at.
  constexpr std::uint8_t other = 2;
  std::vector<std::uint8_t> bits(static_cast<std::size_t>(layout.total) * width);
  std::optional<double> refused;
  std::vector<double> piece;
  found.read_pieces([&](std::size_t first, std::span<const std::byte> bytes) {
    piece.resize(bytes.size() / item_size(found.header.dtype));
    piece_to_doubles(found.header.dtype, bytes, piece.data(), found.name, found.shape(), first);
    for (std::size_t i = 0; i < piece.size(); ++i) {
      const std::size_t at = first + i;
      bits[at] = piece[i] == 0 ? 0 : piece[i] == 1 ? 1 : other;
      const std::size_t j = at / width;
      if (bits[at] == other && !refused && j < sequence.size() &&
          at % width < static_cast<std::size_t>(data.lengths[sequence[j]]))
        refused = piece[i];  // the first one, which the loop below finds
    }
  });
  std::vector<std::uint8_t> mask;
  for (std::size_t j = 0; j < sequence.size(); ++j) {
    bool any = false;
    for (std::size_t t = 0; t < static_cast<std::size_t>(data.lengths[sequence[j]]); ++t) {
      const std::uint8_t value = bits[j * width + t];
      if (value == other)
        throw bad_input(
            fmt::format("mask[{}] is {}: expected 0 or 1", index_of(j * width + t, found.shape()), *refused));
      any = any || value == 1;
      mask.push_back(value);
    }
    if (!any)
      throw bad_input(fmt::format("mask[{}] allows no token of sequence {}: expected 1 or more",
                                  mask_row_index(j, found.shape()), sequence[j]));
  }
  return mask;
}

std::vector<double> read_labels(const NamedArray& Y, const QueryLayout& layout, const NamedArray& X) {
  if (Y.shape() != Shape{layout.n}) {
    const Shape per_query = layout.shape({});
    if (Y.shape() != per_query) {
      if (layout.each == 1) require_shape(Y, {layout.n}, X);
      throw bad_input(
          fmt::format("{} has shape {}: expected {}, one label per sequence, or {}, one per query", Y.name,
                      to_string(Y.shape()), to_string(Shape{layout.n}), to_string(per_query)));
    }
  }
  std::vector<double> labels = Y.to_doubles();
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] != 1.0 && labels[i] != -1.0) {
      throw Error(
          ErrorKind::bad_input,
          fmt::format("labels[{}] is {}: expected -1 or +1 (array {})", index_of(i, Y.shape()), labels[i],
                      Y.name),
          {.field = "labels", .index = static_cast<std::int64_t>(i), .value = fmt::format("{}", labels[i])});
    }
  }
  return labels;
}

// Lengths must fit before queries are looked up by them; the other checks are those of Dataset itself.
void check_lengths(const DatasetArrays& data, const NamedArray& X) {
  if (X.shape().size() == 3) return;  // read_lengths() saw to it
  const std::int64_t rows = X.shape()[0];
  std::int64_t left = rows;
  for (std::size_t i = 0; i < data.lengths.size(); ++i) {
    if (data.lengths[i] < 1 || data.lengths[i] > left) {
      throw bad_whole_entry("lengths", i, data.lengths[i],
                            fmt::format("1 to {}, the rows of {} that are left", left, X.with_shape()));
    }
    left -= data.lengths[i];
  }
  if (data.lengths.empty() || left != 0) {
    throw bad_input(
        fmt::format("lengths add up to {}: expected {}, the rows of {}; padded sequences are X (n, T, d)",
                    rows - left, rows, X.with_shape()));
  }
}

// Arrays of other names are the user's own, unless they look like one of ours: a mask that is called Mask would be
// ignored in silence.
void check_names(const ArraySource& file) {
  constexpr std::array known{"lengths", "query_index", "query_counts", "mask", "format_version"};
  const auto plain = [](std::string name) {
    std::erase(name, '_');
    std::ranges::transform(name, name.begin(),
                           [](char c) { return c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c; });
    if (name.ends_with('s')) name.pop_back();
    return name;
  };
  for (const std::string& name : file.names())
    for (const char* ours : known)
      if (name != ours && plain(name) == plain(ours))
        throw bad_input(fmt::format("there is an array {}: expected the name {}", name, ours));
}

// What the data have no use for must be whole arrays all the same.
void check_others(const ArraySource& file) {
  constexpr std::array used{"X",
                            "x",
                            "Y",
                            "y",
                            "Z",
                            "z",
                            "v",
                            "V",
                            "lengths",
                            "query_index",
                            "query_counts",
                            "mask",
                            "format_version"};
  for (const std::string& name : file.names())
    if (std::ranges::find(used, name) == used.end())
      file.read_pieces(name, [](std::size_t, std::span<const std::byte>) {});
}

}  // namespace dataset_reading

using namespace dataset_reading;

struct DatasetReader::State {
  std::unique_ptr<const dataset_reading::ArraySource> source;
  dataset_reading::NamedArray X, Z;  // Z from nowhere: self-attention
  dataset_reading::KeptNumbers tokens;
  Dataset frame;
};

DatasetReader::DatasetReader(const NpzReader& file)
    : state_(std::make_unique<State>(State{std::make_unique<ArraysOfFile>(file), {}, {}, {}, Dataset()})) {
  read_frame();
}

DatasetReader::DatasetReader(const NamedArrays& arrays)
    : state_(
          std::make_unique<State>(State{std::make_unique<ArraysInMemory>(arrays), {}, {}, {}, Dataset()})) {
  read_frame();
}

void DatasetReader::read_frame() {
  const ArraySource& file = *state_->source;
  check_version(file);
  check_names(file);
  check_others(file);
  const NamedArray X = require(find_either_case(file, "X", "x"));
  const NamedArray Y = require(find_either_case(file, "Y", "y"));
  const NamedArray Z = find_either_case(file, "Z", "z");
  const NamedArray query_index = find(file, "query_index");
  if (Z && query_index)
    throw bad_input(fmt::format("both {} and query_index are given: expected one of them", Z.name));

  DatasetArrays data;
  data.lengths = read_lengths(file, X);
  check_lengths(data, X);
  const std::int64_t d = X.shape().back();
  const std::int64_t rows = std::accumulate(data.lengths.begin(), data.lengths.end(), std::int64_t{0});
  const auto n = static_cast<std::int64_t>(data.lengths.size());
  const QueryLayout layout =
      query_index ? query_layout(file, query_index, {}, X, n) : query_layout(file, require(Z), {d}, X, n);
  data.query_counts = layout.counts;
  data.labels = read_labels(Y, layout, X);
  if (query_index) data.query_index = read_query_index(query_index, layout, data);
  if (const NamedArray mask = find(file, "mask")) data.mask = read_mask(mask, layout, data, X);
  if (const NamedArray v = find(file, "v")) {
    require_shape(v, {d}, X);
    data.decoder = finite_matrix(v, 1, d).transpose();
  }
  if (const NamedArray V = find(file, "V")) {
    if (V.shape().size() != 2 || V.shape()[0] != d || V.shape()[1] == 0)
      throw bad_input(fmt::format("V has shape {}: expected ({}, m) to match {}", to_string(V.shape()), d,
                                  X.with_shape()));
    data.head = finite_matrix(V, d, V.shape()[1]);
  }
  const ConstMatrixView tokens{nullptr, rows, d, d};
  const ConstMatrixView queries{nullptr, query_index ? 0 : layout.total, query_index ? 0 : d, d};
  state_->frame.take(data, tokens, queries);
  const bool box = X.shape().size() == 3, lengths_given = static_cast<bool>(find(file, "lengths"));
  state_->frame.lengths_given_ = lengths_given;
  if (box && lengths_given) state_->tokens = KeptNumbers(X.shape(), data.lengths);
  state_->X = X;
  if (!query_index) state_->Z = Z;
}

DatasetReader::~DatasetReader() = default;

const Dataset& DatasetReader::frame() const { return state_->frame; }

std::string_view to_string(TokenLayout layout) {
  switch (layout) {
    case TokenLayout::box:
      return "box";
    case TokenLayout::padded:
      return "padded";
    case TokenLayout::ragged:
      return "ragged";
  }
  return "unknown";
}

TokenLayout DatasetReader::layout() const {
  if (tokens_shape().size() == 2) return TokenLayout::ragged;
  return state_->frame.lengths_given() ? TokenLayout::padded : TokenLayout::box;
}

const Shape& DatasetReader::tokens_shape() const { return state_->X.shape(); }

Dataset DatasetReader::load() && {
  Dataset data = std::move(state_->frame);
  data.tokens_ = finite_padded(state_->X, state_->tokens, data.total_tokens(), data.dim());
  if (state_->Z)
    data.queries_ = finite_padded(state_->Z, {}, data.total_queries(), data.dim());
  else
    data.gather_queries();
  data.fingerprint_ = data.compute_fingerprint();
  return data;
}

std::uint64_t DatasetReader::look_through(const UseRows& use) const {
  const Dataset& frame = state_->frame;
  const std::ptrdiff_t d = frame.dim();
  // The rows of tokens that are queries as well come after all tokens in the fingerprint.
  PaddedMatrix gathered(state_->Z ? 0 : frame.total_queries(), d);
  std::ptrdiff_t next_query = 0;  // of self-attention: those of the sequences before are gathered
  const auto gather = [&](std::ptrdiff_t first, ConstMatrixView rows) {
    if (state_->Z) return;
    for (std::ptrdiff_t j = next_query; j < frame.total_queries(); ++j) {
      const std::ptrdiff_t i = frame.sequence_of(j);
      if (frame.offset(i) >= first + rows.rows) break;
      const std::ptrdiff_t row = frame.offset(i) + frame.query_index()[static_cast<std::size_t>(j)] - first;
      if (row >= 0 && row < rows.rows) gathered.view().eigen().row(j) = rows.eigen().row(row);
      if (frame.offset(i + 1) <= first + rows.rows) next_query = j + 1;
    }
  };
  const auto add_entries = [](Fingerprint& print, std::span<const double> values) {
    for (const double value : values) print.add(value);
  };
  const auto add_sizes = [](Fingerprint& print, std::ptrdiff_t rows, std::ptrdiff_t cols) {
    print.add(rows);
    print.add(cols);
  };
  return frame.fingerprint_with(
      [&](Fingerprint& print) {
        add_sizes(print, frame.total_tokens(), d);
        RowBlocks blocks(d);
        const auto use_rows = [&](std::ptrdiff_t first, ConstMatrixView rows) {
          gather(first, rows);
          use(first, rows);
        };
        for_each_piece(state_->X, state_->tokens, [&](std::size_t, std::span<const double> values) {
          add_entries(print, values);
          blocks.add(values, use_rows);
        });
        blocks.finish(use_rows);
      },
      [&](Fingerprint& print) {
        if (!state_->Z) return print.add(gathered.view().eigen());
        add_sizes(print, frame.total_queries(), d);
        for_each_piece(state_->Z, {},
                       [&](std::size_t, std::span<const double> values) { add_entries(print, values); });
      });
}

}  // namespace attmirror
