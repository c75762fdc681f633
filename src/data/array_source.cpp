#include "data/array_source.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace attmirror::dataset_reading {

std::vector<std::string> ArraysOfFile::names() const {
  std::vector<std::string> names;
  for (const NpzReader::Entry& entry : file_.entries()) names.push_back(entry.key);
  return names;
}

std::optional<NpyHeader> ArraysOfFile::header(const std::string& name) const {
  const NpzReader::Entry* entry = file_.find(name);
  return entry == nullptr ? std::nullopt : std::optional(file_.header(*entry));
}

Array ArraysOfFile::read(const std::string& name) const { return file_.read(*file_.find(name)); }

void ArraysOfFile::read_pieces(const std::string& name, const NpzReader::UsePiece& use) const {
  file_.read_pieces(*file_.find(name), use);
}

std::vector<std::string> ArraysInMemory::names() const {
  std::vector<std::string> names;
  for (const auto& [name, array] : arrays_) names.push_back(name);
  return names;
}

std::optional<NpyHeader> ArraysInMemory::header(const std::string& name) const {
  const auto found = arrays_.find(name);
  if (found == arrays_.end()) return std::nullopt;
  return NpyHeader{.dtype = found->second.dtype(), .shape = found->second.shape()};
}

Array ArraysInMemory::read(const std::string& name) const { return arrays_.at(name); }

void ArraysInMemory::read_pieces(const std::string& name, const NpzReader::UsePiece& use) const {
  constexpr std::size_t numbers_at_once = 65536;
  const Array& array = arrays_.at(name);
  const std::size_t item = item_size(array.dtype());
  for (std::size_t first = 0; first < array.size(); first += numbers_at_once)
    use(first, array.bytes().subspan(first * item, std::min(numbers_at_once, array.size() - first) * item));
}

NamedArray find(const ArraySource& source, const std::string& name) {
  std::optional<NpyHeader> header = source.header(name);
  return header ? NamedArray{name, &source, *std::move(header)} : NamedArray{name};
}

std::string index_of(std::size_t position, const Shape& shape) {
  std::vector<std::size_t> index(shape.size());
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    const auto extent = static_cast<std::size_t>(shape[axis]);
    index[axis] = position % extent;
    position /= extent;
  }
  return fmt::format("{}", fmt::join(index, ","));
}

}  // namespace attmirror::dataset_reading
