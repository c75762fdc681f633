// Data sets as .npz files: written here, read by DatasetReader.
#include "data/dataset_arrays.hpp"
#include "data/dataset_reader.hpp"
#include "data/padding.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/data/array.hpp>
#include <attmirror/data/dataset.hpp>
#include <attmirror/data/npz.hpp>

#include <span>
#include <string_view>

namespace attmirror {
namespace {

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
  // Axes (n, K) where all sequences have K queries, without the second for K = 1; else one axis over all queries.
  const bool equal = data.equal_query_counts();
  const auto shape = [&](const Shape& rest) {
    Shape result = equal ? Shape{data.samples()} : Shape{data.total_queries()};
    if (equal && data.query_count(0) != 1) result.push_back(data.query_count(0));
    result.insert(result.end(), rest.begin(), rest.end());
    return result;
  };
  if (!equal) {
    std::vector<std::int64_t> counts;
    for (std::ptrdiff_t i = 0; i < data.samples(); ++i) counts.push_back(data.query_count(i));
    arrays.emplace("query_counts", Array(std::span<const std::int64_t>(counts)));
  }
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

Dataset load_dataset(const std::filesystem::path& path) {
  const NpzReader file(path);
  try {
    return DatasetReader(file).load();
  } catch (const Error& error) {
    // What the archive itself says names the file already.
    if (std::string_view(error.what()).starts_with(file.name())) throw;
    throw error.in(file.name());
  }
}

Dataset make_dataset(const NamedArrays& arrays) { return DatasetReader(arrays).load(); }

NamedArrays arrays_of(const Dataset& data) {
  const std::int64_t n = data.samples(), d = data.dim();
  NamedArrays arrays;
  arrays.emplace("format_version", Array::scalar(dataset_format_version));
  const bool box = data.equal_lengths();
  arrays.emplace(
      "X", to_array(data.all_tokens(), box ? Shape{n, data.max_length(), d} : Shape{data.total_tokens(), d}));
  // Tokens that look like padding and are known to be none keep their lengths, so that nobody is warned of them.
  if (!box || (data.lengths_given() && trailing_zero_rows(data))) {
    std::vector<std::int64_t> lengths(static_cast<std::size_t>(n));
    for (std::int64_t i = 0; i < n; ++i) lengths[static_cast<std::size_t>(i)] = data.length(i);
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
