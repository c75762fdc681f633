// Data sets as .npz files. Messages call the arrays what the file calls them (X, x, Y, ...) and give indices
// in the shape of the file, because that is what the user can look up.
#include <attmirror/base/error.hpp>
#include <attmirror/data/array.hpp>
#include <attmirror/data/dataset.hpp>
#include <attmirror/data/npz.hpp>

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

constexpr const char* one_query_only = "this version of attmirror trains one query per sequence";

Matrix read_queries(const NamedArray& Z, const NamedArray& X, std::int64_t n, std::int64_t d) {
  const Shape& shape = Z.shape();
  if (shape.size() == 3 && shape[0] == n && shape[1] > 1 && shape[2] == d) {
    throw bad_input(fmt::format("{} has shape {}, {} queries each: {}", Z.name, to_string(shape), shape[1],
                                one_query_only));
  }
  if (shape != Shape{n, 1, d}) require_shape(Z, {n, d}, X);
  return finite_matrix(Z, n, d);
}

// Self-attention: the query of sequence i is its own token query_index[i].
Matrix read_query_index(const NamedArray& found, const NamedArray& X, const DatasetArrays& data) {
  const Shape& shape = found.shape();
  const auto n = static_cast<std::int64_t>(data.lengths.size());
  if (shape.size() == 2 && shape[0] == n && shape[1] > 1) {
    throw bad_input(fmt::format("query_index has shape {}, {} queries each: {}", to_string(shape), shape[1],
                                one_query_only));
  }
  if (shape != Shape{n, 1}) require_shape(found, {n}, X);
  const std::vector<std::int64_t> index = found.array->to_int64(found.name);
  Matrix queries(n, data.tokens.cols());
  std::ptrdiff_t offset = 0;
  for (std::size_t i = 0; i < index.size(); ++i) {
    if (index[i] < 0 || index[i] >= data.lengths[i]) {
      throw bad_input(fmt::format("query_index[{}] is {}: expected 0 to {}, a token of sequence {}", i,
                                  index[i], data.lengths[i] - 1, i));
    }
    queries.row(static_cast<std::ptrdiff_t>(i)) = data.tokens.row(offset + index[i]);
    offset += data.lengths[i];
  }
  return queries;
}

// Lengths must fit before queries are looked up by them; the other checks are those of Dataset itself.
void check_lengths(const DatasetArrays& data, const NamedArray& X) {
  std::int64_t left = data.tokens.rows();
  for (std::size_t i = 0; i < data.lengths.size(); ++i) {
    if (data.lengths[i] < 1 || data.lengths[i] > left) {
      throw bad_input(fmt::format("lengths[{}] is {}: expected 1 to {}, the rows of {} that are left", i,
                                  data.lengths[i], left, X.with_shape()));
    }
    left -= data.lengths[i];
  }
  if (data.lengths.empty() || left != 0) {
    throw bad_input(fmt::format("lengths add up to {}: expected {}, the rows of {}",
                                data.tokens.rows() - left, data.tokens.rows(), X.with_shape()));
  }
}

Dataset dataset_from(const NamedArrays& arrays) {
  check_version(arrays);
  if (arrays.contains("mask")) {
    throw bad_input("mask is there: this version of attmirror attends to all tokens of a sequence");
  }
  const NamedArray X = require(find_either_case(arrays, "X", "x"));
  const NamedArray Y = require(find_either_case(arrays, "Y", "y"));
  const NamedArray Z = find_either_case(arrays, "Z", "z");
  const NamedArray query_index = find(arrays, "query_index");
  const NamedArray v = find(arrays, "v");
  if (Z && query_index)
    throw bad_input(fmt::format("both {} and query_index are there: expected one of them", Z.name));

  DatasetArrays data = read_tokens(arrays, X);
  check_lengths(data, X);
  const auto n = static_cast<std::int64_t>(data.lengths.size());
  const std::int64_t d = data.tokens.cols();
  require_shape(Y, {n}, X);
  data.labels = Y.array->to_doubles(Y.name);
  for (std::size_t i = 0; i < data.labels.size(); ++i) {
    if (data.labels[i] != 1.0 && data.labels[i] != -1.0) {
      throw bad_input(
          fmt::format("labels[{}] is {}: expected -1 or +1 (array {})", i, data.labels[i], Y.name));
    }
  }
  data.queries = query_index ? read_query_index(query_index, X, data) : read_queries(require(Z), X, n, d);
  if (v) {
    require_shape(v, {d}, X);
    data.decoder = finite_matrix(v, 1, d).transpose();
  }
  return Dataset(data);
}

Array to_array(ConstMatrixView values, Shape shape) {
  const Matrix dense = values.eigen();
  return Array(std::move(shape),
               std::span<const double>(dense.data(), static_cast<std::size_t>(dense.size())));
}

}  // namespace

Dataset load_dataset(const std::filesystem::path& path) {
  const NamedArrays arrays = load_npz(path);
  try {
    return dataset_from(arrays);
  } catch (const Error& error) {
    throw Error(error.kind(), fmt::format("{}: {}", path.string(), error.what()));
  }
}

void save_dataset(const std::filesystem::path& path, const Dataset& data) {
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
  arrays.emplace("Y", Array({n}, data.labels()));
  arrays.emplace("Z", to_array(data.queries(), {n, d}));
  if (data.has_decoder()) arrays.emplace("v", to_array(data.decoder(), {d}));
  save_npz(path, arrays);
}

}  // namespace attmirror
