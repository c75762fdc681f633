// Data sets as .npz files. Messages call the arrays what the file calls them (X, x, Y, ...) and give indices
// in the shape of the file, because that is what the user can look up.
#include "data/dataset_arrays.hpp"
#include "data/messages.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/data/array.hpp>
#include <attmirror/data/dataset.hpp>
#include <attmirror/data/npz.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace attmirror {
namespace {

constexpr std::int64_t format_version = 1;

struct NamedArray {
  std::string name;
  const Array* array = nullptr;
  explicit operator bool() const { return array != nullptr; }
  const Shape& shape() const { return array->shape(); }
  std::string with_shape() const { return name + " " + to_string(shape()); }
};

NamedArray find(const NamedArrays& arrays, const std::string& name) {
  const auto found = arrays.find(name);
  return found == arrays.end() ? NamedArray{name, nullptr} : NamedArray{name, &found->second};
}

// The array under its usual name or in lower case.
NamedArray find_either_case(const NamedArrays& arrays, const std::string& upper, const std::string& lower) {
  const NamedArray first = find(arrays, upper), second = find(arrays, lower);
  if (first && second)
    throw bad_input(fmt::format("both {} and {} are there: expected one of them", upper, lower));
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

// "2,0,1" for the element at `position` in C order.
std::string index_of(std::size_t position, const Shape& shape) {
  std::vector<std::size_t> index(shape.size());
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    const auto extent = static_cast<std::size_t>(shape[axis]);
    index[axis] = position % extent;
    position /= extent;
  }
  return fmt::format("{}", fmt::join(index, ","));
}

std::vector<double> finite_numbers(const NamedArray& found) {
  std::vector<double> values = found.array->to_doubles(found.name);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i])) {
      throw bad_input(fmt::format("{}[{}] is {}: expected a finite number", found.name,
                                  index_of(i, found.shape()), values[i]));
    }
  }
  return values;
}

Matrix finite_matrix(const NamedArray& found, std::ptrdiff_t rows, std::ptrdiff_t cols) {
  const std::vector<double> values = finite_numbers(found);
  return Eigen::Map<const Matrix>(values.data(), rows, cols);
}

void check_version(const NamedArrays& arrays) {
  const NamedArray found = find(arrays, "format_version");
  if (!found) return;  // a file of the user's own making
  const std::vector<std::int64_t> version = found.array->to_int64(found.name);
  if (version.size() != 1 || version[0] != format_version) {
    throw bad_input(fmt::format("format_version is {}: this version of attmirror reads {}",
                                fmt::join(version, ", "), format_version));
  }
}

// Tokens and lengths, from a box (n, T, d) or from rows (sum of lengths, d) with `lengths`.
DatasetArrays read_tokens(const NamedArrays& arrays, const NamedArray& X) {
  DatasetArrays data;
  const NamedArray lengths = find(arrays, "lengths");
  const Shape& shape = X.shape();
  if (shape.size() != 2 && shape.size() != 3) {
    throw bad_input(fmt::format("{} has shape {}: expected (n, T, d), or (sum of lengths, d) with lengths",
                                X.name, to_string(shape)));
  }
  for (const std::int64_t extent : shape) {
    if (extent == 0)
      throw bad_input(fmt::format("{} has shape {}: expected no empty axis", X.name, to_string(shape)));
  }
  if (shape.size() == 3) {
    if (lengths) {
      throw bad_input(fmt::format("lengths is there but {} has shape {}: expected (sum of lengths, d)",
                                  X.name, to_string(shape)));
    }
    data.lengths.assign(static_cast<std::size_t>(shape[0]), shape[1]);
    data.tokens = finite_matrix(X, shape[0] * shape[1], shape[2]);
    return data;
  }
  if (!lengths) {
    throw bad_input(fmt::format("{} has shape {}: expected (n, T, d), or an array lengths beside it", X.name,
                                to_string(shape)));
  }
  if (lengths.shape().size() != 1) {
    throw bad_input(
        fmt::format("lengths has shape {}: expected (n,), one per sequence", to_string(lengths.shape())));
  }
  data.lengths = lengths.array->to_int64(lengths.name);
  data.tokens = finite_matrix(X, shape[0], shape[1]);
  return data;
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
QueryLayout query_layout(const NamedArrays& arrays, const NamedArray& found, const Shape& rest,
                         const NamedArray& X, std::int64_t n) {
  QueryLayout layout;
  layout.n = layout.total = n;
  if (const NamedArray counts = find(arrays, "query_counts")) {
    require_shape(counts, {n}, X);
    layout.each = 0;
    layout.counts = counts.array->to_int64(counts.name);
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
  std::vector<std::int64_t> index = found.array->to_int64(found.name);
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

// The mask of the file is a box as wide as the longest sequence; a Dataset wants each row as long as its sequence.
std::vector<std::uint8_t> read_mask(const NamedArray& found, const QueryLayout& layout,
                                    const DatasetArrays& data, const NamedArray& X) {
  const std::int64_t longest = *std::ranges::max_element(data.lengths);
  layout.require(found, {longest}, X);
  const std::vector<double> values = found.array->to_doubles(found.name);
  const std::vector<std::size_t> sequence = sequences_of(layout);
  const auto width = static_cast<std::size_t>(longest);
  std::vector<std::uint8_t> mask;
  for (std::size_t j = 0; j < sequence.size(); ++j) {
    bool any = false;
    for (std::size_t t = 0; t < static_cast<std::size_t>(data.lengths[sequence[j]]); ++t) {
      const double value = values[j * width + t];
      if (value != 0 && value != 1)
        throw bad_input(
            fmt::format("mask[{}] is {}: expected 0 or 1", index_of(j * width + t, found.shape()), value));
      any = any || value == 1;
      mask.push_back(static_cast<std::uint8_t>(value));
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
  std::vector<double> labels = Y.array->to_doubles(Y.name);
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
  std::int64_t left = data.tokens.rows();
  for (std::size_t i = 0; i < data.lengths.size(); ++i) {
    if (data.lengths[i] < 1 || data.lengths[i] > left) {
      throw bad_whole_entry("lengths", i, data.lengths[i],
                            fmt::format("1 to {}, the rows of {} that are left", left, X.with_shape()));
    }
    left -= data.lengths[i];
  }
  if (data.lengths.empty() || left != 0) {
    throw bad_input(fmt::format("lengths add up to {}: expected {}, the rows of {}",
                                data.tokens.rows() - left, data.tokens.rows(), X.with_shape()));
  }
}

// Arrays of other names are the user's own, unless they look like one of ours: a mask that is called Mask would be
// ignored in silence.
void check_names(const NamedArrays& arrays) {
  constexpr std::array known{"lengths", "query_index", "query_counts", "mask", "format_version"};
  const auto plain = [](std::string name) {
    std::erase(name, '_');
    std::ranges::transform(name, name.begin(),
                           [](char c) { return c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c; });
    if (name.ends_with('s')) name.pop_back();
    return name;
  };
  for (const auto& [name, array] : arrays)
    for (const char* ours : known)
      if (name != ours && plain(name) == plain(ours))
        throw bad_input(fmt::format("there is an array {}: expected its name to be {}", name, ours));
}

Array to_array(ConstMatrixView values, Shape shape) {
  const Matrix dense = values.eigen();
  return Array(std::move(shape),
               std::span<const double>(dense.data(), static_cast<std::size_t>(dense.size())));
}

// One label per sequence where its queries share one.
bool labels_per_sequence(const Dataset& data) {
  for (std::ptrdiff_t j = 0; j < data.total_queries(); ++j)
    if (data.labels()[static_cast<std::size_t>(j)] !=
        data.labels()[static_cast<std::size_t>(data.first_query(data.sequence_of(j)))])
      return false;
  return true;
}

void put_queries(NamedArrays& arrays, const Dataset& data) {
  QueryLayout layout{data.samples(), 0, {}, data.total_queries()};
  if (data.equal_query_counts())
    layout.each = data.query_count(0);
  else
    for (std::ptrdiff_t i = 0; i < data.samples(); ++i) layout.counts.push_back(data.query_count(i));
  const auto shape = [&](const Shape& rest) {
    Shape result = layout.shape(rest);
    if (layout.each == 1) result.erase(result.begin() + 1);
    return result;
  };
  if (!layout.counts.empty())
    arrays.emplace("query_counts", Array(std::span<const std::int64_t>(layout.counts)));
  if (data.query_index().empty())
    arrays.emplace("Z", to_array(data.queries(), shape({data.dim()})));
  else
    arrays.emplace("query_index", Array(shape({}), data.query_index()));
  if (labels_per_sequence(data)) {
    std::vector<double> labels;
    for (std::ptrdiff_t i = 0; i < data.samples(); ++i)
      labels.push_back(data.labels()[static_cast<std::size_t>(data.first_query(i))]);
    arrays.emplace("Y", Array(std::span<const double>(labels)));
  } else {
    arrays.emplace("Y", Array(shape({}), data.labels()));
  }
  if (data.mask() == Mask::none) return;
  std::vector<std::int64_t> mask;
  for (std::ptrdiff_t j = 0; j < data.total_queries(); ++j)
    for (std::ptrdiff_t t = 0; t < data.max_length(); ++t)
      mask.push_back(t < data.length(data.sequence_of(j)) && data.allows(j, t) ? 1 : 0);
  arrays.emplace("mask", Array(shape({data.max_length()}), std::span<const std::int64_t>(mask)));
}

}  // namespace

Dataset make_dataset(const NamedArrays& arrays) {
  check_version(arrays);
  check_names(arrays);
  const NamedArray X = require(find_either_case(arrays, "X", "x"));
  const NamedArray Y = require(find_either_case(arrays, "Y", "y"));
  const NamedArray Z = find_either_case(arrays, "Z", "z");
  const NamedArray query_index = find(arrays, "query_index");
  if (Z && query_index)
    throw bad_input(fmt::format("both {} and query_index are there: expected one of them", Z.name));

  DatasetArrays data = read_tokens(arrays, X);
  check_lengths(data, X);
  const auto n = static_cast<std::int64_t>(data.lengths.size());
  const std::int64_t d = data.tokens.cols();
  const QueryLayout layout =
      query_index ? query_layout(arrays, query_index, {}, X, n) : query_layout(arrays, require(Z), {d}, X, n);
  data.query_counts = layout.counts;
  data.labels = read_labels(Y, layout, X);
  if (query_index)
    data.query_index = read_query_index(query_index, layout, data);
  else
    data.queries = finite_matrix(Z, layout.total, d);
  if (const NamedArray mask = find(arrays, "mask")) data.mask = read_mask(mask, layout, data, X);
  if (const NamedArray v = find(arrays, "v")) {
    require_shape(v, {d}, X);
    data.decoder = finite_matrix(v, 1, d).transpose();
  }
  if (const NamedArray V = find(arrays, "V")) {
    if (V.shape().size() != 2 || V.shape()[0] != d || V.shape()[1] == 0)
      throw bad_input(fmt::format("V has shape {}: expected ({}, m) to match {}", to_string(V.shape()), d,
                                  X.with_shape()));
    data.head = finite_matrix(V, d, V.shape()[1]);
  }
  return Dataset(data);
}

Dataset load_dataset(const std::filesystem::path& path) {
  const NamedArrays arrays = load_npz(path);
  try {
    return make_dataset(arrays);
  } catch (const Error& error) {
    throw error.in(path.string());
  }
}

NamedArrays arrays_of(const Dataset& data) {
  const std::int64_t n = data.samples(), d = data.dim();
  NamedArrays arrays;
  arrays.emplace("format_version", Array::scalar(format_version));
  if (data.equal_lengths()) {
    arrays.emplace("X", to_array(data.all_tokens(), {n, data.max_length(), d}));
  } else {
    std::vector<std::int64_t> lengths(static_cast<std::size_t>(n));
    for (std::int64_t i = 0; i < n; ++i) lengths[static_cast<std::size_t>(i)] = data.length(i);
    arrays.emplace("X", to_array(data.all_tokens(), {data.total_tokens(), d}));
    arrays.emplace("lengths", Array({n}, std::span<const std::int64_t>(lengths)));
  }
  put_queries(arrays, data);
  if (data.has_decoder()) arrays.emplace("v", to_array(data.decoder(), {d}));
  if (const ConstMatrixView head = data.head_weights(); head.rows > 0) {
    const Matrix V = head.eigen().transpose();
    arrays.emplace("V", Array({d, head.rows}, std::span(V.data(), static_cast<std::size_t>(V.size()))));
  }
  return arrays;
}

void save_dataset(const std::filesystem::path& path, const Dataset& data) { save_npz(path, arrays_of(data)); }

}  // namespace attmirror
