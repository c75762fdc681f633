#include "attention/kinds.hpp"
#include <attmirror/attention/parameters.hpp>
#include <attmirror/base/error.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace attmirror {

namespace {

// The blocks of attention that are matrices and vectors, by name.
constexpr std::array<std::pair<Block, Matrix Parameters::*>, 3> attention_matrices{
    {{Block::W, &Parameters::W}, {Block::K, &Parameters::K}, {Block::Q, &Parameters::Q}}};
constexpr std::array<std::pair<Block, Vector Parameters::*>, 2> attention_vectors{
    {{Block::p, &Parameters::p}, {Block::v, &Parameters::v}}};

// The member of that name, or nullptr.
template <class Members>
auto member_of(const Members& members, const Block& block) {
  const auto found = std::ranges::find(members, block, &Members::value_type::first);
  return found == members.end() ? nullptr : found->second;
}

// A block in the paper's orientation, vectors as one row.
Matrix as_matrix(const Parameters& parameters, const Block& block) {
  return visit_block(parameters, block, [](const auto& values) -> Matrix {
    if constexpr (is_vector<decltype(values)>)
      return values.transpose();
    else
      return values;
  });
}

void check_block(const Matrix& given, const BlockShape& shape) {
  const std::ptrdiff_t rows = shape.transposed ? shape.cols : shape.rows;
  const std::ptrdiff_t cols = shape.transposed ? shape.rows : shape.cols;
  const std::string_view name = to_string(shape.name);
  if (shape.is_vector) {
    if (given.rows() > 1)
      throw bad_input(fmt::format("{} is a matrix of shape ({}, {}): expected a vector of {} entries", name,
                                  given.rows(), given.cols(), cols));
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
            shape.is_vector
                ? fmt::format("{}[{}] is {}: expected a finite number", name, j, given(i, j))
                : fmt::format("{}[{},{}] is {}: expected a finite number", name, i, j, given(i, j)));
}

Error missing(const Parameters& parameters, const Block& block) {
  std::string names;
  for (const Block& name : block_names(parameters))
    names += fmt::format("{}{}", names.empty() ? "" : ", ", to_string(name));
  return bad_input(
      fmt::format("there is no block {}: there is {}", to_string(block), names.empty() ? "none" : names));
}

void check_kind(const BlockShape& shape) {
  const bool needs_vector = member_of(attention_vectors, shape.name) != nullptr;
  if (needs_vector == shape.is_vector || (!needs_vector && !member_of(attention_matrices, shape.name)))
    return;
  throw bad_input(fmt::format("block {} is to be a {}: W, K and Q are matrices, p and v are vectors",
                              to_string(shape.name), shape.is_vector ? "vector" : "matrix"));
}

struct FormOfLogits {
  using Form = kernels::LogitForm;
  constexpr Form operator()(Kind<W>) const { return Form::W; }
  constexpr Form operator()(Kind<KQ>) const { return Form::KQ; }
  constexpr Form operator()(Kind<Prompt>) const { return Form::prompt; }
};
static_assert(one_form_each<Parameterization, FormOfLogits, kernels::LogitForm::prompt>());

}  // namespace

kernels::LogitForm logit_form(const Parameterization& parameterization) {
  return form_in(FormOfLogits{}, parameterization);
}

std::string_view to_string(const Parameterization& parameterization) {
  return std::visit([]<class T>(const T&) { return T::word; }, parameterization);
}

bool Parameters::has(const Block& block) const {
  return visit_block(*this, block, [](const auto& values) { return values.size() > 0; });
}

const Matrix& Parameters::matrix(const Block& block) const& {
  const Matrix* found = visit_block(*this, block, [](const auto& values) -> const Matrix* {
    if constexpr (is_vector<decltype(values)>)
      return nullptr;
    else
      return &values;
  });
  if (found == nullptr)
    throw bad_input(fmt::format("block {} is a vector: expected a matrix", to_string(block)));
  if (found->size() == 0) throw missing(*this, block);
  return *found;
}

const Vector& Parameters::vector(const Block& block) const& {
  const Vector* found = visit_block(*this, block, [](const auto& values) -> const Vector* {
    if constexpr (is_vector<decltype(values)>)
      return &values;
    else
      return nullptr;
  });
  if (found == nullptr && has(block))
    throw bad_input(fmt::format("block {} is a matrix: expected a vector", to_string(block)));
  if (found == nullptr || found->size() == 0) throw missing(*this, block);
  return *found;
}

std::vector<Block> block_names(const Parameters& parameters) {
  std::vector<Block> names(attention_blocks.begin(), attention_blocks.end());
  for (const auto& [name, values] : parameters.matrices) names.push_back(name);
  for (const auto& [name, values] : parameters.vectors) names.push_back(name);
  std::sort(names.begin() + attention_blocks.size(), names.end());
  std::erase_if(names, [&](const Block& name) { return !parameters.has(name); });
  return names;
}

Matrix& make_matrix(Parameters& parameters, const Block& block) {
  if (const auto member = member_of(attention_matrices, block)) return parameters.*member;
  if (member_of(attention_vectors, block) || parameters.vectors.contains(block))
    throw bad_input(fmt::format("block {} is a vector: expected a matrix", to_string(block)));
  return parameters.matrices[block];
}

Vector& make_vector(Parameters& parameters, const Block& block) {
  if (const auto member = member_of(attention_vectors, block)) return parameters.*member;
  if (member_of(attention_matrices, block) || parameters.matrices.contains(block))
    throw bad_input(fmt::format("block {} is a matrix: expected a vector", to_string(block)));
  return parameters.vectors[block];
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
    check_kind(shape);
    if (std::ranges::count(shapes_, shape.name, &BlockShape::name) > 1)
      throw bad_input(fmt::format("two blocks are called {}", to_string(shape.name)));
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

std::ptrdiff_t ParameterBlocks::find(const Block& name) const {
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
    if (shape(b).is_vector)
      make_vector(result, shape(b).name) = stored.transpose();
    else if (shape(b).transposed)
      make_matrix(result, shape(b).name) = stored.transpose();
    else
      make_matrix(result, shape(b).name) = stored;
  }
  return result;
}

}  // namespace attmirror
