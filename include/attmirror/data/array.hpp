// An array as stored in files: a number type, a shape, and the bytes in C order (last axis fastest).
//
// All file formats (.npy, .npz, safetensors) meet here. An Array keeps the numbers as they were stored, so
// that reading and writing lose no bits: a float32 stays a float32. Code that computes asks for doubles or
// int64, and any value that does not convert exactly is refused.
#pragma once

#include <attmirror/base/matrix.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace attmirror {

// The number types of files.
enum class DType {
  float64,
  float32,
  float16,   // IEEE binary16; held as raw bytes, converted by to_doubles()
  bfloat16,  // the upper half of a float32; likewise
  int64,
  int32,
  int16,
  int8,
  uint64,
  uint32,
  uint16,
  uint8,
  boolean,  // one byte, 0 or 1
};

std::string_view to_string(DType dtype);
std::size_t item_size(DType dtype);  // bytes per element

// The lengths of an array's axes; empty for a single number.
using Shape = std::vector<std::int64_t>;

// Shapes have at most this many axes, which every version of numpy supports.
inline constexpr std::size_t max_axes = 32;

// The product of the axes; 1 for (). Throws Error (bad input), naming the array `name`, if an axis is
// negative, if there are more than max_axes, or if the array could not be addressed.
std::size_t element_count(const Shape& shape, DType dtype, std::string_view name);

// "(6, 8, 10)", "(6,)", "()": as Python writes a tuple.
std::string to_string(const Shape& shape);

// Numbers of one type with a shape, as files hold them.
class Array {
 public:
  // A float64 array of shape (0,).
  Array() = default;

  // Takes ownership of bytes in C order and in this machine's byte order. Throws Error (bad input), naming
  // the array `name`, if their number does not match the shape, or if a boolean is neither 0 nor 1.
  Array(DType dtype, Shape shape, std::vector<std::byte> bytes, std::string_view name = "array");

  // Copies numbers in C order: std::vector, std::span, std::array. Throws if there are more or fewer than the
  // shape requires.
  Array(Shape shape, std::span<const double> values);
  Array(Shape shape, std::span<const float> values);
  Array(Shape shape, std::span<const std::int64_t> values);
  Array(Shape shape, std::span<const std::int32_t> values);

  // One axis, with one entry per value.
  explicit Array(std::span<const double> values);
  explicit Array(std::span<const float> values);
  explicit Array(std::span<const std::int64_t> values);

  static Array scalar(double value);  // shape ()
  static Array scalar(std::int64_t value);

  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  std::size_t axes() const { return shape_.size(); }
  std::size_t size() const { return bytes_.size() / item_size(dtype_); }  // elements
  std::span<const std::byte> bytes() const { return bytes_; }

  // The elements in place, without a copy. T must be the C++ type of dtype() (double, float or an integer;
  // throws Error otherwise).
  template <class T>
  std::span<const T> view() const {
    require_element(type_of<T>());
    return {reinterpret_cast<const T*>(bytes_.data()), size()};
  }

  // All elements as double or int64, in C order. Every number type converts, but each value must convert
  // exactly: "labels[17] is 1.5: expected a whole number within int64", "lengths[2] is 9007199254740993:
  // expected a number that a double holds exactly" (Error, bad input). NaN and infinities are doubles but not
  // int64. `name` is the name of the array in messages.
  std::vector<double> to_doubles(std::string_view name = "array") const;
  std::vector<std::int64_t> to_int64(std::string_view name = "array") const;

  // "float64 (6, 8, 10)"
  std::string describe() const;

  // Same type, same shape, same bits: a NaN equals itself here, and 0.0 differs from -0.0.
  friend bool operator==(const Array&, const Array&) = default;

 private:
  template <class T>
  static constexpr DType type_of() {
    if constexpr (std::is_same_v<T, double>)
      return DType::float64;
    else if constexpr (std::is_same_v<T, float>)
      return DType::float32;
    else if constexpr (std::is_same_v<T, std::int64_t>)
      return DType::int64;
    else if constexpr (std::is_same_v<T, std::int32_t>)
      return DType::int32;
    else if constexpr (std::is_same_v<T, std::int16_t>)
      return DType::int16;
    else if constexpr (std::is_same_v<T, std::int8_t>)
      return DType::int8;
    else if constexpr (std::is_same_v<T, std::uint64_t>)
      return DType::uint64;
    else if constexpr (std::is_same_v<T, std::uint32_t>)
      return DType::uint32;
    else if constexpr (std::is_same_v<T, std::uint16_t>)
      return DType::uint16;
    else {
      static_assert(std::is_same_v<T, std::uint8_t>, "no DType has this element type");
      return DType::uint8;
    }
  }
  void require_element(DType wanted) const;

  DType dtype_ = DType::float64;
  Shape shape_ = {0};
  std::vector<std::byte> bytes_;
};

// A two-axis array as a matrix, a one-axis array as a vector of doubles. Throws Error (bad input), naming the array
// `name`, for other shapes and for values that do not convert exactly.
Matrix to_matrix(const Array& array, std::string_view name);
Vector to_vector(const Array& array, std::string_view name);

// What an .npz or safetensors file holds, sorted by name.
using NamedArrays = std::map<std::string, Array>;

}  // namespace attmirror
