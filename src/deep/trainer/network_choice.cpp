#include "deep/trainer/network_choice.hpp"

#include <attmirror/base/error.hpp>
#include <attmirror/deep/encoder_classifier.hpp>
#include <attmirror/deep/vit.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>

#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <fmt/format.h>

namespace attmirror::deep {

namespace {

std::int64_t label_count(const std::vector<std::int32_t>& labels) {
  return labels.empty() ? 0 : std::int64_t{*std::max_element(labels.begin(), labels.end())} + 1;
}

std::shared_ptr<Network> configured_encoder(const TrainConfig& config, const TrainData& data,
                                            std::uint64_t seed, at::ScalarType compute) {
  const TokenSet &train = *data.train_texts, &test = *data.test_texts;
  for (const auto& [set, name] : {std::pair{&train, "data.train"}, std::pair{&test, "data.test"}})
    if (label_count(set->labels) > 2)
      throw bad_input(
          fmt::format("{} has the label {}: an encoder answers 0 or 1", name, label_count(set->labels) - 1));
  if (train.vocabulary != test.vocabulary || train.vocabulary_fingerprint != test.vocabulary_fingerprint)
    throw bad_input(fmt::format(
        "data.train and data.test were made with different vocabularies ({} pieces, fingerprint {}; {} "
        "pieces, fingerprint {})",
        train.vocabulary, train.vocabulary_fingerprint, test.vocabulary, test.vocabulary_fingerprint));
  for (const auto& [set, name] : {std::pair{&train, "data.train"}, std::pair{&test, "data.test"}})
    for (std::int64_t r = 0; r < set->rows(); ++r)
      if (static_cast<std::int64_t>(set->row(r).size()) > config.data.length)
        throw bad_input(fmt::format("row {} of {} has {} ids: expected at most data.length, {}", r, name,
                                    set->row(r).size(), config.data.length));
  EncoderOptions options;
  options.vocabulary = train.vocabulary;
  options.length = config.data.length;
  options.width = config.model.width;
  options.blocks = config.model.blocks;
  options.heads = config.model.heads;
  options.hidden = config.model.hidden;
  options.dropout = config.model.dropout;
  options.embedding_deviation = config.model.embedding_deviation;
  options.attention = attention_kind(config.model.attention);
  options.last_block = last_block(config.model.last_block);
  return std::make_shared<EncoderClassifier>(options, seed, compute);
}

std::shared_ptr<Network> configured_vit(const TrainConfig& config, const TrainData& data, std::uint64_t seed,
                                        at::ScalarType compute) {
  const ImageSet &train = *data.train_images, &test = *data.test_images;
  if (train.classes != test.classes || train.channels != test.channels)
    throw bad_input(fmt::format("data.train has {} classes and {} channels, data.test {} and {}",
                                train.classes, train.channels, test.classes, test.channels));
  VitOptions options;
  options.image = config.model.image;
  options.patch = config.model.patch;
  options.channels = train.channels;
  options.classes = train.classes;
  options.width = config.model.width;
  options.blocks = config.model.blocks;
  options.heads = config.model.heads;
  options.head_width = config.model.head_width;
  options.hidden = config.model.hidden;
  if (options.hidden == 0) options.hidden = 4 * options.width;
  options.dropout = config.model.dropout;
  options.attention = attention_kind(config.model.attention);
  options.last_block = last_block(config.model.last_block);
  return std::make_shared<VisionTransformer>(options, seed, compute);
}

}  // namespace

Machine chosen_machine(const LoopConfig& config, std::int64_t local_rank) {
  Machine machine;
  const bool has_gpu = at::hasCUDA();
  if (config.device != "cpu" && !(config.device == "auto" && !has_gpu)) {
    if (!has_gpu)
      throw bad_input(
          fmt::format("train.device is \"{}\": LibTorch finds no GPU on this machine", config.device));
    const std::int64_t gpus = at::detail::getCUDAHooks().getNumGPUs();
    const std::int64_t index =
        config.device.starts_with("cuda:") ? std::stoll(config.device.substr(5)) : local_rank;
    if (index >= gpus)
      throw bad_input(
          fmt::format("train.device is \"{}\", and process {} of this machine asks for GPU {}: it has {}",
                      config.device, local_rank, index, gpus));
    machine.device = at::Device(at::kCUDA, static_cast<at::DeviceIndex>(index));
  }
  if (config.precision == "bf16" && machine.device.is_cpu())
    throw bad_input("train.precision is \"bf16\": it is for GPUs, and this training runs on the CPU");
  if (machine.device.is_cuda() && config.precision != "fp32") machine.compute = at::kBFloat16;
  return machine;
}

std::shared_ptr<Network> make_network(const TrainConfig& config, const TrainData& data, std::uint64_t seed,
                                      const Machine& machine) {
  const AttentionKind attention = attention_kind(config.model.attention);
  if (attention == AttentionKind::packed && machine.device.is_cuda())
    throw bad_input("model.attention is \"packed\": it is for CPUs, and this training runs on a GPU");
  if (attention == AttentionKind::fused && machine.compute != at::kBFloat16)
    throw bad_input("model.attention is \"fused\": it is for GPUs in bf16, and this training runs otherwise");
  std::shared_ptr<Network> network = config.model.kind == "encoder"
                                         ? configured_encoder(config, data, seed, machine.compute)
                                         : configured_vit(config, data, seed, machine.compute);
  network->to(machine.device);
  return network;
}

WeightMeasures measured_weights(const Network& network) {
  const at::NoGradGuard no_gradients;
  constexpr std::array<char, 3> names{'K', 'Q', 'V'};
  constexpr std::int64_t numbers = 4;  // of each map
  const std::vector<Projection> projections = network.projections();
  std::vector<at::Tensor> measures;
  std::array<double, 3> counts{};
  for (std::size_t m = 0; m < names.size(); ++m) {
    std::vector<at::Tensor> parts;
    for (const Projection& projection : projections)
      if (projection.map == names[m]) parts.push_back(projection.weight.to(at::kDouble).abs().flatten());
    const at::Tensor all = at::cat(parts);
    counts[m] = static_cast<double>(all.numel());
    measures.insert(measures.end(),
                    {all.sum(), all.square().sum(), all.max(), all.gt(0.06).sum().to(at::kDouble)});
  }
  at::Tensor squares = at::zeros_like(measures.front());
  for (const at::Tensor& parameter : network.parameters())
    squares = squares + parameter.detach().square().sum(at::kDouble);
  measures.push_back(squares);
  const at::Tensor read = at::stack(measures).to(at::kCPU);
  const auto* value = read.data_ptr<double>();
  WeightMeasures result;
  for (std::size_t m = 0; m < names.size(); ++m, value += numbers) {
    const double l1 = value[0], l2 = std::sqrt(value[1]), root = std::sqrt(counts[m]);
    double above = value[3] / counts[m], sparsity = root > 1 && l2 > 0 ? (root - l1 / l2) / (root - 1) : 0;
    // Weights that are not finite exceed nothing and have no sparsity, which is not the same as 0.
    if (!std::isfinite(l2)) above = sparsity = std::numeric_limits<double>::quiet_NaN();
    result.maps.push_back({names[m], l2, value[2], above, sparsity});
  }
  result.norm = std::sqrt(*value);
  return result;
}

}  // namespace attmirror::deep
