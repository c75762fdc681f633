// Where the arrays of a data set come from: an .npz file, whose numbers are read when they are asked for, or
// memory. Internal.
#pragma once

#include "data/npz_reader.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace attmirror::dataset_reading {

class ArraySource {
 public:
  virtual ~ArraySource() = default;
  virtual std::vector<std::string> names() const = 0;
  // What the array is, if it is there; its numbers are not read.
  virtual std::optional<NpyHeader> header(const std::string& name) const = 0;
  virtual Array read(const std::string& name) const = 0;
  virtual void read_pieces(const std::string& name, const NpzReader::UsePiece& use) const = 0;
};

// The file must outlive it.
class ArraysOfFile final : public ArraySource {
 public:
  explicit ArraysOfFile(const NpzReader& file) : file_(file) {}
  std::vector<std::string> names() const override;
  std::optional<NpyHeader> header(const std::string& name) const override;
  Array read(const std::string& name) const override;
  void read_pieces(const std::string& name, const NpzReader::UsePiece& use) const override;

 private:
  const NpzReader& file_;
};

// The arrays must outlive it.
class ArraysInMemory final : public ArraySource {
 public:
  explicit ArraysInMemory(const NamedArrays& arrays) : arrays_(arrays) {}
  std::vector<std::string> names() const override;
  std::optional<NpyHeader> header(const std::string& name) const override;
  Array read(const std::string& name) const override;
  void read_pieces(const std::string& name, const NpzReader::UsePiece& use) const override;

 private:
  const NamedArrays& arrays_;
};

// An array of the source, known by its type and shape.
struct NamedArray {
  std::string name;
  const ArraySource* source = nullptr;
  NpyHeader header{};

  explicit operator bool() const { return source != nullptr; }
  const Shape& shape() const { return header.shape; }
  std::string with_shape() const { return name + " " + to_string(shape()); }
  void read_pieces(const NpzReader::UsePiece& use) const { source->read_pieces(name, use); }
  std::vector<double> to_doubles() const { return source->read(name).to_doubles(name); }
  std::vector<std::int64_t> to_int64() const { return source->read(name).to_int64(name); }
};

// From nowhere if the source has no such array.
NamedArray find(const ArraySource& source, const std::string& name);

// "2,0,1" for the element at `position` in C order.
std::string index_of(std::size_t position, const Shape& shape);

}  // namespace attmirror::dataset_reading
