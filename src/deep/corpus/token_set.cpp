// Token files: what makes one valid, and the bytes of it.
#include "base/atomic_file.hpp"
#include "base/sha256.hpp"
#include "data/messages.hpp"
#include "deep/corpus/byte_fingerprint.hpp"
#include "deep/corpus/token_file.hpp"
#include <attmirror/base/error.hpp>

#include <algorithm>
#include <charconv>
#include <utility>

#include <fmt/format.h>

namespace attmirror {
namespace {

constexpr std::string_view format_name = "attmirror tokens 1";
constexpr std::int64_t most_uint16 = 65536;

template <class T>
std::vector<std::byte> bytes_of(const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

const std::string& metadata(const Safetensors& content, const char* key, std::string_view name) {
  const auto found = content.metadata.find(key);
  if (found == content.metadata.end())
    throw bad_input(fmt::format("{} is not a token file: its metadata have no {}", name, key));
  return found->second;
}

std::int64_t metadata_number(const Safetensors& content, const char* key, std::string_view name) {
  const std::string& text = metadata(content, key, name);
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0)
    throw bad_input(
        fmt::format("{}: {} is {} in its metadata: expected a whole number", name, key, in_quotes(text)));
  return number;
}

const Array& vector_of(const Safetensors& content, const char* key, std::string_view name) {
  const auto found = content.tensors.find(key);
  if (found == content.tensors.end())
    throw bad_input(fmt::format("{} is not a token file: it has no array {}", name, key));
  if (found->second.axes() != 1)
    throw bad_input(fmt::format("{}: {} is {}: expected one axis", name, key, found->second.describe()));
  return found->second;
}

}  // namespace

std::string content_fingerprint(const NamedArrays& arrays) {
  Fingerprint sum;
  for (const char* name : {"ids", "labels", "offsets"}) add_bytes(sum, arrays.at(name).bytes());
  return fmt::format("{:016x}", sum.value());
}

void TokenSet::validate() const {
  if (length < 0) throw bad_input(fmt::format("length is {}: expected 0 or more", length));
  if (vocabulary < 0) throw bad_input(fmt::format("vocabulary is {}: expected 0 or more", vocabulary));
  if (offsets.size() != labels.size() + 1)
    throw bad_input(fmt::format("there are {} offsets and {} labels: expected one offset more than labels",
                                offsets.size(), labels.size()));
  if (offsets.front() != 0) throw bad_input(fmt::format("offsets[0] is {}: expected 0", offsets.front()));
  for (std::size_t r = 0; r < labels.size(); ++r) {
    if (offsets[r + 1] <= offsets[r])
      throw bad_input(fmt::format("offsets[{}] is {}: expected more than offsets[{}], {}, as no row is empty",
                                  r + 1, offsets[r + 1], r, offsets[r]));
    // Both are 0 or more here, and so the difference does not overflow.
    if (offsets[r + 1] - offsets[r] > length)
      throw bad_input(fmt::format("row {} has {} ids: expected at most the length, {}", r,
                                  offsets[r + 1] - offsets[r], length));
    if (labels[r] < 0) throw bad_input(fmt::format("labels[{}] is {}: expected 0 or more", r, labels[r]));
  }
  if (offsets.back() != static_cast<std::int64_t>(ids.size()))
    throw bad_input(fmt::format("offsets[{}] is {}: expected the number of ids, {}", offsets.size() - 1,
                                offsets.back(), ids.size()));
  for (std::size_t i = 0; i < ids.size(); ++i)
    if (ids[i] < 0 || ids[i] >= vocabulary)
      throw bad_input(
          fmt::format("ids[{}] is {}: expected an id of the vocabulary, 0 to {}", i, ids[i], vocabulary - 1));
}

Safetensors to_safetensors(const TokenSet& tokens) {
  tokens.validate();
  Safetensors content;
  const Shape shape = {static_cast<std::int64_t>(tokens.ids.size())};
  if (tokens.vocabulary <= most_uint16) {
    const std::vector<std::uint16_t> narrow(tokens.ids.begin(), tokens.ids.end());
    content.tensors.emplace("ids", Array(DType::uint16, shape, bytes_of(narrow), "ids"));
  } else {
    content.tensors.emplace("ids", Array(DType::int32, shape, bytes_of(tokens.ids), "ids"));
  }
  content.tensors.emplace("offsets", Array(tokens.offsets));
  content.tensors.emplace("labels", Array(DType::int32, {tokens.rows()}, bytes_of(tokens.labels), "labels"));
  content.metadata = {{"format", std::string(format_name)},
                      {"vocabulary", fmt::format("{}", tokens.vocabulary)},
                      {"length", fmt::format("{}", tokens.length)},
                      {"vocabulary_fingerprint", tokens.vocabulary_fingerprint},
                      {"content_fingerprint", content_fingerprint(content.tensors)}};
  return content;
}

TokenSet to_token_set(const Safetensors& content, std::string_view name) {
  if (const std::string& format = metadata(content, "format", name); format != format_name)
    throw bad_input(
        fmt::format("{} has format {}: expected {}", name, in_quotes(format), in_quotes(format_name)));
  TokenSet tokens;
  tokens.vocabulary = metadata_number(content, "vocabulary", name);
  tokens.length = metadata_number(content, "length", name);
  tokens.vocabulary_fingerprint = metadata(content, "vocabulary_fingerprint", name);

  const Array& ids = vector_of(content, "ids", name);
  const Array& offsets = vector_of(content, "offsets", name);
  const Array& labels = vector_of(content, "labels", name);
  if (offsets.dtype() != DType::int64 || labels.dtype() != DType::int32 ||
      ids.dtype() != (tokens.vocabulary <= most_uint16 ? DType::uint16 : DType::int32))
    throw bad_input(
        fmt::format("{}: ids are {}, offsets {} and labels {}: expected uint16 (int32 for a vocabulary above "
                    "65536), int64 and int32",
                    name, ids.describe(), offsets.describe(), labels.describe()));
  if (const std::string found = content_fingerprint(content.tensors);
      found != metadata(content, "content_fingerprint", name))
    throw bad_input(fmt::format("{} is damaged: its fingerprint is {}: expected {}", name, found,
                                in_quotes(metadata(content, "content_fingerprint", name))));
  if (ids.dtype() == DType::uint16) {
    const auto narrow = ids.view<std::uint16_t>();
    tokens.ids.assign(narrow.begin(), narrow.end());
  } else {
    const auto wide = ids.view<std::int32_t>();
    tokens.ids.assign(wide.begin(), wide.end());
  }
  const auto ends = offsets.view<std::int64_t>();
  tokens.offsets.assign(ends.begin(), ends.end());
  const auto classes = labels.view<std::int32_t>();
  tokens.labels.assign(classes.begin(), classes.end());
  try {
    tokens.validate();
  } catch (const Error& error) {
    throw error.in(name);
  }
  return tokens;
}

TokenSet parse_token_set(std::span<const std::byte> file, std::string_view name) {
  return to_token_set(parse_safetensors(file, name), name);
}

std::vector<std::byte> format_token_set(const TokenSet& tokens) {
  return format_safetensors(to_safetensors(tokens));
}

TokenSet load_token_set(const std::filesystem::path& path) {
  return parse_token_set(read_file(path), path.string());
}

void save_token_set(const std::filesystem::path& path, const TokenSet& tokens) {
  try {
    save_safetensors(path, to_safetensors(tokens));
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::bad_input) throw;
    throw bad_input(fmt::format("cannot write {}: {}", path.string(), error.what()));
  }
}

std::string ids_sha256(const TokenSet& tokens) {
  Sha256 sum;
  std::vector<std::byte> bytes;
  for (std::int64_t r = 0; r < tokens.rows(); ++r) {
    bytes.clear();
    for (const std::int32_t id : tokens.row(r)) {
      if (id < 0 || id >= most_uint16)
        throw bad_input(fmt::format("row {} has the id {}: expected one that 16 bits hold", r, id));
      bytes.push_back(static_cast<std::byte>(id & 0xFF));
      bytes.push_back(static_cast<std::byte>(id >> 8));
    }
    sum.add(bytes);
  }
  return sum.hex();
}

}  // namespace attmirror
