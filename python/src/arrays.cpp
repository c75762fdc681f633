#include "base/numbers.hpp"
#include "bridge.hpp"
#include "descent/block_arrays.hpp"
#include <attmirror/base/error.hpp>

#include <cstring>

#include <fmt/format.h>

namespace attmirror::python {

namespace {

// An array whose memory is the vector's own.
template <class T>
nb::object owning_array(std::vector<T> values, const Shape& shape) {
  std::vector<std::size_t> sizes(shape.begin(), shape.end());
  values.reserve(1);  // an empty array has an address, too
  auto held = std::make_unique<std::vector<T>>(std::move(values));
  T* data = held->data();
  const nb::capsule owner(held.get(), [](void* pointer) noexcept {
    std::unique_ptr<std::vector<T>>(static_cast<std::vector<T>*>(pointer));
  });
  static_cast<void>(held.release());
  return nb::cast(nb::ndarray<nb::numpy, T>(data, sizes.size(), sizes.data(), owner));
}

template <class T>
nb::object copied(const Array& array) {
  const std::span<const T> values = array.view<T>();
  return owning_array(std::vector<T>(values.begin(), values.end()), array.shape());
}

// ("float", 64) of a NumPy array as the type that files have.
std::optional<DType> dtype_of(const AnyArray& array) {
  const auto code = static_cast<nb::dlpack::dtype_code>(array.dtype().code);
  const int bits = array.dtype().bits;
  if (code == nb::dlpack::dtype_code::Float)
    return bits == 64   ? std::optional(DType::float64)
           : bits == 32 ? std::optional(DType::float32)
           : bits == 16 ? std::optional(DType::float16)
                        : std::nullopt;
  if (code == nb::dlpack::dtype_code::Int)
    return bits == 64   ? std::optional(DType::int64)
           : bits == 32 ? std::optional(DType::int32)
           : bits == 16 ? std::optional(DType::int16)
           : bits == 8  ? std::optional(DType::int8)
                        : std::nullopt;
  if (code == nb::dlpack::dtype_code::UInt)
    return bits == 64   ? std::optional(DType::uint64)
           : bits == 32 ? std::optional(DType::uint32)
           : bits == 16 ? std::optional(DType::uint16)
           : bits == 8  ? std::optional(DType::uint8)
                        : std::nullopt;
  if (code == nb::dlpack::dtype_code::Bool) return DType::boolean;
  return std::nullopt;
}

Array array_of(const AnyArray& values, const std::string& name) {
  const std::optional<DType> dtype = dtype_of(values);
  if (!dtype) raise_type_error(name + " has a number type that attmirror does not read");
  Shape shape;
  for (std::size_t axis = 0; axis < values.ndim(); ++axis)
    shape.push_back(static_cast<std::int64_t>(values.shape(axis)));
  std::vector<std::byte> bytes(values.nbytes());
  if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return Array(*dtype, std::move(shape), std::move(bytes), name);
}

}  // namespace

nb::object to_numpy(std::vector<double> values, const Shape& shape) {
  return owning_array(std::move(values), shape);
}
nb::object to_numpy(std::vector<std::int64_t> values, const Shape& shape) {
  return owning_array(std::move(values), shape);
}
nb::object to_numpy(std::vector<double> values) {
  const Shape shape{static_cast<std::int64_t>(values.size())};
  return owning_array(std::move(values), shape);
}
nb::object to_numpy(std::vector<std::int64_t> values) {
  const Shape shape{static_cast<std::int64_t>(values.size())};
  return owning_array(std::move(values), shape);
}
nb::object to_numpy(const Matrix& values) {
  return to_numpy(std::vector<double>(values.data(), values.data() + values.size()),
                  {values.rows(), values.cols()});
}
nb::object to_numpy(const Vector& values) {
  return to_numpy(std::vector<double>(values.data(), values.data() + values.size()));
}

nb::object to_numpy(const Array& array) {
  switch (array.dtype()) {
    case DType::float64:
      return copied<double>(array);
    case DType::float32:
      return copied<float>(array);
    case DType::int64:
      return copied<std::int64_t>(array);
    case DType::int32:
      return copied<std::int32_t>(array);
    case DType::uint64:
      return copied<std::uint64_t>(array);
    case DType::uint8:
      return copied<std::uint8_t>(array);
    case DType::float16:
    case DType::bfloat16:
    case DType::int16:
    case DType::int8:
    case DType::uint32:
    case DType::uint16:
    case DType::boolean:
      break;
  }
  return to_numpy(array.to_doubles(), array.shape());
}

nb::dict to_dict(const NamedArrays& arrays) {
  nb::dict result;
  for (const auto& [name, array] : arrays) result[name.c_str()] = to_numpy(array);
  return result;
}

NamedArrays to_named_arrays(const nb::dict& arrays) {
  NamedArrays result;
  for (const auto& [key, value] : arrays) {
    const auto name = nb::cast<std::string>(key);
    result.emplace(name, array_of(nb::cast<AnyArray>(value), name));
  }
  return result;
}

Matrix matrix_of(const Doubles& values, std::string_view name) {
  if (values.ndim() != 2)
    throw bad_input(fmt::format("{} has {} axes: expected a matrix", name, values.ndim()));
  return Eigen::Map<const Matrix>(values.data(), static_cast<std::ptrdiff_t>(values.shape(0)),
                                  static_cast<std::ptrdiff_t>(values.shape(1)));
}

Vector vector_of(const Doubles& values, std::string_view name) {
  if (values.ndim() != 1)
    throw bad_input(fmt::format("{} has {} axes: expected a vector", name, values.ndim()));
  return Eigen::Map<const Vector>(values.data(), static_cast<std::ptrdiff_t>(values.shape(0)));
}

nb::dict to_dict(const Parameters& parameters) {
  nb::dict result;
  for (const Block& block : block_names(parameters))
    result[std::string(block.name()).c_str()] =
        visit_block(parameters, block, [](const auto& values) { return to_numpy(values); });
  return result;
}

Parameters to_parameters(const nb::dict& blocks) {
  Parameters parameters;
  for (const auto& [key, value] : blocks) {
    const auto name = nb::cast<std::string>(key);
    const auto values = nb::cast<Doubles>(value);
    if (values.ndim() == 1)
      make_vector(parameters, Block(std::string_view(name))) = vector_of(values, name);
    else
      make_matrix(parameters, Block(std::string_view(name))) = matrix_of(values, name);
  }
  return parameters;
}

nb::object to_numpy(const Selection& tokens, const Dataset& data) {
  if (data.one_query_each() || !data.equal_query_counts() ||
      static_cast<std::ptrdiff_t>(tokens.tokens.size()) != data.total_queries())
    return to_numpy(tokens.tokens);
  return to_numpy(tokens.tokens, {data.samples(), data.query_count(0)});
}

Selection to_selection(const Integers& tokens) {
  return {std::vector<std::int64_t>(tokens.data(), tokens.data() + tokens.size())};
}

nb::object rows_to_numpy(const std::vector<Vector>& rows) {
  bool equal = true;
  for (const Vector& row : rows) equal = equal && row.size() == rows.front().size();
  if (!equal || rows.empty()) {
    nb::list list;
    for (const Vector& row : rows) list.append(to_numpy(row));
    return list;
  }
  std::vector<double> values;
  values.reserve(rows.size() * at(rows.front().size()));
  for (const Vector& row : rows) values.insert(values.end(), row.data(), row.data() + row.size());
  return to_numpy(std::move(values), {static_cast<std::int64_t>(rows.size()), rows.front().size()});
}

}  // namespace attmirror::python
