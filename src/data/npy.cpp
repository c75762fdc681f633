// .npy files: header, then the numbers, in C or in Fortran order.
//
// An array in Fortran order is the C-order array of the transpose. Reading such a file gathers element (i_1..i_k)
// from position i_1 + s_1 (i_2 + s_2 (i_3 + ...)); writing one is the same gather with the axes reversed.
#include "data/npy.hpp"

#include "base/atomic_file.hpp"
#include "data/messages.hpp"
#include "data/npy_header.hpp"
#include <attmirror/base/error.hpp>

#include <algorithm>
#include <cstring>
#include <new>

#include <fmt/format.h>

namespace attmirror {
namespace {

// C-order bytes of the array whose Fortran-order bytes are given.
std::vector<std::byte> fortran_to_c(std::span<const std::byte> from, const Shape& shape, std::size_t item) {
  std::vector<std::byte> to(from.size());
  const std::size_t axes = shape.size();
  std::vector<std::size_t> stride(axes), index(axes, 0);
  for (std::size_t axis = 0, product = item; axis < axes; ++axis) {
    stride[axis] = product;
    product *= static_cast<std::size_t>(shape[axis]);
  }
  std::size_t source = 0;
  for (std::size_t target = 0; target < to.size(); target += item) {
    std::memcpy(to.data() + target, from.data() + source, item);
    // Count up in C order, last axis fastest, and keep the source position in step.
    for (std::size_t axis = axes; axis-- > 0;) {
      source += stride[axis];
      if (++index[axis] < static_cast<std::size_t>(shape[axis])) break;
      source -= stride[axis] * index[axis];
      index[axis] = 0;
    }
  }
  return to;
}

std::vector<std::byte> c_to_fortran(std::span<const std::byte> from, Shape shape, std::size_t item) {
  std::reverse(shape.begin(), shape.end());
  return fortran_to_c(from, shape, item);
}

}  // namespace

void check_npy_size(const NpyHeader& header, std::uint64_t file_size, std::string_view name) {
  const std::size_t expected = element_count(header.shape, header.dtype, name) * item_size(header.dtype);
  const std::uint64_t found = file_size - header.size;
  if (found != expected)
    throw bad_input(fmt::format("{}: {} bytes follow the header: expected {} for {} {}", name, found,
                                expected, to_string(header.dtype), to_string(header.shape)));
}

Array make_array(NpyHeader header, std::vector<std::byte> numbers, std::string_view name) {
  if (header.order == MemoryOrder::fortran && header.shape.size() > 1)
    numbers = fortran_to_c(numbers, header.shape, item_size(header.dtype));
  return Array(header.dtype, std::move(header.shape), std::move(numbers), name);
}

Array parse_npy(std::span<const std::byte> file, std::string_view name) try {
  NpyHeader header = parse_npy_header(file, name);
  check_npy_size(header, file.size(), name);
  const auto numbers = file.subspan(header.size);
  return make_array(std::move(header), {numbers.begin(), numbers.end()}, name);
} catch (const std::bad_alloc&) {
  throw out_of_memory(name);
}

Array load_npy(const std::filesystem::path& path) try {
  std::vector<std::byte> file = read_file(path);
  const std::string name = path.string();
  NpyHeader header = parse_npy_header(file, name);
  check_npy_size(header, file.size(), name);
  file.erase(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(header.size));
  return make_array(std::move(header), std::move(file), name);
} catch (const std::bad_alloc&) {
  throw out_of_memory(path.string());
}

NpyHeader load_npy_header(const std::filesystem::path& path) {
  const std::string beginning = beginning_of_file(path, 12);
  const std::string head = beginning_of_file(path, npy_header_bytes(std::as_bytes(std::span(beginning))));
  NpyHeader header =
      parse_npy_header(std::as_bytes(std::span(head.empty() ? beginning : head)), path.string());
  check_npy_size(header, std::filesystem::file_size(path), path.string());
  return header;
}

std::vector<std::byte> format_npy(const Array& array, const NpyOptions& options) {
  const std::string header = format_npy_header(array, options.order);
  const auto header_bytes = std::as_bytes(std::span(header));
  std::vector<std::byte> file;
  file.reserve(header.size() + array.bytes().size());
  file.assign(header_bytes.begin(), header_bytes.end());
  const auto append = [&file](std::span<const std::byte> numbers) {
    file.insert(file.end(), numbers.begin(), numbers.end());
  };
  if (options.order == MemoryOrder::fortran)
    append(c_to_fortran(array.bytes(), array.shape(), item_size(array.dtype())));
  else
    append(array.bytes());
  return file;
}

void save_npy(const std::filesystem::path& path, const Array& array, const NpyOptions& options) {
  write_file_atomically(path, format_npy(array, options));
}

}  // namespace attmirror
