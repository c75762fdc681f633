// safetensors files: a JSON header that describes a block of data.
//
// A header is only trusted once it is proved to describe its file: sort the arrays by where they begin; then
// each must begin where the one before ended, the first at 0, and the last must end with the file. That
// excludes overlaps (one buffer claimed many times), holes (bytes that nobody sees) and offsets beyond the
// file in one pass.
#include "base/atomic_file.hpp"
#include "data/array_outline.hpp"
#include "data/messages.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/data/safetensors.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <new>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace attmirror {
namespace {

using nlohmann::json;

constexpr std::size_t length_bytes = 8;
constexpr std::uint64_t longest_tensor_header = 100'000'000;
constexpr const char* metadata_key = "__metadata__";

struct TypeName {
  std::string_view name;
  DType dtype;
};
constexpr TypeName type_names[] = {
    {"F64", DType::float64}, {"F32", DType::float32}, {"F16", DType::float16}, {"BF16", DType::bfloat16},
    {"I64", DType::int64},   {"I32", DType::int32},   {"I16", DType::int16},   {"I8", DType::int8},
    {"U64", DType::uint64},  {"U32", DType::uint32},  {"U16", DType::uint16},  {"U8", DType::uint8},
    {"BOOL", DType::boolean}};

std::string_view safetensors_name(DType dtype) {
  return std::find_if(std::begin(type_names), std::end(type_names),
                      [dtype](const TypeName& known) { return known.dtype == dtype; })
      ->name;
}

struct TensorEntry {
  std::string name;
  DType dtype = DType::float64;
  Shape shape;
  std::size_t begin = 0, end = 0;
};

// JSON lets a key stand twice and the parser keeps the last; here that is an error, as two readers may keep
// different ones. The callback also stops nesting beyond what the format has.
json parse_header(std::string_view text, std::string_view file) {
  std::vector<std::set<std::string>> keys;  // of the objects that are open
  const auto watch = [&](int depth, json::parse_event_t event, json& parsed) {
    if (depth > 3) throw bad_input(fmt::format("{}: the header nests deeper than the format allows", file));
    switch (event) {
      case json::parse_event_t::object_start:
        keys.emplace_back();
        break;
      case json::parse_event_t::object_end:
        keys.pop_back();
        break;
      case json::parse_event_t::key:
        if (!keys.back().insert(parsed.get<std::string>()).second)
          throw bad_input(fmt::format("{}: the header has the name {} twice", file,
                                      in_quotes(parsed.get<std::string>())));
        break;
      default:
        break;
    }
    return true;
  };
  try {
    return json::parse(text, watch);
  } catch (const json::exception& error) {
    // The library's own words quote the text around the fault; that may be long and hold anything.
    const auto* parse_error = dynamic_cast<const json::parse_error*>(&error);
    throw bad_input(fmt::format("{}: the header is not JSON: fault at byte {}", file,
                                parse_error ? parse_error->byte : 0));
  }
}

std::map<std::string, std::string> parse_metadata(const json& object, std::string_view file) {
  if (!object.is_object()) throw bad_input(fmt::format("{}: __metadata__ is not an object of strings", file));
  std::map<std::string, std::string> metadata;
  for (const auto& [key, value] : object.items()) {
    if (!value.is_string())
      throw bad_input(fmt::format("{}: __metadata__ {} is not a string", file, in_quotes(key)));
    metadata.emplace(key, value.get<std::string>());
  }
  return metadata;
}

TensorEntry parse_entry(const std::string& name, const json& object, std::string_view file,
                        std::size_t data_size) {
  const std::string where = fmt::format("{}: tensor {}", file, in_quotes(name));
  if (!object.is_object()) throw bad_input(fmt::format("{} is not described by an object", where));
  for (const auto& [key, value] : object.items())
    if (key != "dtype" && key != "shape" && key != "data_offsets")
      throw bad_input(
          fmt::format("{} has the key {}: expected dtype, shape and data_offsets", where, in_quotes(key)));
  const auto field = [&](const char* key) -> const json& {
    const auto found = object.find(key);
    if (found == object.end()) throw bad_input(fmt::format("{} lacks the key '{}'", where, key));
    return *found;
  };
  // A number above 2^64 comes out of the parser as a double, and is refused with the fractions.
  const auto whole = [&](const json& number, std::string_view what, std::uint64_t most) {
    if (!number.is_number_unsigned() || number.get<std::uint64_t>() > most)
      throw bad_input(fmt::format("{}: {} is {}: expected a whole number from 0 to {}", where, what,
                                  in_quotes(number.dump(-1, ' ', true, json::error_handler_t::replace)),
                                  most));
    return number.get<std::uint64_t>();
  };

  TensorEntry entry;
  entry.name = name;
  const json& dtype = field("dtype");
  if (!dtype.is_string()) throw bad_input(fmt::format("{}: dtype is not a string", where));
  const std::string code = dtype.get<std::string>();
  const auto known = std::find_if(std::begin(type_names), std::end(type_names),
                                  [&](const TypeName& type) { return type.name == code; });
  if (known == std::end(type_names))
    throw bad_input(
        fmt::format("{}: dtype is {}: expected one of F64, F32, F16, BF16, I64, I32, I16, I8, U64, U32, "
                    "U16, U8, BOOL",
                    where, in_quotes(code)));
  entry.dtype = known->dtype;

  const json& shape = field("shape");
  if (!shape.is_array()) throw bad_input(fmt::format("{}: shape is not an array", where));
  if (shape.size() > max_axes)
    throw bad_input(fmt::format("{} has {} axes: expected at most {}", where, shape.size(), max_axes));
  for (std::size_t axis = 0; axis < shape.size(); ++axis)
    entry.shape.push_back(
        static_cast<std::int64_t>(whole(shape[axis], fmt::format("shape[{}]", axis), INT64_MAX)));

  const json& offsets = field("data_offsets");
  if (!offsets.is_array() || offsets.size() != 2)
    throw bad_input(fmt::format("{}: data_offsets is not a pair of numbers", where));
  entry.begin = whole(offsets[0], "data_offsets[0]", data_size);
  // The end of a file is what is lost when a copy stops midway.
  if (offsets[1].is_number_unsigned() && offsets[1].get<std::uint64_t>() > data_size)
    throw bad_input(
        fmt::format("{} ends at byte {} of the data, and the file has {}: it is cut off or damaged", where,
                    offsets[1].get<std::uint64_t>(), data_size));
  entry.end = whole(offsets[1], "data_offsets[1]", data_size);
  if (entry.end < entry.begin)
    throw bad_input(
        fmt::format("{}: data_offsets is [{}, {}]: expected begin <= end", where, entry.begin, entry.end));
  const std::size_t bytes = element_count(entry.shape, entry.dtype, where) * item_size(entry.dtype);
  if (entry.end - entry.begin != bytes)
    throw bad_input(fmt::format("{}: data_offsets [{}, {}] hold {} bytes: expected {} for {} {}", where,
                                entry.begin, entry.end, entry.end - entry.begin, bytes,
                                to_string(entry.dtype), to_string(entry.shape)));
  return entry;
}

void check_layout(std::vector<TensorEntry>& entries, std::size_t data_size, std::string_view file) {
  std::sort(entries.begin(), entries.end(), [](const TensorEntry& a, const TensorEntry& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  std::size_t covered = 0;
  for (const TensorEntry& entry : entries) {
    if (entry.begin != covered)
      throw bad_input(fmt::format("{}: tensor {} begins at {}: expected {}, where the one before ends ({})",
                                  file, in_quotes(entry.name), entry.begin, covered,
                                  entry.begin < covered ? "they overlap" : "there is a hole"));
    covered = entry.end;
  }
  if (covered != data_size)
    throw bad_input(fmt::format("{}: the tensors end at {}, but {} bytes of data follow the header", file,
                                covered, data_size));
}

}  // namespace

namespace {

struct ParsedHeader {
  std::map<std::string, std::string> metadata;
  std::vector<TensorEntry> entries;  // in the order of the data
  std::uint64_t data_begin = 0;
};

// The length that the first bytes of a file claim for its header.
std::uint64_t header_length_of(std::span<const std::byte> file, std::uint64_t file_size,
                               std::string_view name) {
  if (file_size < length_bytes)
    throw bad_input(fmt::format("{}: {} bytes are not a safetensors file: expected at least {}", name,
                                file_size, length_bytes));
  std::uint64_t header_length = 0;
  std::memcpy(&header_length, file.data(), length_bytes);
  if (header_length > longest_tensor_header)
    throw bad_input(fmt::format("{} is not a safetensors file: header length is {}: expected at most {}",
                                name, header_length, longest_tensor_header));
  if (header_length > file_size - length_bytes)
    throw bad_input(fmt::format("{}: header length is {}, but only {} bytes follow", name, header_length,
                                file_size - length_bytes));
  return header_length;
}

// `file` holds the header at least.
ParsedHeader parse_whole_header(std::span<const std::byte> file, std::uint64_t file_size,
                                std::string_view name) {
  const std::uint64_t header_length = header_length_of(file, file_size, name);
  const std::string_view text(reinterpret_cast<const char*>(file.data()) + length_bytes, header_length);
  if (!text.starts_with('{'))
    throw bad_input(
        fmt::format("{}: the header starts with {}: expected '{{'", name, in_quotes(text.substr(0, 1))));
  ParsedHeader result;
  result.data_begin = length_bytes + header_length;
  const std::size_t data_size = static_cast<std::size_t>(file_size - result.data_begin);
  const json header = parse_header(text, name);
  for (const auto& [key, value] : header.items()) {
    if (key == metadata_key)
      result.metadata = parse_metadata(value, name);
    else
      result.entries.push_back(parse_entry(key, value, name, data_size));
  }
  check_layout(result.entries, data_size, name);
  return result;
}

}  // namespace

Safetensors parse_safetensors(std::span<const std::byte> file, std::string_view name) try {
  ParsedHeader header = parse_whole_header(file, file.size(), name);
  const auto data = file.subspan(header.data_begin);
  Safetensors result;
  result.metadata = std::move(header.metadata);
  for (TensorEntry& entry : header.entries) {
    const auto bytes = data.subspan(entry.begin, entry.end - entry.begin);
    Array array(entry.dtype, std::move(entry.shape), {bytes.begin(), bytes.end()},
                fmt::format("{}: tensor {}", name, in_quotes(entry.name)));
    result.tensors.emplace(std::move(entry.name), std::move(array));
  }
  return result;
} catch (const std::bad_alloc&) {
  throw out_of_memory(name);
}

SafetensorsOutline outline_safetensors(const std::filesystem::path& path) {
  std::error_code error;
  const std::string name = path.string(), first = beginning_of_file(path, length_bytes);
  if (first.empty()) read_file(path);  // says what is wrong with it
  const std::uint64_t size = std::filesystem::file_size(path, error);
  const std::uint64_t length = header_length_of(std::as_bytes(std::span(first)), error ? 0 : size, name);
  const std::string head = beginning_of_file(path, static_cast<std::size_t>(length_bytes + length));
  if (head.size() < length_bytes + length)
    throw bad_input(fmt::format("{}: ends after {} bytes, within the header", name, head.size()));
  ParsedHeader header = parse_whole_header(std::as_bytes(std::span(head)), size, name);
  SafetensorsOutline outline{.metadata = std::move(header.metadata), .tensors = {}};
  for (TensorEntry& entry : header.entries)
    outline.tensors.push_back({std::move(entry.name), entry.dtype, std::move(entry.shape)});
  std::ranges::sort(outline.tensors, {}, &ArrayOutline::name);
  return outline;
}

Safetensors load_safetensors(const std::filesystem::path& path) {
  return parse_safetensors(read_file(path), path.string());
}

std::vector<std::byte> format_safetensors(const Safetensors& content) {
  std::vector<const NamedArrays::value_type*> order;
  for (const auto& named : content.tensors) {
    if (named.first == metadata_key)
      throw bad_input(
          fmt::format("a tensor is named {}: safetensors keeps that name for itself", metadata_key));
    order.push_back(&named);
  }
  std::stable_sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
    return item_size(a->second.dtype()) > item_size(b->second.dtype());
  });

  json header = json::object();
  if (!content.metadata.empty()) header[metadata_key] = content.metadata;
  std::size_t end = 0;
  for (const auto* named : order) {
    const auto& [name, array] = *named;
    const std::size_t begin = end;
    end += array.bytes().size();
    header[name] = {
        {"dtype", safetensors_name(array.dtype())}, {"shape", array.shape()}, {"data_offsets", {begin, end}}};
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const json::exception&) {
    throw bad_input("a tensor's name or its metadata is not UTF-8, which safetensors asks for");
  }
  text.resize((text.size() + 7) / 8 * 8, ' ');
  if (text.size() > longest_tensor_header)
    throw bad_input(fmt::format("the header would have {} bytes: safetensors allows {}", text.size(),
                                longest_tensor_header));

  const std::uint64_t header_length = text.size();
  std::vector<std::byte> file(length_bytes + text.size() + end);
  auto at = file.begin();
  const auto append = [&at](std::span<const std::byte> bytes) {
    at = std::copy(bytes.begin(), bytes.end(), at);
  };
  append(std::as_bytes(std::span(&header_length, 1)));
  append(std::as_bytes(std::span(text)));
  for (const auto* named : order) append(named->second.bytes());
  return file;
}

void save_safetensors(const std::filesystem::path& path, const Safetensors& content) {
  write_file_atomically(path, format_safetensors(content));
}

}  // namespace attmirror
