#include <attmirror/attention/parameters.hpp>
#include <attmirror/base/error.hpp>

#include <array>
#include <cmath>
#include <type_traits>

#include <fmt/format.h>

namespace attmirror {

namespace {

constexpr std::array<std::string_view, 7> block_names{"W", "K", "Q", "p", "v", "W_ov", "W_kq"};

// A block in the paper's orientation, vectors as one row.
Matrix as_matrix(const Parameters& parameters, Block block) {
  return visit_block(parameters, block, [](const auto& values) -> Matrix {
    if constexpr (std::is_same_v<decltype(values), const Vector&>)
      return values.transpose();
    else
      return values;
  });
}

void check_block(const Matrix& given, const BlockShape& shape) {
  const std::ptrdiff_t rows = shape.transposed ? shape.cols : shape.rows;
  const std::ptrdiff_t cols = shape.transposed ? shape.rows : shape.cols;
  const std::string_view name = to_string(shape.name);
  if (is_vector(shape.name)) {
    if (given.size() != cols)
      throw bad_input(fmt::format("{} has {} entries: expected {}", name, given.size(), cols));
  } else if (given.rows() != rows || given.cols() != cols) {
    throw bad_input(fmt::format("{} has shape ({}, {}): expected ({}, {})", name, given.rows(), given.cols(),
                                rows, cols));
  }
  for (std::ptrdiff_t i = 0; i < given.rows(); ++i)
    for (std::ptrdiff_t j = 0; j < given.cols(); ++j)
      if (!std::isfinite(given(i, j)))
        throw bad_input(
            is_vector(shape.name)
                ? fmt::format("{}[{}] is {}: expected a finite number", name, j, given(i, j))
                : fmt::format("{}[{},{}] is {}: expected a finite number", name, i, j, given(i, j)));
}

}  // namespace

std::string_view to_string(Block block) { return block_names[static_cast<std::size_t>(block)]; }

Block parse_block(std::string_view name) {
  for (std::size_t b = 0; b < block_names.size(); ++b)
    if (name == block_names[b]) return static_cast<Block>(b);
  throw bad_input(fmt::format("block is \"{}\": expected one of {}", name, fmt::join(block_names, ", ")));
}

std::string_view to_string(const Parameterization& parameterization) {
  constexpr std::array<std::string_view, 3> names{"W", "KQ", "prompt"};
  return names[parameterization.index()];
}

Matrix combined_weights(const Parameters& parameters) {
  if (parameters.W.size() > 0) return parameters.W;
  if (parameters.K.size() > 0 && parameters.Q.size() > 0) return parameters.K * parameters.Q.transpose();
  throw bad_input("these parameters have no W and no K, Q: a prompt has no combined weights");
}

Matrix attention_weights(const Parameters& parameters) {
  if (parameters.p.size() > 0) return parameters.p;
  return combined_weights(parameters);
}

ParameterBlocks::ParameterBlocks(std::vector<BlockShape> shapes) : shapes_(std::move(shapes)) {
  std::ptrdiff_t size = 0;
  for (const BlockShape& shape : shapes_) {
    offsets_.push_back(size);
    size += (shape.rows * padded(shape.cols) + 7) / 8 * 8;  // each block starts on a cache line
  }
  values_.assign(static_cast<std::size_t>(size), 0.0);
}

MatrixView ParameterBlocks::view(std::ptrdiff_t b) {
  const BlockShape& s = shape(b);
  return {values_.data() + offsets_[static_cast<std::size_t>(b)], s.rows, s.cols, padded(s.cols)};
}

ConstMatrixView ParameterBlocks::view(std::ptrdiff_t b) const {
  const BlockShape& s = shape(b);
  return {values_.data() + offsets_[static_cast<std::size_t>(b)], s.rows, s.cols, padded(s.cols)};
}

std::ptrdiff_t ParameterBlocks::find(Block name) const {
  for (std::ptrdiff_t b = 0; b < count(); ++b)
    if (shape(b).name == name) return b;
  return -1;
}

void ParameterBlocks::assign(const Parameters& parameters) {
  for (const BlockShape& s : shapes_) check_block(as_matrix(parameters, s.name), s);
  for (std::ptrdiff_t b = 0; b < count(); ++b) {
    const Matrix given = as_matrix(parameters, shape(b).name);
    if (shape(b).transposed)
      view(b).eigen() = given.transpose();
    else
      view(b).eigen() = given;
  }
}

Parameters ParameterBlocks::parameters() const {
  Parameters result;
  for (std::ptrdiff_t b = 0; b < count(); ++b) {
    const auto stored = view(b).eigen();
    visit_block(result, shape(b).name, [&](auto& values) {
      if (shape(b).transposed || is_vector(shape(b).name))
        values = stored.transpose();
      else
        values = stored;
    });
  }
  return result;
}

}  // namespace attmirror
