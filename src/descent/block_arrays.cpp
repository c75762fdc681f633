#include "descent/block_arrays.hpp"

#include <attmirror/base/error.hpp>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace attmirror {

namespace {

std::string key(std::string_view prefix, const Block& block) {
  return fmt::format("{}{}", prefix, to_string(block));
}

void put(NamedArrays& arrays, const std::string& name, Array array) {
  if (!arrays.emplace(name, std::move(array)).second)
    throw bad_input(fmt::format("two arrays of a file are called {}: one is a block", name));
}

// Makes the block as large as `shape` says and returns its memory. The blocks of attention are what they are; others
// are vectors where they have one axis.
double* resize_block(Parameters& parameters, const Block& block, std::span<const std::int64_t> shape) {
  if (shape.size() == 1) {
    Vector& values = make_vector(parameters, block);
    values.resize(shape[0]);
    return values.data();
  }
  Matrix& values = make_matrix(parameters, block);
  values.resize(shape[0], shape[1]);
  return values.data();
}

void require_axes(const Array& array, const Block& block, std::size_t before, const std::string& name) {
  const bool attention = std::ranges::find(attention_blocks, block) != attention_blocks.end();
  const bool vector = attention ? block == Block::p || block == Block::v : array.axes() == before + 1;
  const std::size_t axes = before + (vector ? 1 : 2);
  if (array.axes() != axes)
    throw bad_input(fmt::format("{} has shape {}: expected {} axes", name, to_string(array.shape()), axes));
}

}  // namespace

std::span<const double> block_values(const Parameters& parameters, const Block& block) {
  return visit_block(parameters, block, [](const auto& values) {
    return std::span(values.data(), static_cast<std::size_t>(values.size()));
  });
}

bool has_weights(const Parameters& parameters) { return !block_names(parameters).empty(); }

Shape block_shape(const Parameters& parameters, const Block& block) {
  return visit_block(parameters, block, [&](const auto& values) {
    return is_vector<decltype(values)> ? Shape{values.size()} : Shape{values.rows(), values.cols()};
  });
}

void put_blocks(NamedArrays& arrays, std::string_view prefix, const Parameters& parameters) {
  put_blocks(arrays, prefix, parameters, block_names(parameters));
}

void put_blocks(NamedArrays& arrays, std::string_view prefix, const Parameters& parameters,
                std::span<const Block> blocks) {
  for (const Block& block : blocks) {
    const auto values = block_values(parameters, block);
    if (!values.empty()) put(arrays, key(prefix, block), Array(block_shape(parameters, block), values));
  }
}

void put_stacked(NamedArrays& arrays, std::string_view prefix, std::span<const Record* const> records,
                 const Parameters& like, std::span<const Block> blocks) {
  for (const Block& block : blocks) {
    const std::size_t size = block_values(like, block).size();
    if (size == 0) continue;
    std::vector<double> stacked;
    stacked.reserve(size * records.size());
    for (const Record* record : records) {
      const auto values = block_values(record->parameters, block);
      if (values.size() != size)
        throw bad_input(fmt::format("the record of step {} has {} numbers of {}: expected {}", record->step,
                                    values.size(), to_string(block), size));
      stacked.insert(stacked.end(), values.begin(), values.end());
    }
    Shape shape = block_shape(like, block);
    shape.insert(shape.begin(), static_cast<std::int64_t>(records.size()));
    put(arrays, key(prefix, block), Array(std::move(shape), stacked));
  }
}

std::vector<Block> blocks_under(const NamedArrays& arrays, std::string_view prefix) {
  std::vector<Block> blocks;
  for (const auto& [name, array] : arrays)
    if (name.starts_with(prefix) && Block::is_name(std::string_view(name).substr(prefix.size())))
      blocks.emplace_back(std::string_view(name).substr(prefix.size()));
  return blocks;
}

Parameters get_blocks(const NamedArrays& arrays, std::string_view prefix, std::span<const Block> blocks) {
  Parameters result;
  for (const Block& block : blocks) {
    const std::string name = key(prefix, block);
    const auto found = arrays.find(name);
    if (found == arrays.end()) continue;
    require_axes(found->second, block, 0, name);
    std::ranges::copy(found->second.to_doubles(name), resize_block(result, block, found->second.shape()));
  }
  return result;
}

std::vector<Parameters> get_stacked(const NamedArrays& arrays, std::string_view prefix, std::size_t count,
                                    std::span<const Block> blocks) {
  std::vector<Parameters> result(count);
  for (const Block& block : blocks) {
    const std::string name = key(prefix, block);
    const auto found = arrays.find(name);
    if (found == arrays.end()) continue;
    const Array& array = found->second;
    require_axes(array, block, 1, name);
    if (array.shape().front() != static_cast<std::int64_t>(count))
      throw bad_input(
          fmt::format("{} has shape {}: expected {} records", name, to_string(array.shape()), count));
    if (count == 0) continue;
    const std::vector<double> values = array.to_doubles(name);
    const auto shape = std::span(array.shape()).subspan(1);
    const std::size_t size = values.size() / count;
    for (std::size_t r = 0; r < count; ++r)
      std::copy_n(values.data() + r * size, size, resize_block(result[r], block, shape));
  }
  return result;
}

void put_metrics(NamedArrays& arrays, std::string_view prefix, std::span<const Record> records) {
  if (records.empty()) return;
  for (std::size_t m = 0; m < records.front().metrics.size(); ++m) {
    std::vector<double> values;
    for (const Record& record : records) values.push_back(record.metrics.at(m).value);
    arrays.emplace(fmt::format("{}{}", prefix, records.front().metrics[m].name),
                   Array(std::span<const double>(values)));
  }
}

std::vector<std::vector<Metric>> get_metrics(const NamedArrays& arrays, std::string_view prefix,
                                             std::size_t count,
                                             const std::function<bool(const std::string&)>& is_other) {
  std::vector<std::vector<Metric>> metrics(count);
  for (const auto& [key, array] : arrays) {
    if (!key.starts_with(prefix)) continue;
    const std::string name = key.substr(prefix.size());
    if (is_other(name)) continue;
    const std::vector<double> values = get_doubles(arrays, key, count);
    for (std::size_t r = 0; r < count; ++r) metrics[r].push_back({name, values[r]});
  }
  return metrics;
}

const Array& get_array(const NamedArrays& arrays, const std::string& name) {
  const auto found = arrays.find(name);
  if (found == arrays.end()) throw bad_input(fmt::format("array {} is missing", name));
  return found->second;
}

std::string get_text(const NamedArrays& arrays, const std::string& name) {
  return text_of(get_array(arrays, name), name);
}

std::vector<double> get_doubles(const NamedArrays& arrays, const std::string& name, std::size_t count) {
  std::vector<double> values = get_array(arrays, name).to_doubles(name);
  if (values.size() != count)
    throw bad_input(fmt::format("{} has {} entries: expected {}", name, values.size(), count));
  return values;
}

std::vector<std::int64_t> get_int64(const NamedArrays& arrays, const std::string& name, std::size_t count) {
  std::vector<std::int64_t> values = get_array(arrays, name).to_int64(name);
  if (values.size() != count)
    throw bad_input(fmt::format("{} has {} entries: expected {}", name, values.size(), count));
  return values;
}

}  // namespace attmirror
