#include <attmirror/base/error.hpp>
#include <attmirror/deep/encoder_classifier.hpp>
#include <attmirror/deep/vit.hpp>
#include <attmirror/deep/weights_file.hpp>

#include <array>
#include <charconv>
#include <cstring>
#include <set>
#include <system_error>
#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <fmt/format.h>

namespace attmirror::deep {

namespace {

constexpr std::array<std::pair<DType, at::ScalarType>, 10> number_types{{
    {DType::float64, at::kDouble},
    {DType::float32, at::kFloat},
    {DType::float16, at::kHalf},
    {DType::bfloat16, at::kBFloat16},
    {DType::int64, at::kLong},
    {DType::int32, at::kInt},
    {DType::int16, at::kShort},
    {DType::int8, at::kChar},
    {DType::uint8, at::kByte},
    {DType::boolean, at::kBool},
}};

// ---- metadata
// --------------------------------------------------------------------------------------------------------------

// Ours begin with this; others are left to others.
constexpr std::string_view metadata_prefix = "network.";
std::string metadata_key(std::string_view name) { return fmt::format("{}{}", metadata_prefix, name); }
constexpr std::string_view weights_format = "1";

// The options by name, for writing and for reading.
template <class Options, class Field>
void for_each_option(Options& options, const Field& field) requires
    std::is_same_v<std::remove_const_t<Options>, EncoderOptions> {
  field("vocabulary", options.vocabulary);
  field("length", options.length);
  field("width", options.width);
  field("blocks", options.blocks);
  field("heads", options.heads);
  field("hidden", options.hidden);
  field("dropout", options.dropout);
  field("embedding_deviation", options.embedding_deviation);
  field("attention", options.attention);
  field("last_block", options.last_block);
}

template <class Options, class Field>
void for_each_option(Options& options,
                     const Field& field) requires std::is_same_v<std::remove_const_t<Options>, VitOptions> {
  field("image", options.image);
  field("patch", options.patch);
  field("channels", options.channels);
  field("classes", options.classes);
  field("width", options.width);
  field("blocks", options.blocks);
  field("heads", options.heads);
  field("head_width", options.head_width);
  field("hidden", options.hidden);
  field("dropout", options.dropout);
  field("attention", options.attention);
  field("last_block", options.last_block);
}

std::string option_text(std::int64_t value) { return fmt::format("{}", value); }
std::string option_text(double value) { return fmt::format("{}", value); }  // the shortest that reads back
std::string option_text(AttentionKind value) { return std::string(to_string(value)); }
std::string option_text(LastBlock value) { return std::string(to_string(value)); }

template <class Number>
void read_option(const std::string& text, std::string_view name, Number& value) {
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || rest != end)
    throw bad_input(fmt::format("{} is \"{}\": expected a number", name, text));
}
void read_option(const std::string& text, std::string_view, AttentionKind& value) {
  value = attention_kind(text);
}
void read_option(const std::string& text, std::string_view, LastBlock& value) { value = last_block(text); }

using Metadata = std::map<std::string, std::string>;

template <class Options>
void write_options(Metadata& metadata, const Options& options) {
  for_each_option(options, [&](std::string_view name, const auto& value) {
    metadata[metadata_key(name)] = option_text(value);
  });
}

const std::string& metadata_entry(const Metadata& metadata, std::string_view name) {
  const auto entry = metadata.find(metadata_key(name));
  if (entry == metadata.end())
    throw bad_input(
        fmt::format("metadata {} is missing: expected a file of network weights", metadata_key(name)));
  return entry->second;
}

template <class Options>
Options read_options(const Metadata& metadata) {
  std::set<std::string> known{metadata_key("format"), metadata_key("kind")};
  Options options;
  for_each_option(options, [&](std::string_view name, auto& value) {
    read_option(metadata_entry(metadata, name), fmt::format("metadata {}", metadata_key(name)), value);
    known.insert(metadata_key(name));
  });
  for (const auto& [key, text] : metadata)
    if (key.starts_with(metadata_prefix) && !known.contains(key))
      throw bad_input(fmt::format("metadata {} is not known", key));
  return options;
}

// The network without its weights. Before memory is asked for, the file must have as many numbers: a damaged option
// would otherwise ask for all there is.
template <class NetworkOf, class Options>
std::shared_ptr<Network> empty_network(const Safetensors& weights, at::ScalarType compute) {
  const auto options = read_options<Options>(weights.metadata);
  options.validate();
  double numbers = 0;
  for (const auto& entry : weights.tensors) numbers += static_cast<double>(entry.second.size());
  if (numbers != options.parameters())
    throw bad_input(fmt::format("metadata describe a network of {:.0f} numbers, but there are {:.0f}",
                                options.parameters(), numbers));
  return std::make_shared<NetworkOf>(options, std::nullopt, compute);
}

std::shared_ptr<Network> described_network(const Safetensors& weights, at::ScalarType compute) {
  if (const std::string& version = metadata_entry(weights.metadata, "format"); version != weights_format)
    throw bad_input(
        fmt::format("metadata {} is \"{}\": expected {}", metadata_key("format"), version, weights_format));
  const std::string& kind = metadata_entry(weights.metadata, "kind");
  if (kind == "encoder") return empty_network<EncoderClassifier, EncoderOptions>(weights, compute);
  if (kind == "vit") return empty_network<VisionTransformer, VitOptions>(weights, compute);
  throw bad_input(fmt::format("metadata {} is \"{}\": expected encoder or vit", metadata_key("kind"), kind));
}

// The same error, with the file in front.
template <class Work>
auto naming_file(const std::string& name, const Work& work) {
  try {
    return work();
  } catch (const Error& error) {
    throw error.in(name);
  }
}

std::string shape_text(const at::Tensor& tensor) {
  return attmirror::to_string(Shape(tensor.sizes().begin(), tensor.sizes().end()));
}

}  // namespace

Array to_array(const at::Tensor& tensor) {
  for (const auto& [dtype, type] : number_types)
    if (tensor.scalar_type() == type) {
      const at::Tensor here = tensor.detach().to(at::kCPU).contiguous();
      std::vector<std::byte> bytes(here.nbytes());
      if (!bytes.empty()) std::memcpy(bytes.data(), here.data_ptr(), bytes.size());
      return Array(dtype, Shape(here.sizes().begin(), here.sizes().end()), std::move(bytes), "tensor");
    }
  throw bad_input(
      fmt::format("a tensor of type {} has no form as an array", at::toString(tensor.scalar_type())));
}

at::Tensor to_tensor(const Array& array) {
  for (const auto& [dtype, type] : number_types)
    if (array.dtype() == dtype) {
      const at::Tensor tensor = at::empty(array.shape(), at::TensorOptions().dtype(type));
      if (!array.bytes().empty()) std::memcpy(tensor.data_ptr(), array.bytes().data(), array.bytes().size());
      return tensor;
    }
  throw bad_input(
      fmt::format("an array of type {} has no form as a tensor", attmirror::to_string(array.dtype())));
}

Safetensors weights_of(const Network& network) {
  Safetensors result;
  for (const auto& parameter : network.named_parameters())
    result.tensors.emplace(parameter.key(), to_array(parameter.value()));
  result.metadata.emplace(metadata_key("format"), weights_format);
  result.metadata[metadata_key("kind")] = network.kind();
  if (const auto* encoder = dynamic_cast<const EncoderClassifier*>(&network))
    write_options(result.metadata, encoder->options());
  else if (const auto* vit = dynamic_cast<const VisionTransformer*>(&network))
    write_options(result.metadata, vit->options());
  return result;
}

void save_weights(const std::filesystem::path& path, const Network& network) {
  save_safetensors(path, weights_of(network));
}

void load_weights(Network& network, const Safetensors& weights, const std::string& name) {
  const auto parameters = network.named_parameters();
  std::vector<std::pair<at::Tensor, at::Tensor>> copies;  // all are looked at before the first is written
  for (const auto& parameter : parameters) {
    const auto found = weights.tensors.find(parameter.key());
    if (found == weights.tensors.end())
      throw bad_input(fmt::format("{}: parameter {} is missing", name, parameter.key()));
    const Array& array = found->second;
    const at::Tensor& wanted = parameter.value();
    if (array.shape() != Shape(wanted.sizes().begin(), wanted.sizes().end()))
      throw bad_input(fmt::format("{}: parameter {} has shape {}: expected {}", name, parameter.key(),
                                  attmirror::to_string(array.shape()), shape_text(wanted)));
    const at::Tensor values = naming_file(name, [&] { return to_tensor(array); });
    if (values.scalar_type() != wanted.scalar_type())
      throw bad_input(fmt::format("{}: parameter {} is of type {}: expected {}", name, parameter.key(),
                                  attmirror::to_string(array.dtype()),
                                  attmirror::to_string(to_array(wanted.new_empty({0})).dtype())));
    copies.emplace_back(wanted, values);
  }
  for (const auto& [key, array] : weights.tensors)
    if (!parameters.contains(key))
      throw bad_input(fmt::format("{}: tensor {} is not a parameter of this network", name, key));
  const at::NoGradGuard no_gradients;
  for (auto& [parameter, values] : copies) parameter.copy_(values);
}

std::shared_ptr<Network> network_from(const Safetensors& weights, const std::string& name,
                                      at::ScalarType compute) {
  const auto network = naming_file(name, [&] { return described_network(weights, compute); });
  load_weights(*network, weights, name);
  return network;
}

std::shared_ptr<Network> load_network(const std::filesystem::path& path, at::ScalarType compute) {
  return network_from(load_safetensors(path), path.string(), compute);
}

}  // namespace attmirror::deep
