// Arrays as bytes, and the exact conversions out of them.
//
// Every number type but int64 and uint64 fits into a double, so only those two need a check on the way to
// double: an integer is exact in a double if and only if rounding it there and back returns it. On the way to
// int64, a floating number x qualifies if it is whole and -2^63 <= x < 2^63; both bounds are exact doubles,
// and a NaN fails the comparison.
#include "data/array_piece.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/data/array.hpp>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include <fmt/format.h>

namespace attmirror {
namespace {

static_assert(std::endian::native == std::endian::little, "files and memory share their byte order");

std::size_t position(DType dtype) { return static_cast<std::size_t>(dtype); }

// "labels[17]", "X[1, 0, 3]", "b" for a zero-dimensional array.
std::string element_name(std::string_view name, const Shape& shape, std::size_t flat) {
  if (shape.empty()) return std::string(name);
  std::string index;
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    const auto extent = static_cast<std::size_t>(shape[axis]);
    index = fmt::format("{}{}{}", flat % extent, index.empty() ? "" : ", ", index);
    flat /= extent;
  }
  return fmt::format("{}[{}]", name, index);
}

template <class T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

// binary16: sign, 5 bits of exponent (bias 15), 10 of fraction. All are doubles.
double half_to_double(std::uint16_t bits) {
  const int exponent = (bits >> 10) & 31, fraction = bits & 1023;
  double magnitude = 0;
  if (exponent == 31)
    magnitude = fraction ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity();
  else if (exponent == 0)
    magnitude = std::ldexp(fraction, -24);
  else
    magnitude = std::ldexp(1024 + fraction, exponent - 25);
  return bits & 0x8000 ? -magnitude : magnitude;
}

double bfloat_to_double(std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t{bits} << 16); }

// Calls `use` with every element in turn, as double (floating types) or as an integer of its own width.
template <class Use>
void for_each_element(DType dtype, std::span<const std::byte> bytes, Use use) {
  const auto walk = [&]<class T>(T, auto convert) {
    for (std::size_t i = 0; i * sizeof(T) < bytes.size(); ++i)
      use(i, convert(load<T>(bytes.data() + i * sizeof(T))));
  };
  const auto same = [](auto value) { return value; };
  switch (dtype) {
    case DType::float64:
      return walk(double{}, same);
    case DType::float32:
      return walk(float{}, [](float value) { return static_cast<double>(value); });
    case DType::float16:
      return walk(std::uint16_t{}, half_to_double);
    case DType::bfloat16:
      return walk(std::uint16_t{}, bfloat_to_double);
    case DType::int64:
      return walk(std::int64_t{}, same);
    case DType::int32:
      return walk(std::int32_t{}, same);
    case DType::int16:
      return walk(std::int16_t{}, same);
    case DType::int8:
      return walk(std::int8_t{}, same);
    case DType::uint64:
      return walk(std::uint64_t{}, same);
    case DType::uint32:
      return walk(std::uint32_t{}, same);
    case DType::uint16:
      return walk(std::uint16_t{}, same);
    case DType::uint8:
    case DType::boolean:
      return walk(std::uint8_t{}, same);
  }
}

std::optional<double> exact_double(double value) { return value; }
template <class Integer>
std::optional<double> exact_double(Integer value) {
  const double rounded = static_cast<double>(value);
  // The largest values round up to 2^63 or 2^64, which would not convert back.
  const double end = std::ldexp(1.0, std::numeric_limits<Integer>::digits);
  if (rounded >= end || static_cast<Integer>(rounded) != value) return std::nullopt;
  return rounded;
}

std::optional<std::int64_t> exact_int64(double value) {
  if (!(value >= -0x1p63 && value < 0x1p63) || std::trunc(value) != value) return std::nullopt;
  return static_cast<std::int64_t>(value);
}
template <class Integer>
std::optional<std::int64_t> exact_int64(Integer value) {
  if (!std::in_range<std::int64_t>(value)) return std::nullopt;
  return static_cast<std::int64_t>(value);
}

template <class T>
std::vector<std::byte> bytes_of(std::span<const T> values) {
  const auto bytes = std::as_bytes(values);
  return {bytes.begin(), bytes.end()};
}

template <class T>
Shape flat(std::span<const T> values) {
  return {static_cast<std::int64_t>(values.size())};
}

}  // namespace

std::string_view to_string(DType dtype) {
  constexpr std::string_view names[] = {"float64", "float32", "float16", "bfloat16", "int64",
                                        "int32",   "int16",   "int8",    "uint64",   "uint32",
                                        "uint16",  "uint8",   "boolean"};
  return names[position(dtype)];
}

std::size_t item_size(DType dtype) {
  constexpr std::size_t sizes[] = {8, 4, 2, 2, 8, 4, 2, 1, 8, 4, 2, 1, 1};
  return sizes[position(dtype)];
}

std::string to_string(const Shape& shape) {
  return fmt::format("({}{})", fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
}

std::size_t element_count(const Shape& shape, DType dtype, std::string_view name) {
  if (shape.size() > max_axes)
    throw bad_input(fmt::format("{} has {} axes: expected at most {}", name, shape.size(), max_axes));
  // Half of the address space is what a pointer difference can measure. An axis of zero makes the array
  // empty, but the other axes must still make sense together, since strides are products of them.
  const std::size_t most = std::size_t{std::numeric_limits<std::ptrdiff_t>::max()} / item_size(dtype);
  std::size_t product = 1;
  bool empty = false;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    if (shape[axis] < 0)
      throw bad_input(fmt::format("{}: shape[{}] is {}: expected 0 or more", name, axis, shape[axis]));
    const auto extent = static_cast<std::size_t>(shape[axis]);
    if (extent == 0) {
      empty = true;
    } else {
      if (extent > most / product)
        throw bad_input(fmt::format("{}: shape {} of {} exceeds the address space", name, to_string(shape),
                                    to_string(dtype)));
      product *= extent;
    }
  }
  return empty ? 0 : product;
}

Array::Array(DType dtype, Shape shape, std::vector<std::byte> bytes, std::string_view name)
    : dtype_(dtype), shape_(std::move(shape)), bytes_(std::move(bytes)) {
  const std::size_t expected = element_count(shape_, dtype_, name) * item_size(dtype_);
  if (bytes_.size() != expected)
    throw bad_input(fmt::format("{} holds {} bytes of data: expected {} for {}", name, bytes_.size(),
                                expected, describe()));
  if (dtype_ != DType::boolean) return;
  for (std::size_t i = 0; i < bytes_.size(); ++i)
    if (const auto value = std::to_integer<int>(bytes_[i]); value > 1)
      throw bad_input(
          fmt::format("{} is the byte {}: expected a boolean, 0 or 1", element_name(name, shape_, i), value));
}

Array::Array(Shape shape, std::span<const double> values)
    : Array(DType::float64, std::move(shape), bytes_of(values)) {}
Array::Array(Shape shape, std::span<const float> values)
    : Array(DType::float32, std::move(shape), bytes_of(values)) {}
Array::Array(Shape shape, std::span<const std::int64_t> values)
    : Array(DType::int64, std::move(shape), bytes_of(values)) {}
Array::Array(Shape shape, std::span<const std::int32_t> values)
    : Array(DType::int32, std::move(shape), bytes_of(values)) {}
Array::Array(std::span<const double> values) : Array(flat(values), values) {}
Array::Array(std::span<const float> values) : Array(flat(values), values) {}
Array::Array(std::span<const std::int64_t> values) : Array(flat(values), values) {}

Array Array::scalar(double value) { return Array(Shape{}, std::span<const double>(&value, 1)); }
Array Array::scalar(std::int64_t value) { return Array(Shape{}, std::span<const std::int64_t>(&value, 1)); }

void piece_to_doubles(DType dtype, std::span<const std::byte> bytes, double* into, std::string_view name,
                      const Shape& shape, std::size_t first) {
  for_each_element(dtype, bytes, [&](std::size_t i, auto value) {
    const auto exact = exact_double(value);
    if (!exact)
      throw bad_input(fmt::format("{} is {}: expected a number that a double holds exactly",
                                  element_name(name, shape, first + i), value));
    into[i] = *exact;
  });
}

std::vector<double> Array::to_doubles(std::string_view name) const {
  std::vector<double> result(size());
  piece_to_doubles(dtype_, bytes_, result.data(), name, shape_, 0);
  return result;
}

std::vector<std::int64_t> Array::to_int64(std::string_view name) const {
  std::vector<std::int64_t> result(size());
  for_each_element(dtype_, bytes_, [&](std::size_t i, auto value) {
    const auto exact = exact_int64(value);
    if (!exact)
      throw bad_input(fmt::format("{} is {}: expected a whole number within int64",
                                  element_name(name, shape_, i), value));
    result[i] = *exact;
  });
  return result;
}

std::string Array::describe() const { return fmt::format("{} {}", to_string(dtype_), to_string(shape_)); }

void Array::require_element(DType wanted) const {
  if (dtype_ != wanted)
    throw bad_input(fmt::format("array is {}: expected {}", describe(), to_string(wanted)));
}

Matrix to_matrix(const Array& array, std::string_view name) {
  if (array.axes() != 2)
    throw bad_input(fmt::format("{} has shape {}: expected a matrix", name, to_string(array.shape())));
  const std::vector<double> values = array.to_doubles(name);
  return Eigen::Map<const Matrix>(values.data(), array.shape()[0], array.shape()[1]);
}

Vector to_vector(const Array& array, std::string_view name) {
  if (array.axes() != 1)
    throw bad_input(fmt::format("{} has shape {}: expected a vector", name, to_string(array.shape())));
  const std::vector<double> values = array.to_doubles(name);
  return Eigen::Map<const Vector>(values.data(), array.shape()[0]);
}

}  // namespace attmirror
